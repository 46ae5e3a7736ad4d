import type { Stamped } from "../../../common/revisions.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvOperation, KvStore } from "../../store/kv.ts";
import { txnOnce } from "../../store/once.ts";
import type { Retry } from "../../store/calls/retry.ts";
import { checkSize, type TableRow } from "./rows.ts";

const NAMES = "tables/names/";
const ROWS = "tables/rows/";

/** Each write has another stamp, so a writer recognizes its own. */
interface Stored extends Stamped {
  readonly rows: readonly TableRow[];
}

export type WrittenTable = Required<Stored>;

/** A table as read from the store. Revision 0: it does not exist. */
export interface TableState extends Stamped {
  readonly revision: number;
  readonly rows: readonly TableRow[] | undefined;
}

/**
 * Tables of a tenant in its KvStore. All rows of a table are one value, so that they change together. Names have keys
 * of their own, so that listing them reads no rows.
 */
export class TableStore {
  readonly #kv: KvStore;
  readonly #retry: Retry;

  constructor(kv: KvStore, retry: Retry) {
    this.#kv = kv;
    this.#retry = retry;
  }

  /** Names in byte order. */
  async names(): Promise<readonly string[]> {
    return this.#retry.run(async () => {
      const names: string[] = [];
      for await (const { key } of entriesUnder(this.#kv, NAMES)) names.push(key.slice(NAMES.length));
      return names;
    });
  }

  async read(name: string): Promise<TableState> {
    const entry = await this.#retry.run(() => this.#kv.get(ROWS + name));
    if (entry === undefined) return { revision: 0, rows: undefined };
    const { rows, stamp } = decodeStored<Stored>(entry.value);
    return { revision: entry.revision, rows, stamp };
  }

  /** Returns false if the table has changed since it was read. */
  async write(name: string, before: TableState, next: WrittenTable): Promise<boolean> {
    const value = encodeJson(next);
    const head = encodeJson({ stamp: next.stamp });
    checkSize(next.rows, value.length - head.length);
    return this.#change(name, before, [
      { kind: "put", key: ROWS + name, value },
      { kind: "put", key: NAMES + name, value: head },
    ]);
  }

  /** Returns false if the table has changed since it was read. */
  async remove(name: string, before: TableState): Promise<boolean> {
    return this.#change(name, before, [
      { kind: "delete", key: ROWS + name },
      { kind: "delete", key: NAMES + name },
    ]);
  }

  async #change(name: string, { revision }: TableState, then: readonly KvOperation[]): Promise<boolean> {
    const request = { if: [{ key: ROWS + name, revision }], then };
    const { ok } = await txnOnce(this.#kv, request, (write) => this.#retry.run(write));
    return ok;
  }
}
