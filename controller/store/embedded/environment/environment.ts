import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { open, type Database, type RootDatabase } from "lmdb";
import { AppError } from "../../../../common/errors.ts";
import type { Clock } from "../../../../common/time.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import { decodeText, writeText } from "../../texts.ts";
import { CheckedTable, ValueCodec } from "./checked-table.ts";
import { compareBytes, textBytes } from "../bytes/keys.ts";
import { RecordValues } from "../records/values.ts";
import { commitReason, writeFault } from "./write-faults.ts";
import { WriteQueue } from "./write-queue.ts";

/** Increased when the meaning of stored bytes changes. Older formats are upgraded at open, newer ones refused. */
const FORMAT = 5;
const FORMAT_KEY = textBytes("format");
/** Key of a row that exists if all values have checksums. A version before format 4 wrote values without checksums. */
export const ALL_CHECKED = Buffer.from("checked");
const MAX_READERS = 512;
/** More than needed now, to allow for later formats. */
const MAX_DATABASES = 32;
const OWN_FILE = 0o600;

/**
 * Tables of derived rows without checksums: the value is constant, so the key contains everything. A scrub compares
 * these rows with the data they are derived from.
 */
const INDEXES = ["numbers", "recordTerms", "expiry"] as const;
const CHECKED = [
  "meta",
  "kv",
  "kvlog",
  "kvleases",
  "leasekeys",
  "objects",
  "history",
  "edgesOut",
  "edgesIn",
  "records",
  "blobs",
  "smallContents",
  "marks",
  "streams",
] as const;
export type IndexTableName = (typeof INDEXES)[number];
export type CheckedTableName = (typeof CHECKED)[number];

export function isCheckedTable(name: string): name is CheckedTableName {
  return (CHECKED as readonly string[]).includes(name);
}

/** Versions before format 4 must be able to read the environment's format, so that they refuse this one. */
export function isPlainRow(table: CheckedTableName, key: Uint8Array): boolean {
  return table === "meta" && compareBytes(key, FORMAT_KEY) === 0;
}

export type IndexTable = Database<Uint8Array, Uint8Array>;
/** Keys of `terms` are texts. */
export type Tables = Readonly<
  Record<IndexTableName, IndexTable> &
    Record<CheckedTableName, CheckedTable> & {
      readonly terms: Database<Uint8Array, string>;
      /**
       * The table `records` in another form for walks: keys are read as ids, and an expired or removed record has no
       * value.
       */
      readonly recordValues: Database<Buffer | undefined, Uint8Array | string>;
    }
>;

/** Writes texts directly into the library's memory, without a buffer in between. */
const textKeys = {
  writeKey: writeText,
  readKey: decodeText,
};

/** The values of a dupSort database are sorted like keys, so the library must know how to write them. */
const sortedValues = {
  encode: (value: Uint8Array): Uint8Array => value,
  /** The library's read buffer is overwritten by the next read, so the value is copied. */
  decode(value: Buffer): Uint8Array {
    const copy = Buffer.allocUnsafe(value.length);
    // Only the first `value.length` bytes of the buffer are the value.
    copy.set(value.subarray(0, value.length));
    return copy;
  },
  writeKey(value: Uint8Array, target: Uint8Array, start: number): number {
    target.set(value, start);
    return start + value.length;
  },
};

/** Earlier versions made the file readable for all users. A file of another owner stays unchanged. */
function keepFromOthers(path: string): void {
  const { mode, uid } = statSync(path);
  if ((mode & 0o777) !== OWN_FILE && uid === process.geteuid?.()) chmodSync(path, OWN_FILE);
}

function openRoot(folder: string): RootDatabase<Uint8Array, Uint8Array> {
  try {
    // Without overlapping, a commit resolves when it is on disk: visible and acknowledged data is durable.
    const root = open<Uint8Array, Uint8Array>({
      path: folder,
      maxDbs: MAX_DATABASES,
      maxReaders: MAX_READERS,
      overlappingSync: false,
      ...{ permissionsMode: OWN_FILE },
    });
    keepFromOthers(join(folder, "data.mdb"));
    // The library creates one more promise per commit; if it rejected without a handler, it would end the process.
    root.on("beforecommit", () => queueMicrotask(() => void root.committed.then(undefined, () => undefined)));
    return root;
  } catch (error) {
    throw writeFault(error, folder);
  }
}

/**
 * One LMDB environment: a fixed set of named databases and nothing else in the root (an environment whose root was
 * cleared aborts later processes). Reads are synchronous and see one snapshot until the next `await`. Never use an
 * iterator after an `await`.
 */
