import { isAppError } from "../../../../common/errors.ts";
import {
  RULE_FAILED_LINE_MAX_CHARACTERS,
  RULE_FAILURES_LOGGED_MAX,
  SCRIPT_LOG_ENTRY_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import type { Clock } from "../../../../common/time.ts";
import { counted } from "../../../../common/text/counted.ts";
import { levelOf, type RunLogs, type SaidEntry } from "../../consolelog/index.ts";
import type { Principal } from "../../permissions/index.ts";

/** Failures of one call that parses lines by a rule. They become entries of the rule's console log. */
export class LineFailures {
  readonly beganMs: number;
  readonly #clock: Clock;
  readonly #source: string;
  readonly #entries: SaidEntry[] = [];
  #leftOut = 0;
  #misdated: { readonly first: string; readonly raw: string; count: number } | undefined;
  #unmarked: { readonly class: string; readonly raw: string; readonly lines: Set<number> } | undefined;

  constructor(clock: Clock, source: string) {
    this.#clock = clock;
    this.#source = source;
    this.beganMs = clock.nowMs();
  }

  /** Reports a record that could not be parsed or stored. `line` counts from 1. */
  line(line: number, error: string, raw: string): void {
    if (this.#entries.length >= RULE_FAILURES_LOGGED_MAX) this.#leftOut += 1;
    else this.#add(`Line ${line}: ${error}`, { raw: beginningOf(raw, RULE_FAILED_LINE_MAX_CHARACTERS), count: 1 });
  }

  /**
   * Reports a record that gets the time of reading, because its own time cannot be read. All of them are one entry with
   * their number.
   */
  misdated(line: number, fault: string, raw: string): void {
    if (this.#misdated !== undefined) this.#misdated.count += 1;
    else this.#misdated = { first: `Line ${line}: ${fault}`, raw, count: 1 };
  }

  /** Warning about these records; empty if there are none. */
  ofMisdated(): string {
    return this.#misdated === undefined ? "" : misdatedText(this.#misdated);
  }

  /**
   * Reports a malformed line that was stored without its mark, because objects of the class have none. All of them are
   * one warning.
   */
  unmarked(line: number, path: string, raw: string): void {
    this.#unmarked ??= { class: path, raw, lines: new Set() };
    this.#unmarked.lines.add(line);
  }

  /** The warning about malformed lines without marks; empty if there are none. */
  ofUnmarked(): string {
    if (this.#unmarked === undefined) return "";
    const { class: path, lines } = this.#unmarked;
    const [first = 0] = lines;
    const stored = counted(lines.size, "malformed line is", "malformed lines are");
    return `${stored} stored with U+FFFD and without a mark: classes of objects have none, nor has a class with a column marks of its own. First: line ${first}, class ${path}.`;
  }

  entries(): readonly SaidEntry[] {
    return this.#entries;
  }

  /** Call after the last line. `error`: the error that ended the call, if any. */
  end(error?: unknown): void {
    if (this.#leftOut > 0) this.#add(`${counted(this.#leftOut, "more line")} failed.`, { count: this.#leftOut });
    if (this.#misdated !== undefined) {
      const { raw, count } = this.#misdated;
      this.#add(this.ofMisdated(), { raw: beginningOf(raw, RULE_FAILED_LINE_MAX_CHARACTERS), count }, "warn");
    }
    if (this.#unmarked !== undefined) {
      const { raw, lines } = this.#unmarked;
      const record = { raw: beginningOf(raw, RULE_FAILED_LINE_MAX_CHARACTERS), count: lines.size };
      this.#add(this.ofUnmarked(), record, "warn");
    }
    if (error !== undefined && !isOfNoRule(error)) this.#add(textOf(error), {});
  }

  #add(
    msg: string,
    record: { readonly raw?: string; readonly count?: number },
    level: "error" | "warn" = "error",
  ): void {
    const about = { source: this.#source, ...record };
    const text = beginningOf(msg, SCRIPT_LOG_ENTRY_MAX_CHARACTERS);
    this.#entries.push({ level: levelOf(level), msg: text, timeMs: this.#clock.nowMs(), about });
  }
}

/** Warning about records that get the time of reading. `first`: the fault of the first one. */
export function misdatedText({ first, count }: { readonly first: string; readonly count: number }): string {
  return `${count} record${count === 1 ? " has" : "s have"} the time of reading in place of ${count === 1 ? "its" : "their"} own. ${first}`;
}

/** Writes the failures of calls to the console logs of their rules. */
export class FailureLog {
  readonly #clock: Clock;
  readonly #logs: Pick<RunLogs, "keep"> | undefined;

  /** `logs` absent: nothing is logged. */
  constructor({ clock, logs }: { readonly clock: Clock; readonly logs?: Pick<RunLogs, "keep"> | undefined }) {
    this.#clock = clock;
    this.#logs = logs;
  }

  /** Runs the call. Afterwards writes its failures to the log, also if it throws. */
  async of<T>(
    principal: Principal,
    { rule, source }: { readonly rule: string; readonly source: string },
    call: (failures: LineFailures) => Promise<T>,
  ): Promise<T> {
    const failures = new LineFailures(this.#clock, source);
    try {
      const answer = await call(failures);
      failures.end();
      return answer;
    } catch (error) {
      failures.end(error);
      throw error;
    } finally {
      await this.#logs?.keep(principal, rule, failures);
    }
  }
}

/** True if the rule does not exist for the caller: then there is no log either. */
function isOfNoRule(error: unknown): boolean {
  return isAppError(error) && error.details?.["reason"] === "no_rule";
}

/** Message for the log. Other errors than `AppError` could reveal internals of the controller. */
function textOf(error: unknown): string {
  return isAppError(error) ? error.message : "A fault of the controller: its own log has the details.";
}
