import { AppError } from "../../../common/errors.ts";
import { IMPORT_FAULTS_MAX } from "../../../common/limits.ts";
import { positionAt, type Insert, type InsertJson } from "../../../common/mql/index.ts";
import { aheadFault } from "../query/index.ts";
import type { BoundWork } from "./past/bind.ts";
import { faultOf, type ScriptPart } from "./source.ts";

/** Counts the rows of an import whose times are too far in the future, and keeps the places of the first ones. */
export class AheadRows {
  readonly #faults: AppError[] = [];
  readonly #nowMs: number;
  #rows = 0;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  note(work: BoundWork, statement: Insert | InsertJson, part: ScriptPart): void {
    const fault = aheadFault(work, this.#nowMs, work.past ? "vtime" : "AT");
    if (fault === undefined || statement.kind !== "insert") return;
    this.#rows += work.rows.length;
    if (this.#faults.length >= IMPORT_FAULTS_MAX) return;
    const place = positionAt(part.text, statement.at?.span.start ?? statement.span.start);
    this.#faults.push(faultOf(part, new AppError(fault.code, fault.message, { details: { ...place } })));
  }

  /**
   * The faults for the error that refuses the import; empty if there is no such row. `isWhole`: the whole script was
   * checked.
   */
  faults(isWhole: boolean): readonly AppError[] {
    if (this.#rows === 0) return [];
    const places = this.#faults.length < IMPORT_FAULTS_MAX ? "" : `; the first ${IMPORT_FAULTS_MAX} places are listed`;
    const verb = this.#rows === 1 ? "row is" : "rows are";
    const total = `${isWhole ? "In all" : "At least"} ${this.#rows} ${verb} too far ahead of the clock${places}.`;
    return [...this.#faults, new AppError("invalid", total)];
  }
}
