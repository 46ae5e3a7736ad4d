import { AppError } from "../../../../common/errors.ts";
import { FILE_LIST_BLOCK_BYTES, FILE_LIST_MAX_BYTES, FILE_LIST_WINDOW_BYTES } from "../../../../common/limits.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import { keptOfLine, lineOf, type KeptEntry } from "./kept-entry.ts";

const LINE_FEED = 10;
/** The last line of a list: one without it was removed, in part or wholly. */
const END = "[]";

/** Size of a list and of what it names. */
export interface ListSize {
  readonly entries: number;
  /** Bytes of all contents. */
  readonly bytes: number;
}

/** Thrown by a reader of a list that was removed, because another one has replaced it. */
export class ListRemoved extends Error {}

/**
 * Lists of entries in the order of their paths, one line of JSON for each. A list is an append stream of the blob store
 * with blocks of whole lines. A second stream, `<name>/index`, has the offset and the first path of each block. A list
 * is written once under a name of its own, and never changed. Memory: one block or window for each writer or reader.
 */
export class EntryLists {
  readonly #blobs: Blobs;

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  /**
   * Writes the entries, which come in the order of paths, and replaces what an earlier attempt wrote under this name.
   * `AppError("too_large")` for more than `FILE_LIST_MAX_BYTES`.
   */
  async write(name: string, entries: AsyncIterable<KeptEntry>): Promise<ListSize> {
    await this.remove(name);
    const blocks = new BlockWriter(this.#blobs, name);
    const index = new BlockWriter(this.#blobs, indexOf(name));
    const size = { entries: 0, bytes: 0 };
    for await (const entry of entries) {
      if (blocks.isAtBlock) await index.add(JSON.stringify([blocks.offset, entry.path]));
      await blocks.add(lineOf(entry));
      if (blocks.offset > FILE_LIST_MAX_BYTES) throw tooLarge();
      size.entries += 1;
      size.bytes += entry.size;
    }
    if (blocks.offset === 0) await index.add(JSON.stringify([0, ""]));
    await blocks.add(END);
    await blocks.end();
    await index.end();
    return size;
  }

  /** All entries. `ListRemoved` if the list is not there, or is removed meanwhile. */
  async *read(name: string, signal?: AbortSignal): AsyncGenerator<KeptEntry> {
    for await (const line of this.#lines(name, signal)) {
      if (line === END) return;
      yield keptOfLine(line);
    }
    throw new ListRemoved(`The list ${name} was removed.`);
  }

  /** The entry of this path. `ListRemoved` if the list is not there any more. */
  async find(name: string, path: string): Promise<KeptEntry | undefined> {
    let offset = 0;
    for await (const line of this.#lines(indexOf(name))) {
      const [at, first] = JSON.parse(line) as [number, string];
      if (first > path) break;
      offset = at;
    }
    for await (const line of this.#lines(name, undefined, offset)) {
      if (line === END) return undefined;
      const entry = keptOfLine(line);
      if (entry.path >= path) return entry.path === path ? entry : undefined;
    }
    throw new ListRemoved(`The list ${name} was removed.`);
  }

  /** Removes the list, if it is there. */
  async remove(name: string): Promise<void> {
    await this.#blobs.removeStream(indexOf(name));
    await this.#blobs.removeStream(name);
  }

  async isThere(name: string): Promise<boolean> {
    return (await this.#blobs.readStream(name, 0, 1)).size > 0;
  }

  async *#lines(stream: string, signal?: AbortSignal, from = 0): AsyncGenerator<string> {
    let rest = Buffer.alloc(0);
    for (let offset = from; ; ) {
      signal?.throwIfAborted();
      const { bytes, size } = await this.#blobs.readStream(stream, offset, FILE_LIST_WINDOW_BYTES);
      if (size < offset) return;
      offset += bytes.length;
      const all = Buffer.concat([rest, bytes]);
      let begin = 0;
      for (let end = all.indexOf(LINE_FEED); end >= 0; end = all.indexOf(LINE_FEED, begin)) {
        yield all.toString("utf8", begin, end);
        begin = end + 1;
      }
      rest = all.subarray(begin);
      if (offset >= size) return;
    }
  }
}

type Blobs = Pick<BlobStore, "append" | "readStream" | "removeStream">;

function indexOf(name: string): string {
  return `${name}/index`;
}

/** Appends lines to a stream in blocks. */
class BlockWriter {
  readonly #blobs: Blobs;
  readonly #stream: string;
  #written = 0;
  #lines: Buffer[] = [];
  #waiting = 0;

  constructor(blobs: Blobs, stream: string) {
    this.#blobs = blobs;
    this.#stream = stream;
  }

  /** Where the next line begins. */
  get offset(): number {
    return this.#written + this.#waiting;
  }

  /** True if the next line begins a block. */
  get isAtBlock(): boolean {
    return this.#waiting === 0;
  }

  async add(line: string): Promise<void> {
    const bytes = Buffer.from(`${line}\n`);
    this.#lines.push(bytes);
    this.#waiting += bytes.length;
    if (this.#waiting >= FILE_LIST_BLOCK_BYTES) await this.end();
  }

  /** Appends what waits. */
  async end(): Promise<void> {
    if (this.#waiting === 0) return;
    await this.#blobs.append(this.#stream, this.#written, Buffer.concat(this.#lines));
    this.#written += this.#waiting;
    this.#lines = [];
    this.#waiting = 0;
  }
}

function tooLarge(): AppError {
  return new AppError("too_large", `The list of the entries has more than ${FILE_LIST_MAX_BYTES} bytes: keep parts.`);
}
