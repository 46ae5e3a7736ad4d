import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open, type Database } from "lmdb";
import { decodeStored, encodePacked } from "../../../controller/store/format.ts";

export interface BareRow {
  readonly key: string;
  readonly cells: ReadonlyMap<string, Uint8Array>;
  readonly terms: readonly string[];
}

/** Objects and an inverted index of terms in plain lmdb: the minimum that an indexed store has to put and get. */
export class BareLmdb {
  readonly #dir: string;
  readonly #root;
  readonly #objects: Database<Uint8Array, string>;
  readonly #terms: Database<string, string>;

  private constructor(dir: string) {
    this.#dir = dir;
    this.#root = open({ path: join(dir, "bare.mdb"), maxDbs: 4 });
    this.#objects = this.#root.openDB({ name: "objects", encoding: "binary" });
    this.#terms = this.#root.openDB({ name: "terms", dupSort: true, encoding: "ordered-binary" });
  }

  static async open(): Promise<BareLmdb> {
    return new BareLmdb(await mkdtemp(join(tmpdir(), "odp-bench-")));
  }

  /** Resolves when the data is flushed. */
  async put(rows: readonly BareRow[]): Promise<void> {
    await this.#root.transaction(() => {
      for (const row of rows) {
        void this.#objects.put(row.key, encodePacked([...row.cells]));
        for (const term of new Set(row.terms)) void this.#terms.put(term, row.key);
      }
    });
    await this.#root.flushed;
  }

  has(key: string): boolean {
    return this.#objects.get(key) !== undefined;
  }

  /** Returns decoded values, because a caller needs them. */
  find(term: string, limit: number): readonly unknown[] {
    const found: unknown[] = [];
    for (const key of this.#terms.getValues(term, { limit })) {
      const bytes = this.#objects.get(key);
      if (bytes) found.push(decodeStored(bytes));
    }
    return found;
  }

  async close(): Promise<void> {
    await this.#root.close();
    await rm(this.#dir, { recursive: true, force: true });
  }
}
