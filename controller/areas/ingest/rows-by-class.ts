import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import type { NewRecord, WriteBasis } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Faults, RefusedRow } from "./faults.ts";

export interface Placed extends RefusedRow {
  /** Takes the row when it is refused. */
  readonly faults: Faults;
  /** With whose rights it is written where these are not the platform's. */
  readonly by?: Principal | undefined;
  /** What it follows from besides its values, as the rule was pinned with it; absent: its class as it is now. */
  readonly basis?: WriteBasis | undefined;
}

/** Rows that wait until there are enough of them for one write. */
export class RowsByClass {
  /** By class, whose rights they are written with, and what they follow from. */
  readonly #rows = new Map<string, { readonly path: string; readonly rows: Placed[] }>();
  readonly #bases = new Map<WriteBasis, number>();

  add(path: string, record: NewRecord, origin: Omit<Placed, "record">): void {
    const key = `${path}\n${origin.by?.user ?? ""}\n${this.#numberOf(origin.basis)}`;
    const known = this.#rows.get(key);
    if (known) known.rows.push({ record, ...origin });
    else this.#rows.set(key, { path, rows: [{ record, ...origin }] });
  }

  #numberOf(basis: WriteBasis | undefined): number {
    if (basis === undefined) return 0;
    const number = this.#bases.get(basis) ?? this.#bases.size + 1;
    this.#bases.set(basis, number);
    return number;
  }

  /** Takes the rows of classes that have at least so many, in pieces of what is taken at once. */
  *take(atLeast: number): Generator<readonly [path: string, rows: readonly Placed[]]> {
    for (const [key, { path, rows }] of this.#rows) {
      if (rows.length < atLeast) continue;
      this.#rows.delete(key);
      for (let from = 0; from < rows.length; from += CHANGE_BATCH_MAX)
        yield [path, rows.slice(from, from + CHANGE_BATCH_MAX)];
    }
  }
}