export class Environment {
  /** Reads the values of `tables.recordValues`. */
  readonly recordValues = new RecordValues();
  readonly tables: Tables;
  /** The format found at open. Until `upgraded`, stored data may have the form of that older version. */
  readonly format: number;
  readonly #root: RootDatabase<Uint8Array, Uint8Array>;
  readonly #writes: WriteQueue;
  readonly #folder: string;
  #closed = false;

  constructor(folder: string, clock: Clock) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folder = folder;
    this.#root = openRoot(folder);
    this.#writes = new WriteQueue(
      clock,
      (work) => this.#transaction(work),
      (error) => writeFault(error, folder),
    );
    try {
      this.tables = this.#openTables();
      this.format = this.#readFormat(folder);
    } catch (error) {
      void this.close();
      throw writeFault(error, folder);
    }
  }

  /**
   * Runs `action` inside a write transaction; several actions share one commit (`WriteQueue`). Durable and visible when
   * it resolves. `action` is synchronous, sees the writes before it, and must not throw after its first write, because
   * that is not undone. `committed` is called after the commit, even if that was too late for the caller.
   */
  write<T>(action: () => T, committed?: () => void): Promise<T> {
    if (this.#closed) return Promise.reject(new AppError("unavailable", "The store is closed."));
    return this.#writes.add(action, committed);
  }

  /** Throws `AppError("unavailable")` after close. */
  read(): Tables {
    if (this.#closed) throw new AppError("unavailable", "The store is closed.");
    return this.tables;
  }

  /** Call it when all data has the form of this version. */
  async upgraded(): Promise<void> {
    if (this.format < FORMAT) await this.write(() => this.tables.meta.putPlain(FORMAT_KEY, encodePacked(FORMAT)));
  }

  /** True if no write is pending, so that readers see everything written. */
  get isQuiet(): boolean {
    return this.#writes.isIdle;
  }

  /** True if all values have checksums: then a value without one is damaged. */
  get isAllChecked(): boolean {
    return this.read().meta.get(ALL_CHECKED) !== undefined;
  }

  /** Call it when all values have checksums. */
  async allChecked(): Promise<void> {
    await this.write(() => this.tables.meta.put(ALL_CHECKED, encodePacked(true)));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writes.idle();
    await this.#root.close();
  }

  async #transaction(work: () => void): Promise<void> {
    try {
      await this.#root.transaction(work);
    } catch (error) {
      throw writeFault(await commitReason(error), this.#folder);
    }
  }

  #openTables(): Tables {
    const terms = this.#root.openDB<Uint8Array, string>({
      name: "terms",
      encoding: "binary",
      dupSort: true,
      ...{ encoder: sortedValues, keyEncoder: textKeys },
    });
    const indexes = INDEXES.map((name) => [
      name,
      this.#root.openDB<Uint8Array, Uint8Array>({ name, keyEncoding: "binary", encoding: "binary" }),
    ]);
    const checked = CHECKED.map((name) => [name, this.#openChecked(name)]);
    const recordValues = this.#root.openDB<Buffer | undefined, Uint8Array | string>({
      name: "records",
      encoding: "binary",
      ...{ encoder: this.recordValues, keyEncoder: this.recordValues.keys },
    });
    return {
      ...(Object.fromEntries(indexes) as Record<IndexTableName, IndexTable>),
      ...(Object.fromEntries(checked) as Record<CheckedTableName, CheckedTable>),
      terms,
      recordValues,
    };
  }

  #openChecked(name: CheckedTableName): CheckedTable {
    // Values of other tables may be kept for long, and would keep a shared block of memory alive.
    const codec = new ValueCodec(name === "objects" || name === "records" || name === "history");
    const stored = this.#root.openDB<Uint8Array, Uint8Array>({
      name,
      keyEncoding: "binary",
      encoding: "binary",
      ...{ encoder: codec },
    });
    return new CheckedTable(name, stored, codec);
  }

  /** The format of the environment; a new one gets that of this version. */
  #readFormat(folder: string): number {
    const stored = this.tables.meta.get(FORMAT_KEY);
    if (stored === undefined) {
      this.#root.transactionSync(() => {
        this.tables.meta.putPlain(FORMAT_KEY, encodePacked(FORMAT));
        this.tables.meta.put(ALL_CHECKED, encodePacked(true));
      });
      return FORMAT;
    }
    const format = decodeStored<number>(stored);
    if (format <= FORMAT) return format;
    throw new AppError(
      "unsupported",
      `The data in ${folder} has format ${format}; this version knows formats up to ${FORMAT}.`,
    );
  }
}
