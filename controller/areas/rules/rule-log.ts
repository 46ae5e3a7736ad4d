import { SCRIPT_LOG_ENTRY_MAX_CHARACTERS, SCRIPT_LOG_MAX_ENTRIES } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { levelOf, type SaidEntry } from "../consolelog/index.ts";

/** What the body of a rule says while it runs for some records. */
export class RuleLog {
  readonly #clock: Clock;
  readonly #entries: SaidEntry[] = [];
  #leftOut = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly add = (level: number, message: string): void => {
    if (this.#entries.length >= SCRIPT_LOG_MAX_ENTRIES) this.#leftOut += 1;
    else this.#entries.push(this.#entry(level, message));
  };

  entries(): readonly SaidEntry[] {
    if (this.#leftOut === 0) return this.#entries;
    return [...this.#entries, this.#entry(levelOf("warn"), `${this.#leftOut} more entries were left out.`)];
  }

  #entry(level: number, message: string): SaidEntry {
    return { level, msg: message.slice(0, SCRIPT_LOG_ENTRY_MAX_CHARACTERS), timeMs: this.#clock.nowMs() };
  }
}
