import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import type { AppError } from "../../../../common/errors.ts";
import { storeDamaged } from "../../damage.ts";

/**
 * The file of LMDB in its form on disk (data version 2, 64 bit, little-endian), read without LMDB, because damaged data
 * would end the process there. It has two meta pages, of which the later one is valid, then pages of trees, pages of
 * long values, and free pages.
 */

/** The header of a page: number, transaction, key size, flags, and the bounds of its free space. */
export const HEADER_BYTES = 24;
export const PAGE_FLAGS = { branch: 0x01, leaf: 0x02, overflow: 0x04, meta: 0x08, sub: 0x40 } as const;
/** Size of the record of a tree: in a meta page, in the main tree, or under a key with many values. */
export const TREE_BYTES = 48;
const META_PAGES = 2;
const META_BYTES = HEADER_BYTES + 24 + 2 * TREE_BYTES + 24;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
const PAGE_MIN_BYTES = 512;
const PAGE_MAX_BYTES = 65_536;
/** The root of a tree without entries. */
const NO_PAGE = 0xffff_ffff_ffff_ffffn;

export interface Tree {
  readonly depth: number;
  readonly entries: number;
  /** `undefined` if there are no entries. */
  readonly root: number | undefined;
}

export interface Meta {
  readonly pageBytes: number;
  readonly free: Tree;
  readonly main: Tree;
  readonly lastPage: number;
  readonly transaction: bigint;
}

export function readTree(bytes: Buffer, at: number): Tree {
  const root = bytes.readBigUInt64LE(at + 40);
  return {
    depth: bytes.readUInt16LE(at + 6),
    entries: Number(bytes.readBigUInt64LE(at + 32)),
    root: root === NO_PAGE ? undefined : Number(root),
  };
}

/** Open until `close`. Pages are read from disk each time; nothing is cached. */
export class PageFile {
  readonly path: string;
  readonly meta: Meta;
  /**
   * Number of whole pages in the file. It may be less than the number of pages ever used, if the last ones are free.
   */
  readonly pageCount: number;
  readonly #descriptor: number;

  /** `AppError("unavailable")` says why the trees cannot be reached. */
  constructor(path: string) {
    this.path = path;
    this.#descriptor = openSync(path, "r");
    try {
      this.meta = this.#readMeta();
      this.pageCount = Math.floor(this.#size() / this.meta.pageBytes);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Shorter than requested at the end of the file. */
  read(page: number, bytes: number): Buffer {
    return this.#bytes(page * this.meta.pageBytes, bytes);
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #readMeta(): Meta {
    const first = this.#metaAt(0);
    const second = this.#metaAt(first.pageBytes);
    if (second.pageBytes !== first.pageBytes) throw damaged(this.path, "its meta pages do not agree");
    return second.transaction > first.transaction ? second : first;
  }

  #metaAt(position: number): Meta {
    const name = position === 0 ? "first" : "second";
    const bytes = this.#bytes(position, META_BYTES);
    if (bytes.length < META_BYTES)
      throw damaged(this.path, `it has ${this.#size()} bytes and ends before its ${name} meta page`);
    const isMeta = (bytes.readUInt16LE(18) & PAGE_FLAGS.meta) !== 0 && bytes.readUInt32LE(HEADER_BYTES) === MAGIC;
    if (!isMeta) throw damaged(this.path, `its ${name} meta page is none`);
    const version = bytes.readUInt32LE(HEADER_BYTES + 4) & 0xffff;
    if (version !== DATA_VERSION)
      throw damaged(this.path, `its ${name} meta page has version ${version} instead of ${DATA_VERSION}`);
    const meta = metaOf(bytes);
    if (!isPageSize(meta.pageBytes))
      throw damaged(this.path, `its ${name} meta page names pages of ${meta.pageBytes} bytes`);
    return meta;
  }

  #size(): number {
    return fstatSync(this.#descriptor).size;
  }

  #bytes(position: number, length: number): Buffer {
    const bytes = Buffer.alloc(length);
    let filled = 0;
    while (filled < length) {
      const count = readSync(this.#descriptor, bytes, filled, length - filled, position + filled);
      if (count === 0) break;
      filled += count;
    }
    return bytes.subarray(0, filled);
  }
}

export function damaged(path: string, why: string): AppError {
  return storeDamaged(`The store's file ${path} is damaged: ${why}. Restore the data folder from a backup.`);
}

/** False for the two meta pages at the beginning, which belong to no tree. */
export function isTreePage(page: number): boolean {
  return Number.isSafeInteger(page) && page >= META_PAGES;
}

function metaOf(bytes: Buffer): Meta {
  const trees = HEADER_BYTES + 24;
  const behind = trees + 2 * TREE_BYTES;
  return {
    // The free tree has no fixed key size; its field contains the page size instead.
    pageBytes: bytes.readUInt32LE(trees),
    free: readTree(bytes, trees),
    main: readTree(bytes, trees + TREE_BYTES),
    lastPage: Number(bytes.readBigUInt64LE(behind)),
    transaction: bytes.readBigUInt64LE(behind + 8),
  };
}

function isPageSize(bytes: number): boolean {
  return bytes >= PAGE_MIN_BYTES && bytes <= PAGE_MAX_BYTES && Number.isInteger(Math.log2(bytes));
}
