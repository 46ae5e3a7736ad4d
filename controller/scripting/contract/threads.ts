import { join } from "node:path";
import type { Clock } from "../../../common/time.ts";
import { bundle } from "../../../test/helpers/bundle.ts";
import { testRuntime } from "../../../test/helpers/runtime.ts";
import { ThreadScripts, type HostFunctionName, type ScriptLanguage } from "../index.ts";

export const CONTRACT_FUNCTIONS: readonly HostFunctionName[] = [
  { object: "host", name: "add" },
  { object: "host", name: "refuse" },
  { object: "host", name: "nested" },
  { object: "host", name: "wait" },
  { object: "host", name: "where", positioned: true },
];

/** Opens engines of one language, whose one tenant may have all threads. */
export async function threadScripts(language: ScriptLanguage) {
  const main = join(import.meta.dirname, "../../script-worker.ts");
  const file = await bundle(main, `scripts/${language}-${process.pid}.mjs`);
  return ({ clock, threads }: { readonly clock: Clock; readonly threads: number }): ThreadScripts => {
    const { log, random } = testRuntime();
    const limits = { tenantThreads: threads };
    return new ThreadScripts({
      file,
      languages: [language],
      functions: () => CONTRACT_FUNCTIONS,
      random,
      log,
      limits,
      clock,
      threads,
    });
  };
}
