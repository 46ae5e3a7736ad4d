import { AppError } from "../../../../common/errors.ts";
import { faultOf, type ScriptPart } from "../source.ts";
import type { PastRow } from "./bind.ts";

/** The row of former times that came last. */
export interface LastRow {
  readonly class: string;
  readonly id: string;
  readonly timeUs: number;
  /** Nothing of its object is taken. */
  readonly isKept: boolean;
}

/** When the next state of the object of a row began; `undefined` for the first row of an object. */
export function supersededUs(last: LastRow | undefined, row: { readonly class: string } & PastRow): number | undefined {
  return last?.class === row.class && last.id === row.id ? last.timeUs : undefined;
}

/**
 * Checks that all rows of an object stand together, newest first: its present state or its removal, then the states
 * before. Its last version may stand before its present state where both differ.
 */
export class PastOrder {
  #last: LastRow | undefined;
  /** The last row is a version, and the first row of its object. */
  #isFirstVersion = false;
  /** The part of an object of which nothing says yet what it is now. */
  #open: ScriptPart | undefined;
  readonly #faults: AppError[] = [];

  note(row: { readonly class: string } & PastRow, part: ScriptPart): void {
    const nextUs = supersededUs(this.#last, row);
    if (nextUs === undefined) {
      this.#close();
      if (row.kind === "version" && row.untilMs === undefined) this.#open = part;
    } else if (row.kind === "present" ? !this.#isFirstVersion || row.timeUs !== nextUs : row.timeUs >= nextUs)
      this.#faults.push(faultOf(part, invalid(`${row.id}: the states of an object stand together, newest first.`)));
    if (row.kind === "present") this.#open = undefined;
    this.#isFirstVersion = nextUs === undefined && row.kind === "version";
    this.#last = { class: row.class, id: row.id, timeUs: row.timeUs, isKept: false };
  }

  /** Faults that were found since the last call. `isOver`: nothing follows. */
  faults(isOver: boolean): readonly AppError[] {
    if (isOver) this.#close();
    return this.#faults.splice(0);
  }

  #close(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    const complaint = `${this.#last?.id ?? ""}: its earlier states have no end: neither its present state nor its removal.`;
    this.#faults.push(faultOf(open, invalid(complaint)));
  }
}

function invalid(complaint: string): AppError {
  return new AppError("invalid", `[Valid] ${complaint}`);
}
