import type { Logger } from "pino";
import { errorText } from "../../../common/errors.ts";
import {
  TRIGGER_LOG_LINE_MAX_CHARACTERS,
  TRIGGER_LOG_LINES_MAX,
  TRIGGER_LOG_RUNS_MAX,
} from "../../../common/limits.ts";
import { consoleLogPath } from "../consolelog/index.ts";
import type { NewRecord, Objects } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { Runtime } from "../../runtime.ts";

/** What one run of a trigger has to say. */
export interface RunLog {
  /** Levels as those of console logs. */
  say(level: number, message: string): void;
  /** Begins to store what was said. */
  end(): void;
}

interface Dependencies {
  readonly objects: Pick<Objects, "ingest">;
  readonly runtime: Pick<Runtime, "clock" | "random"> & { readonly log: Pick<Logger, "warn"> };
  /** Entries were added to the log of triggers of a tenant. */
  readonly stored: (tenant: string) => void;
}

/** The console log of kind trigger, by `<class>#<trigger>`. No run waits for it. */
export class TriggerLog {
  readonly #with: Dependencies;
  readonly #writing = new Set<Promise<void>>();

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  begin(principal: Pick<Principal, "tenant" | "ospace" | "traceparent">, name: string): RunLog {
    const { clock, random } = this.#with.runtime;
    const sttime = clock.nowMs();
    const identity = Buffer.from(random.bytes(12)).toString("hex");
    const records: NewRecord[] = [];
    return {
      say: (level, message) => {
        if (records.length >= TRIGGER_LOG_LINES_MAX) return;
        const timeMs = clock.nowMs();
        const msg = message.slice(0, TRIGGER_LOG_LINE_MAX_CHARACTERS);
        const values = { name, level, msg, sttime, edtime: timeMs };
        records.push({ values, timeMs, identity, ordinal: records.length, isNew: true });
      },
      end: () => {
        if (records.length > 0) this.#write(principal, records);
      },
    };
  }

  /** Resolves when everything said before is stored, or could not be. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }

  #write({ tenant, ospace, traceparent }: Pick<Principal, "tenant" | "ospace" | "traceparent">, records: NewRecord[]) {
    const { objects, runtime, stored } = this.#with;
    if (this.#writing.size >= TRIGGER_LOG_RUNS_MAX)
      return runtime.log.warn({ tenant }, "what a trigger says is not kept: too much is waiting to be stored");
    const path = `${ospace}${consoleLogPath("trigger")}`;
    const write = objects
      .ingest(systemPrincipal(tenant, ospace, traceparent), path, records)
      .then(
        () => stored(tenant),
        (error: unknown) =>
          runtime.log.warn({ tenant, reason: errorText(error) }, "what a trigger says was not stored"),
      )
      .finally(() => this.#writing.delete(write));
    this.#writing.add(write);
  }
}
