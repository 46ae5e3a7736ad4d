import { errorText, isAppError } from "../../../../common/errors.ts";
import type { Clock } from "../../../../common/time.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { ClassView, NewRecord, ObjectRow, Objects, TenantRoom } from "../../objects/index.ts";
import { rowGate, type RowGate } from "../../query/index.ts";
import { MARKS_FIELD, type Principal } from "../../permissions/index.ts";
import type { Workers } from "../../../workers/index.ts";
import type { RuleBodies } from "../bodies/bodies.ts";
import type { RunLogs } from "../../consolelog/index.ts";
import type { LineFailures } from "./line-failures.ts";
import { type LineMarks, RawBytesShares } from "./line-marks.ts";
import { PathWatch } from "../definitions/paths.ts";
import { HeadingLine, joinedLines } from "./csv-lines.ts";
import { ParseSlices } from "./slices.ts";
import type { RuleTasks } from "../tasks.ts";
import { refusedTime } from "../definitions/times.ts";
import type { ParsedRecord, Rule } from "../types.ts";

export interface LinesOutcome {
  readonly result: LinesResult;
  /** True if there were records and each of them failed. */
  readonly isAllFailed: boolean;
}

/** Result of lines that a rule parsed. */
export interface LinesResult {
  readonly class: string;
  readonly records: number;
  /** Number of records that were removed after an earlier run. They stay removed. */
  readonly removed: number;
  readonly failed: number;
  /** The first `ERRORS_SHOWN` faults, with line numbers from 1. */
  readonly errors: LineError[];
  /** For example fields without a column, each with the number of records that have it. */
  readonly warnings: readonly string[];
}

export interface LineError {
  readonly line: number;
  readonly error: string;
}

export interface LinesDependencies {
  readonly objects: Objects;
  readonly clock: Clock;
  readonly workers?: Workers<RuleTasks> | undefined;
  readonly bodies?: Pick<RuleBodies, "work"> | undefined;
  /** Absent: tenants have no quota. */
  readonly room?: TenantRoom;
  /** Console logs of rules; absent: failures are not logged. */
  readonly logs?: Pick<RunLogs, "keep"> | undefined;
}

/** Lines from one source, stored with the rights of the principal. */
export interface LinesOf {
  readonly principal: Principal;
  readonly rule: Rule;
  /** Name of the source; the rule reads it as `_source`. */
  readonly source: string;
  readonly timeMs: number;
  /**
   * Together with the line number (with `isOrdered`: the number of the row), this text identifies a row. The same
   * identity writes the same row, so the text must be different for each rule.
   */
  readonly identity: string;
  /** True if the lines are a whole file. With `--header`, its first line must be the heading line. */
  readonly isWhole?: boolean;
  /**
   * True if the ids of the rows keep the order of the lines. Absent: ids as in earlier versions, without that order.
   */
  readonly isOrdered?: true;
  /** Lines with malformed bytes. Absent: there are none. */
  readonly marks?: LineMarks | undefined;
  readonly failures: LineFailures;
  readonly signal: AbortSignal;
}

/** Maximum number of listed faults; further ones are only counted. */
export const ERRORS_SHOWN = 20;
/** Maximum number of different unused names to count. A file with more names probably has no column headings. */
const UNUSED_FIELDS_COUNTED = 20;

/** The line end for a rule. In csv it is the line feed only, because quoted values may contain carriage returns. */
export function endOfLines({ csv }: Pick<Rule, "csv">): RegExp {
  return csv ? /\n/ : /\r?\n/;
}

/** Parses lines by a rule and stores the rows, with the rights of the caller. */
export class RuleLines {
  readonly #dependencies: LinesDependencies;

