import { AppError } from "../../../../common/errors.ts";
import { faultOf, type ScriptPart } from "../source.ts";
import type { PastRow } from "./bind.ts";

/** The last row with former times that was handled. */
export interface LastRow {
  readonly class: string;
  readonly id: string;
  readonly timeUs: number;
  /** True if the object stays unchanged here, so that none of its rows is stored. */
  readonly isKept: boolean;
}

/** Time at which the next state of the row's object began. `undefined` if the row is the first one of its object. */
export function supersededUs(last: LastRow | undefined, row: { readonly class: string } & PastRow): number | undefined {
  return last?.class === row.class && last.id === row.id ? last.timeUs : undefined;
}

/**
 * Checks that all rows of an object are adjacent, newest first: its current state or its removal, then its earlier
 * states. The last version may come before the current state, if it differs from it.
 */
export class PastOrder {
  #last: LastRow | undefined;
  /** True if the last row was a version, and the first row of its object. */
  #isFirstVersion = false;
  /** The part with the first row of an object, while neither its current state nor its removal was found. */
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

  /** Returns the faults found since the last call. `isOver`: there are no more rows. */
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
