import type { Random } from "../../../common/time.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvOperation, KvStore } from "../../store/kv.ts";
import { txnOnce } from "../../store/once.ts";
import type { Retry } from "../../store/calls/retry.ts";
import { checkSize, type TableRow } from "./rows.ts";

const NAMES = "tables/names/";
const ROWS = "tables/rows/";
const WRITE_BYTES = 12;

/** `write` is new with every write, so that a writer recognizes its own. */
interface Stored {
  readonly write: string;
  readonly rows: readonly TableRow[];
}

/** A table as read from the store. Revision 0: it does not exist. */
export interface TableState {
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
  readonly #random: Random;

  constructor(kv: KvStore, { retry, random }: { readonly retry: Retry; readonly random: Random }) {
    this.#kv = kv;
    this.#retry = retry;
    this.#random = random;
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
    return { revision: entry?.revision ?? 0, rows: entry && decodeStored<Stored>(entry.value).rows };
  }

  /** Returns false if the table has changed since it was read. */
  async write(name: string, before: TableState, rows: readonly TableRow[]): Promise<boolean> {
    const write = Buffer.from(this.#random.bytes(WRITE_BYTES)).toString("base64url");
    const value = encodeJson({ write, rows } satisfies Stored);
    checkSize(rows, value.length);
    return this.#change(name, before, [
      { kind: "put", key: ROWS + name, value },
      { kind: "put", key: NAMES + name, value: encodeJson({ write }) },
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
