import { SCRIPT_LOG_ENTRY_MAX_CHARACTERS, SCRIPT_LOG_MAX_ENTRIES } from "../../../common/limits.ts";
import { cutText } from "../../../common/text/cut.ts";
import type { Clock } from "../../../common/time.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Runtime } from "../../runtime.ts";
import type { Principal } from "../permissions/index.ts";
import type { ConsoleLogKind } from "./classes.ts";
import { levelOf } from "./levels.ts";
import type { ConsoleLogService, SaidEntry } from "./service.ts";

/** Bounds of the console log of one run. */
export interface RunLogBounds {
  /** Entries beyond this number are only counted; one more entry reports their count. */
  readonly entries: number;
  /** Maximum characters of an entry. Longer text is cut off, and the entry says so. */
  readonly characters: number;
}

export const SCRIPT_LOG_BOUNDS: RunLogBounds = {
  entries: SCRIPT_LOG_MAX_ENTRIES,
  characters: SCRIPT_LOG_ENTRY_MAX_CHARACTERS,
};

const RUN_BYTES = 16;

/** Collects the entries of one run until the run ends. */
export class RunLog {
  readonly beganMs: number;
  readonly #clock: Clock;
  readonly #bounds: RunLogBounds;
  readonly #entries: SaidEntry[] = [];
  #leftOut = 0;

  constructor(clock: Clock, bounds: RunLogBounds) {
    this.#clock = clock;
    this.#bounds = bounds;
    this.beganMs = clock.nowMs();
  }

  /** Adds an entry with a level number of console logs. */
  readonly add = (level: number, message: string): void => {
    if (this.#entries.length >= this.#bounds.entries) this.#leftOut += 1;
    else this.#entries.push(this.#entry(level, message));
  };

  /** Adds the failure of the run, even beyond the bound on entries. */
  fail(message: string): void {
    this.#entries.push(this.#entry(levelOf("error"), message));
  }

  entries(): readonly SaidEntry[] {
    if (this.#leftOut === 0) return this.#entries;
    return [
      ...this.#entries,
      this.#entry(levelOf("warn"), `${counted(this.#leftOut, "more entry was", "more entries were")} left out.`),
    ];
  }

  #entry(level: number, message: string): SaidEntry {
    return { level, msg: cutText(message, this.#bounds.characters), timeMs: this.#clock.nowMs() };
  }
}

interface RunLogsDependencies {
  readonly kind: ConsoleLogKind;
  readonly logs: Pick<ConsoleLogService, "append">;
  readonly runtime: Runtime;
}

/** Stores the entries of runs of one kind. */
export class RunLogs {
  readonly #with: RunLogsDependencies;
  readonly #bounds: RunLogBounds;

  constructor(dependencies: RunLogsDependencies, bounds: RunLogBounds) {
    this.#with = dependencies;
    this.#bounds = bounds;
  }

  begin(): RunLog {
    return new RunLog(this.#with.runtime.clock, this.#bounds);
  }

  /** Never rejects: a log that cannot be stored does not fail the run. */
  async keep(
    of: Pick<Principal, "tenant" | "ospace" | "traceparent">,
    name: string,
    log: Pick<RunLog, "beganMs" | "entries">,
  ): Promise<void> {
    const { kind, logs, runtime } = this.#with;
    const run = Buffer.from(runtime.random.bytes(RUN_BYTES)).toString("base64url");
    try {
      await logs.append(of, { kind, name, run, beganMs: log.beganMs, entries: log.entries() });
    } catch (error) {
      runtime.log.warn({ err: error, kind, name, tenant: of.tenant }, "a console log could not be kept");
    }
  }
}
