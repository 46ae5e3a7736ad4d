import { isAppError } from "../../../common/errors.ts";
import {
  RULE_FAILED_LINE_MAX_CHARACTERS,
  RULE_FAILURES_LOGGED_MAX,
  SCRIPT_LOG_ENTRY_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { Clock } from "../../../common/time.ts";
import { levelOf, type RunLogs, type SaidEntry } from "../consolelog/index.ts";
import type { Principal } from "../permissions/index.ts";

/** Failures of one call that parses lines by a rule, as entries of the rule's console log. */
export class LineFailures {
  readonly beganMs: number;
  readonly #clock: Clock;
  readonly #source: string;
  readonly #entries: SaidEntry[] = [];
  #leftOut = 0;

  constructor(clock: Clock, source: string) {
    this.#clock = clock;
    this.#source = source;
    this.beganMs = clock.nowMs();
  }

  /** A record that could not be parsed or stored; `line` counts from 1. */
  line(line: number, error: string, raw: string): void {
    if (this.#entries.length >= RULE_FAILURES_LOGGED_MAX) this.#leftOut += 1;
    else this.#add(`Line ${line}: ${error}`, { raw: beginningOf(raw, RULE_FAILED_LINE_MAX_CHARACTERS), count: 1 });
  }

  entries(): readonly SaidEntry[] {
    return this.#entries;
  }

  /** No line follows. `error` ended the call; absent: nothing did. */
  end(error?: unknown): void {
    if (this.#leftOut > 0) this.#add(`${this.#leftOut} more lines failed.`, { count: this.#leftOut });
    if (error !== undefined && !isOfNoRule(error)) this.#add(textOf(error), {});
  }

  #add(msg: string, record: { readonly raw?: string; readonly count?: number }): void {
    const about = { source: this.#source, ...record };
    const text = beginningOf(msg, SCRIPT_LOG_ENTRY_MAX_CHARACTERS);
    this.#entries.push({ level: levelOf("error"), msg: text, timeMs: this.#clock.nowMs(), about });
  }
}

/** Keeps the failures of calls in the console logs of their rules. */
export class FailureLog {
  readonly #clock: Clock;
  readonly #logs: Pick<RunLogs, "keep"> | undefined;

  /** Without `logs` nothing is kept. */
  constructor({ clock, logs }: { readonly clock: Clock; readonly logs?: Pick<RunLogs, "keep"> | undefined }) {
    this.#clock = clock;
    this.#logs = logs;
  }

  /** Runs the call, and has its failures in the log when it is over. */
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

/** A rule that is not there for the caller has no log either. */
function isOfNoRule(error: unknown): boolean {
  return isAppError(error) && error.details?.["reason"] === "no_rule";
}

/** Other errors tell of the inside of the controller. */
function textOf(error: unknown): string {
  return isAppError(error) ? error.message : "A fault of the controller: its own log has the details.";
}
