import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import type { WriteBasis } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Faults, RefusedRow } from "./faults.ts";

export interface Placed extends RefusedRow {
  /** Takes the row when it is refused. */
  readonly faults: Faults;
  /** With whose rights it is written where these are not the platform's. */
  readonly by?: Principal | undefined;
  /** Definition that the row follows from, as it was pinned with the rule; absent: the present class. */
  readonly basis?: WriteBasis | undefined;
}

/** Rows of one class that are written alike. */
interface Group {
  readonly path: string;
  readonly by: Principal | undefined;
  readonly basis: WriteBasis | undefined;
  rows: Placed[];
}

/** Rows that wait until there are enough of them for one write. */
export class RowsByClass {
  /** By class, whose rights they are written with, and what they follow from. */
  readonly #rows = new Map<string, Group>();
  readonly #bases = new Map<WriteBasis, number>();
  #last: Group | undefined;

  add(path: string, row: Placed): void {
    const { by, basis } = row;
    // Rows that come one after the other are mostly of one kind.
    if (this.#last?.path !== path || this.#last.by !== by || this.#last.basis !== basis)
      this.#last = this.#groupOf(path, row);
    this.#last.rows.push(row);
  }

  #groupOf(path: string, { by, basis }: Placed): Group {
    const key = `${path}\n${by?.user ?? ""}\n${this.#numberOf(basis)}`;
    const known = this.#rows.get(key);
    if (known) return known;
    const group = { path, by, basis, rows: [] };
    this.#rows.set(key, group);
    return group;
  }

  #numberOf(basis: WriteBasis | undefined): number {
    if (basis === undefined) return 0;
    const number = this.#bases.get(basis) ?? this.#bases.size + 1;
    this.#bases.set(basis, number);
    return number;
  }

  /** Takes the rows of classes with at least `atLeast` rows, in pieces of what is taken at once. */
  *take(atLeast: number): Generator<readonly [path: string, rows: readonly Placed[]]> {
    for (const [key, { path, rows }] of this.#rows) {
      if (rows.length < atLeast) continue;
      this.#rows.delete(key);
      this.#last = undefined;
      for (let from = 0; from < rows.length; from += CHANGE_BATCH_MAX)
        yield [path, rows.slice(from, from + CHANGE_BATCH_MAX)];
    }
  }
}