  constructor(dependencies: LinesDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Parses and stores the lines. Each piece has at most `CHANGE_BATCH_MAX` lines; the lines of a csv rule include their
   * carriage returns. `AppError("denied")` if the caller has no write rights on the class.
   */
  async store(
    { principal, rule, source, timeMs, identity, isWhole = false, isOrdered, marks, failures, signal }: LinesOf,
    pieces: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  ): Promise<LinesOutcome> {
    const { clock, workers, bodies } = this.#dependencies;
    const slices = new ParseSlices({ clock, workers, tenant: principal.tenant, signal, bodies });
    const run = new LineRun({ principal, rule, source, timeMs, isWhole, failures, slices });
    // Refuses a caller without write rights on the class before any line is parsed.
    if (rule.class !== "") await this.#gates(run, { class: rule.class });
    for await (const lines of rule.csv ? joinedLines(pieces, rule.csv) : pieces) {
      signal.throwIfAborted();
      await this.#store(run, await run.parse(lines), { identity, isOrdered, marks });
    }
    return { result: run.result(), isAllFailed: run.isAllFailed() };
  }

  async #store(
    run: LineRun,
    parsed: readonly ParsedRecord[],
    of: Pick<LinesOf, "identity" | "isOrdered" | "marks">,
  ): Promise<void> {
    const good = new Map<string, LineRow[]>();
    const shares = new RawBytesShares();
    for (const record of parsed) {
      const line = run.first + record.ordinal;
      if (!record.ok) {
        run.fail(line, record.error);
        continue;
      }
      const { values, by, class: path = run.rule.class, part = "", timeMs = run.timeMs, timeFault } = record;
      const refused = record.timeMs === undefined ? undefined : refusedTime(timeMs, this.#dependencies.clock.nowMs());
      if (refused !== undefined) {
        run.fail(line, refused);
        continue;
      }
      if (timeFault !== undefined) run.misdated(line, timeFault);
      const marked = shares.take(line, of.marks?.marksOf(line, run.linesOf(line)), [run.rule, record]);
      const made = { values, timeMs, ...run.identityOf(of, `${line}${part}`), ...(marked && { marked }) };
      const key = `${path}\n${by?.user ?? ""}`;
      const row = { line, class: path, by, record: made };
      const same = good.get(key);
      if (same) same.push(row);
      else good.set(key, [row]);
    }
    for (const rows of good.values()) await this.#ingestAll(run, rows);
  }

  async #ingestAll(run: LineRun, rows: readonly LineRow[]): Promise<void> {
    const [first] = rows;
    if (first === undefined) return;
    try {
      const gates = await this.#gates(run, first);
      if (gates.some(({ isByRow }) => isByRow)) for (const row of rows) await this.#ingest(run, [row], gates);
      else await this.#ingest(run, rows, gates);
    } catch (error) {
      if (first.by === undefined || !isAppError(error, "denied", "not_found")) throw error;
      for (const { line } of rows) run.fail(line, errorText(error));
    }
  }

  /** Gates of the caller and of the author of the rule. A row is stored only if all of them allow it. */
  async #gates(run: LineRun, { class: path, by }: Pick<LineRow, "class" | "by">): Promise<readonly RowGate[]> {
    const { objects, clock } = this.#dependencies;
    const gates: RowGate[] = [];
    for (const principal of by === undefined ? [run.principal] : [run.principal, by])
      gates.push(await run.gate(principal, path, { objects, clock }));
    return gates;
  }

  /**
   * Stores all records together. If this fails, stores them one by one, so that a bad value does not affect the others.
   */
  async #ingest(run: LineRun, records: readonly LineRow[], gates: readonly RowGate[]): Promise<void> {
    try {
      for (const gate of gates) await gate.check(records.map(({ record }) => record));
      const { objects, room } = this.#dependencies;
      const { principal } = run;
      await room?.require(principal.tenant, { objects: records.length, bytes: 0 });
      const path = records[0]?.class ?? run.rule.class;
      const ids = await objects.unrestricted.ingest(
        principal,
        path,
        records.map(({ record }) => record),
      );
      const found = await objects.visible.get(
        principal,
        ids.map((id) => ({ id, class: path })),
      );
      run.stored(found);
      const marked = records.filter(({ record }) => record.marked !== undefined);
      if (marked.length === 0 || hasMarks((await objects.catalog(principal)).get(path))) return;
      for (const { line } of marked) run.unmarked(line, path);
    } catch (error) {
      if (!isAppError(error, "invalid", "too_large", "denied")) throw error;
      if (records.length === 1) run.fail(records[0]?.line ?? 0, errorText(error));
      else for (const record of records) await this.#ingest(run, [record], gates);
    }
  }
}

/**
 * True if the class has the platform's column `marks`: false for classes of objects, and for a class of records with a
 * column `marks` of its own.
 */
function hasMarks(view: ClassView | undefined): boolean {
  return view?.recordColumns?.some(({ name }) => name === MARKS_FIELD) ?? false;
}

/** A row that a rule made of a line. */
interface LineRow {
  readonly line: number;
  readonly record: NewRecord;
  readonly class: string;
  /** Author of the rule that made the row. Absent: the rule has no author, so only the rights of the caller apply. */
  readonly by?: Principal | undefined;
}

interface GateContext {
  readonly objects: Objects;
  readonly clock: Clock;
}

interface LineRunOptions {
  readonly principal: Principal;
  readonly rule: Rule;
  readonly source: string;
  readonly timeMs: number;
  readonly isWhole: boolean;
  readonly failures: LineFailures;
  readonly slices: ParseSlices;
}

