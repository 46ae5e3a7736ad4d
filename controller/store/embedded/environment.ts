import { chmodSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { open, type Database, type RootDatabase } from "lmdb";
import { AppError } from "../../../common/errors.ts";
import { STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { decodeStored, encodePacked } from "../format.ts";
import { decodeText, writeText } from "../texts.ts";
import { textBytes } from "./keys.ts";
import { RecordValues } from "./record-values.ts";
import { commitReason, writeFault } from "./write-faults.ts";
import { WriteQueue } from "./write-queue.ts";

/** Raised when the meaning of stored bytes changes; older ones are upgraded at open, newer ones refused. */
const FORMAT = 4;
const FORMAT_KEY = textBytes("format");
const MAX_READERS = 512;
/** Room for later formats. */
const MAX_DATABASES = 32;
const OWN_FILE = 0o600;

export type Table = Database<Uint8Array, Uint8Array>;

const PLAIN = [
  "meta",
  "kv",
  "kvlog",
  "kvleases",
  "leasekeys",
  "history",
  "edgesOut",
  "edgesIn",
  "numbers",
  "records",
  "recordTerms",
  "expiry",
  "blobs",
  "marks",
  "streams",
] as const;
export type TableName = (typeof PLAIN)[number] | "objects";
/** Keys of `terms` are texts. */
export type Tables = Readonly<
  Record<TableName, Table> & {
    readonly terms: Database<Uint8Array, string>;
    /** What `records` has, for walks: keys are written as there and read as ids, and what is over has no value. */
    readonly recordValues: Database<Buffer | undefined, Uint8Array | string>;
  }
>;

/**
 * A read of the library lies in a buffer that the next one overwrites: copies of small values share pieces of memory.
 */
const copiedValues = {
  encode: (value: Uint8Array): Uint8Array => value,
  decode(value: Buffer): Uint8Array {
    const copy = Buffer.allocUnsafe(value.length);
    // Only the first `value.length` bytes of the buffer are the value.
    copy.set(value.subarray(0, value.length));
    return copy;
  },
};

/** Written into the library's own memory, without bytes of their own. */
const textKeys = {
  writeKey: writeText,
  readKey: decodeText,
};

/** The values of a dupSort database are sorted like keys, so the library wants to know how they are written. */
const sortedValues = {
  ...copiedValues,
  writeKey(value: Uint8Array, target: Uint8Array, start: number): number {
    target.set(value, start);
    return start + value.length;
  },
};

/** Earlier versions made it readable to all users. A file of another owner stays as that one wants it. */
function keepFromOthers(path: string): void {
  const { mode, uid } = statSync(path);
  if ((mode & 0o777) !== OWN_FILE && uid === process.geteuid?.()) chmodSync(path, OWN_FILE);
}

function openRoot(folder: string): RootDatabase<Uint8Array, Uint8Array> {
  try {
    // Without overlapping a commit is resolved when it is on the disk: what readers see is durable, and so is what is
    // acknowledged.
    const root = open<Uint8Array, Uint8Array>({
      path: folder,
      maxDbs: MAX_DATABASES,
      maxReaders: MAX_READERS,
      overlappingSync: false,
      ...{ permissionsMode: OWN_FILE },
    });
    keepFromOthers(join(folder, "data.mdb"));
    // The library makes one more promise per commit, which is its own: rejected without a handler it would end the
    // process.
    root.on("beforecommit", () => queueMicrotask(() => void root.committed.then(undefined, () => undefined)));
    return root;
  } catch (error) {
    throw writeFault(error, folder);
  }
}

/**
 * One LMDB environment: a fixed set of named databases and nothing else in the root (an environment whose root was
 * cleared aborts later processes). Reads are synchronous and see one snapshot until the next `await`; never hold an
 * iterator over one.
 */
export class Environment {
  /** How `tables.recordValues` reads. */
  readonly recordValues = new RecordValues();
  readonly tables: Tables;
  /** As it was found; until `upgraded`, what lies here may have the form of that older version. */
  readonly format: number;
  readonly #root: RootDatabase<Uint8Array, Uint8Array>;
  readonly #writes: WriteQueue;
  readonly #clock: Clock;
  readonly #folder: string;
  #closed = false;

  constructor(folder: string, clock: Clock) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#clock = clock;
    this.#folder = folder;
    this.#root = openRoot(folder);
    this.#writes = new WriteQueue(clock, (work) => this.#root.transaction(work));
    try {
      this.tables = this.#openTables();
      this.format = this.#readFormat(folder);
    } catch (error) {
      void this.close();
      throw writeFault(error, folder);
    }
  }

  /**
   * Runs `action` inside a write transaction, several of them sharing one commit (`WriteQueue`). Durable and visible
   * when it resolves.
   * `action` is synchronous, sees the writes before it, and must not throw after its first write: that would not be
   * undone. `committed` is called after the commit, also when that came too late for the caller.
   */
  async write<T>(action: () => T, committed?: () => void): Promise<T> {
    if (this.#closed) throw new AppError("unavailable", "The store is closed.");
    let cancel = (): void => {};
    const late = new Promise<never>((_, reject) => {
      cancel = this.#clock.after(STORE_CALL_DEADLINE_MS, () =>
        reject(new AppError("unknown_outcome", "The disk did not answer in time.")),
      );
    });
    try {
      return await Promise.race([this.#commit(action, committed), late]);
    } finally {
      cancel();
    }
  }

  /** Throws `AppError("unavailable")` once closed. */
  read(): Tables {
    if (this.#closed) throw new AppError("unavailable", "The store is closed.");
    return this.tables;
  }

  /** To be called when everything has the form of this version. */
  async upgraded(): Promise<void> {
    if (this.format < FORMAT) await this.write(() => void this.tables.meta.put(FORMAT_KEY, encodePacked(FORMAT)));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writes.idle();
    await this.#root.close();
  }

  async #commit<T>(action: () => T, committed: (() => void) | undefined): Promise<T> {
    try {
      const result = await this.#writes.add(action);
      committed?.();
      return result;
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
    const plain = PLAIN.map((name) => [
      name,
      this.#root.openDB<Uint8Array, Uint8Array>({ name, keyEncoding: "binary", encoding: "binary" }),
    ]);
    const objects = this.#root.openDB<Uint8Array, Uint8Array>({
      name: "objects",
      keyEncoding: "binary",
      encoding: "binary",
      ...{ encoder: copiedValues },
    });
    const recordValues = this.#root.openDB<Buffer | undefined, Uint8Array | string>({
      name: "records",
      encoding: "binary",
      ...{ encoder: this.recordValues, keyEncoder: this.recordValues.keys },
    });
    return { ...(Object.fromEntries(plain) as Record<(typeof PLAIN)[number], Table>), objects, terms, recordValues };
  }

  /** The format of the environment; a new one gets that of this version. */
  #readFormat(folder: string): number {
    const stored = this.tables.meta.get(FORMAT_KEY);
    if (stored === undefined) {
      this.tables.meta.putSync(FORMAT_KEY, encodePacked(FORMAT));
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
