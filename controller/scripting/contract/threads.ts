import { join } from "node:path";
import type { Clock } from "../../../common/time.ts";
import { bundle } from "../../../test/helpers/programs/bundle.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { PoolLimits } from "../../workers/index.ts";
import { ThreadScripts, type HostFunctionName, type ScriptLanguage } from "../index.ts";

export const CONTRACT_FUNCTIONS: readonly HostFunctionName[] = [
  { object: "host", name: "add" },
  { object: "host", name: "refuse" },
  { object: "host", name: "nested" },
  { object: "host", name: "wait" },
  { object: "host", name: "where", positioned: true },
];

interface EngineOptions {
  readonly clock: Clock;
  /** Absent: the number of threads used in production. */
  readonly threads?: number;
  /** Absent: one user may have all threads. */
  readonly limits?: Partial<PoolLimits>;
  readonly lowerPriority?: (thread: number) => boolean;
}

/** Opens engines of one language. */
export async function threadScripts(language: ScriptLanguage) {
  const main = join(import.meta.dirname, "../../script-worker.ts");
  const file = await bundle(main, `scripts/${language}-${process.pid}.mjs`);
  return ({ clock, threads, limits = { shares: [] }, lowerPriority }: EngineOptions): ThreadScripts => {
    const { log, random } = testRuntime();
    return new ThreadScripts({
      file,
      languages: [language],
      functions: () => CONTRACT_FUNCTIONS,
      random,
      log,
      limits,
      clock,
      ...(threads !== undefined && { threads }),
      ...(lowerPriority && { lowerPriority }),
    });
  };
}