class LineRun {
  readonly principal: Principal;
  readonly rule: Rule;
  readonly timeMs: number;
  readonly #gates = new Map<string, RowGate>();
  readonly #source: string;
  readonly #slices: ParseSlices;
  readonly #failures: LineFailures;
  #lines: readonly string[] = [];
  /** Numbers of the failed lines in the current piece. */
  #failedLines = new Set<number>();
  /** Number of lines with a record that have not failed. */
  #sound = 0;
  /** Number of the first line in the current piece. */
  first = 1;
  #next = 1;
  #records = 0;
  #removed = 0;
  #identified = 0;
  #failed = 0;
  readonly #errors: { line: number; error: string }[] = [];
  readonly #unused = new Map<string, number>();
  readonly #paths: PathWatch;
  readonly #heading: HeadingLine;

  constructor({ principal, rule, source, timeMs, isWhole, failures, slices }: LineRunOptions) {
    this.principal = principal;
    this.rule = rule;
    this.timeMs = timeMs;
    this.#source = source;
    this.#failures = failures;
    this.#slices = slices;
    this.#paths = new PathWatch(rule);
    this.#heading = new HeadingLine(rule.csv, { isWhole });
  }

  /** Write rights of a principal on a class. They are determined once for all lines. */
  async gate(principal: Principal, path: string, context: GateContext): Promise<RowGate> {
    const key = `${principal.user}\n${path}`;
    const known = this.#gates.get(key);
    if (known) return known;
    const gate = rowGate({ principal, catalog: await context.objects.catalog(principal) }, path, context);
    this.#gates.set(key, gate);
    return gate;
  }

  identityOf({ identity, isOrdered }: Pick<LinesOf, "identity" | "isOrdered">, line: string) {
    return isOrdered ? { identity, ordinal: this.#identified++, isOrdered } : { identity: `${identity}/${line}` };
  }

  async parse(given: readonly string[]): Promise<readonly ParsedRecord[]> {
    const headed = this.#heading.take(given);
    const lines = headed.map(({ text }) => text);
    this.first = this.#next;
    this.#next += lines.length;
    this.#lines = lines;
    this.#failedLines = new Set();
    for (const line of lines) if (line.trim() !== "") this.#sound += 1;
    const place = { timeMs: this.timeMs, host: "", source: this.#source, groups: {} };
    const parsed = await this.#slices.parse(
      this.rule,
      headed.map((line) => ({ ...line, ...place })),
      (field) => this.#countUnused(field),
    );
    this.#paths.see(parsed);
    return parsed;
  }

  #countUnused(field: string): void {
    const before = this.#unused.get(field);
    if (before !== undefined || this.#unused.size < UNUSED_FIELDS_COUNTED) this.#unused.set(field, (before ?? 0) + 1);
  }

  /** Counts the rows that exist after the write. The others were removed earlier. */
  stored(found: readonly (ObjectRow | undefined)[]): void {
    const there = found.filter((row) => row !== undefined).length;
    this.#records += there;
    this.#removed += found.length - there;
  }

  /** Number of lines of the record that begins at this line. Only csv records may have several. */
  linesOf(line: number): number {
    return this.rule.csv === undefined ? 1 : (this.#lines[line - this.first] ?? "").split("\n").length;
  }

  misdated(line: number, fault: string): void {
    this.#failures.misdated(line, fault, this.#lines[line - this.first] ?? "");
  }

  unmarked(line: number, path: string): void {
    this.#failures.unmarked(line, path, this.#lines[line - this.first] ?? "");
  }

  fail(line: number, error: string): void {
    this.#failed += 1;
    this.#failures.line(line, error, this.#lines[line - this.first] ?? "");
    if (!this.#failedLines.has(line)) {
      this.#failedLines.add(line);
      this.#sound -= 1;
    }
    if (this.#errors.length < ERRORS_SHOWN) this.#errors.push({ line, error });
  }

  isAllFailed(): boolean {
    return this.#failed > 0 && this.#sound === 0 && this.#records + this.#removed === 0;
  }

  result(): LinesResult {
    const unused = Array.from(
      this.#unused,
      ([field, count]) =>
        `${this.rule.class} has no column for ${field}, which ${counted(count, "record has", "records have")}: left out.`,
    );
    const told = [this.#failures.ofMisdated(), this.#failures.ofUnmarked()].filter((text) => text !== "");
    const warnings = [...unused, ...this.#paths.warnings(), ...told];
    return {
      class: this.rule.class,
      records: this.#records,
      removed: this.#removed,
      failed: this.#failed,
      errors: this.#errors,
      warnings,
    };
  }
}
