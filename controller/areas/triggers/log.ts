import {
  TRIGGER_LOG_LINE_MAX_CHARACTERS,
  TRIGGER_LOG_LINES_MAX,
  TRIGGER_LOG_RUNS_MAX,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { RunLogs, type ConsoleLogService, type RunLog } from "../consolelog/index.ts";
import type { Principal } from "../permissions/index.ts";

interface Dependencies {
  readonly logs: Pick<ConsoleLogService, "append">;
  readonly runtime: Runtime;
}

const BOUNDS = { entries: TRIGGER_LOG_LINES_MAX, characters: TRIGGER_LOG_LINE_MAX_CHARACTERS };

/**
 * Console logs of triggers, named `<class>#<trigger>`. Runs do not wait until their messages are stored, because writes
 * of objects wait for runs.
 */
export class TriggerLog {
  readonly #runtime: Dependencies["runtime"];
  readonly #logs: RunLogs;
  readonly #writing = new Set<Promise<void>>();

  constructor({ logs, runtime }: Dependencies) {
    this.#runtime = runtime;
    this.#logs = new RunLogs({ kind: "trigger", logs, runtime }, BOUNDS);
  }

  begin(): RunLog {
    return this.#logs.begin();
  }

  /** Starts to store the messages of a run. Drops them if `TRIGGER_LOG_RUNS_MAX` writes are still in progress. */
  end(of: Pick<Principal, "tenant" | "ospace" | "traceparent">, name: string, log: RunLog): void {
    if (log.entries().length === 0) return;
    if (this.#writing.size >= TRIGGER_LOG_RUNS_MAX) {
      const what = "what a trigger says is not kept: too much is waiting to be stored";
      return this.#runtime.log.warn({ tenant: of.tenant, name }, what);
    }
    const write = this.#logs.keep(of, name, log).finally(() => this.#writing.delete(write));
    this.#writing.add(write);
  }

  /** Resolves when all earlier messages are stored or their write has failed. */
  async settled(): Promise<void> {
    await Promise.all(this.#writing);
  }
}
