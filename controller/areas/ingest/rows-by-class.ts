import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import type { WriteBasis } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Faults, RefusedRow } from "./faults.ts";

export interface Placed extends RefusedRow {
  /** Receives the fault if the row is refused. */
  readonly faults: Faults;
  /** Author with whose rights the row is written. Absent: the platform. */
  readonly by?: Principal | undefined;
  /** Class definition that was pinned with the rule and determines the row. Absent: the current definition. */
  readonly basis?: WriteBasis | undefined;
}

/** Rows of one class with the same author and basis. */
interface Group {
  readonly path: string;
  readonly by: Principal | undefined;
  readonly basis: WriteBasis | undefined;
  rows: Placed[];
}

/** Collects rows until there are enough for one write. */
export class RowsByClass {
  /** By class, author and basis. */
  readonly #rows = new Map<string, Group>();
  readonly #bases = new Map<WriteBasis, number>();
  #last: Group | undefined;

  add(path: string, row: Placed): void {
    const { by, basis } = row;
    // Successive rows mostly belong to the same group.
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

  /** Removes and yields the groups with at least `atLeast` rows, in pieces of at most `CHANGE_BATCH_MAX` rows. */
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
