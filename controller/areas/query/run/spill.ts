import { type FileHandle, mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { AppError } from "../../../../common/errors.ts";
import {
  OBJECT_PAGE_MAX,
  QUERY_SORT_CHUNK_BYTES,
  QUERY_SORT_MAX_ROWS,
  QUERY_SORT_MEMORY_MAX_BYTES,
  QUERY_SORT_SPILL_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { bytesOf, type MemoryShare } from "../expressions/aggregates/memory.ts";
import { heapify, orderOf, packedKey, sink, type SortEntry, Sorter, unpackedKey } from "../expressions/sort.ts";

/** Number of rows that are written and read together. */
const CHUNK_ROWS = 256;

export interface SpillOptions {
  /** Number of rows that are sorted in memory together. */
  readonly rows?: number;
  readonly memoryBytes?: number;
  readonly maxBytes?: number;
}

interface Chunk {
  readonly position: number;
  readonly length: number;
}

/**
 * Sorts more rows than memory should hold. Sorted runs go to a file and are merged while the answer is read (D. E.
 * Knuth, The Art of Computer Programming 3, 5.4). The file is unlinked right after it is opened, so nothing of it
 * remains, even after a crash. `close` frees its space.
 */
export class SpillingSorter {
  readonly #folder: string;
  readonly #descending: readonly boolean[];
  readonly #rows: number;
  readonly #maxBytes: number;
  readonly #runs: (readonly Chunk[])[] = [];
  readonly #memoryBytes: number;
  readonly #share: MemoryShare;
  #memory: Sorter;
  #inMemory = 0;
  #heldBytes = 0;
  #file: FileHandle | undefined;
  #bytes = 0;

  constructor(
    place: { readonly folder: string; readonly share: MemoryShare },
    descending: readonly boolean[],
    options: SpillOptions = {},
  ) {
    this.#folder = place.folder;
    this.#share = place.share;
    this.#descending = descending;
    this.#memoryBytes = options.memoryBytes ?? QUERY_SORT_MEMORY_MAX_BYTES;
    this.#rows = options.rows ?? QUERY_SORT_MAX_ROWS;
    this.#maxBytes = options.maxBytes ?? QUERY_SORT_SPILL_MAX_BYTES;
    this.#memory = this.#sorter();
  }

  add(entry: SortEntry): void {
    this.#memory.add(entry);
    this.#inMemory += 1;
  }

  /** When true, await `spill` before the next row. */
  get isFull(): boolean {
    return this.#inMemory >= this.#rows || this.#heldBytes >= this.#memoryBytes;
  }

  #sorter(): Sorter {
    const take = (bytes: number): void => {
      this.#share.take(bytes);
      this.#heldBytes += bytes;
    };
    return new Sorter(this.#descending, { memory: { take, free: (bytes) => this.#share.free(bytes) } });
  }

  async spill(): Promise<void> {
    this.#file ??= await openNameless(this.#folder);
    const chunks: Chunk[] = [];
    for (const entries of chunked(this.#memory.entries(), { size: CHUNK_ROWS, bytesOf: ({ row }) => bytesOf(row) }))
      chunks.push(await this.#write(this.#file, entries));
    this.#runs.push(chunks);
    this.#share.free(this.#heldBytes);
    this.#heldBytes = 0;
    this.#memory = this.#sorter();
    this.#inMemory = 0;
  }

  /** The rows in order, page by page. */
  async *pages(): AsyncIterable<readonly Row[]> {
    const file = this.#file;
    if (!file) {
      for (const entries of chunked(this.#memory.entries(), {
        size: OBJECT_PAGE_MAX,
        bytesOf: ({ row }) => bytesOf(row),
      }))
        yield entries.map((entry) => entry.row);
      return;
    }
    if (this.#inMemory > 0) await this.spill();
    yield* mergedPages(
      this.#runs.map((chunks) => new RunReader(file, chunks)),
      this.#descending,
    );
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async #write(file: FileHandle, entries: readonly SortEntry[]): Promise<Chunk> {
    const bytes = Buffer.from(JSON.stringify(entries.map(({ keys, row }) => [keys.map(packedKey), row])));
    const chunk = { position: this.#bytes, length: bytes.length };
    this.#bytes += bytes.length;
    if (this.#bytes > this.#maxBytes) {
      throw new AppError(
        "too_large",
        `[Exec] ORDER BY needs more than ${this.#maxBytes} bytes of disk: narrow it by WHERE or give a LIMIT.`,
        {
          details: { limit: "QUERY_SORT_SPILL_MAX_BYTES" },
        },
      );
    }
    await file.writeFile(bytes);
    return chunk;
  }
}

/** Reads one run from its beginning. */
class RunReader {
  readonly #file: FileHandle;
  readonly #chunks: readonly Chunk[];
  #next = 0;
  #entries: readonly SortEntry[] = [];
  #at = 0;

  constructor(file: FileHandle, chunks: readonly Chunk[]) {
    this.#file = file;
    this.#chunks = chunks;
  }

  /** The next entry. Absent: a chunk must be read first, or the run is over. */
  get entry(): SortEntry | undefined {
    return this.#entries[this.#at];
  }

  advance(): void {
    this.#at += 1;
  }

  async readOn(): Promise<void> {
    const chunk = this.#chunks[this.#next];
    this.#entries = chunk ? entriesOf(await readAt(this.#file, chunk)) : [];
    this.#next += 1;
    this.#at = 0;
  }
}

async function* mergedPages(runs: readonly RunReader[], descending: readonly boolean[]): AsyncIterable<readonly Row[]> {
  const order = orderOf(descending);
  for (const run of runs) await run.readOn();
  const heap = runs.map((run, index) => ({ run, index }));
  // Among equal rows, those of the earlier run come first.
  const byHead = (left: (typeof heap)[number], right: (typeof heap)[number]): number =>
    order(left.run.entry?.keys ?? [], right.run.entry?.keys ?? []) || left.index - right.index;
  heapify(heap, byHead);
  let page: Row[] = [];
  let bytes = 0;
  for (let top = heap[0]; top?.run.entry; top = heap[0]) {
    const { row } = top.run.entry;
    page.push(row);
    bytes += bytesOf(row);
    top.run.advance();
    if (!top.run.entry) await top.run.readOn();
    if (!top.run.entry) removeTop(heap);
    sink(heap, byHead);
    if (page.length < OBJECT_PAGE_MAX && bytes < QUERY_SORT_CHUNK_BYTES) continue;
    yield page;
    page = [];
    bytes = 0;
  }
  if (page.length > 0) yield page;
}

function removeTop<T>(heap: T[]): void {
  const last = heap.pop();
  if (last !== undefined && heap.length > 0) heap[0] = last;
}

/** Splits items into chunks of at most `size` items, fewer if they are large. */
function* chunked<T>(
  items: Iterable<T>,
  { size, bytesOf: bytesOfItem }: { readonly size: number; readonly bytesOf: (item: T) => number },
): Iterable<readonly T[]> {
  let chunk: T[] = [];
  let bytes = 0;
  for (const item of items) {
    chunk.push(item);
    bytes += bytesOfItem(item);
    if (chunk.length < size && bytes < QUERY_SORT_CHUNK_BYTES) continue;
    yield chunk;
    chunk = [];
    bytes = 0;
  }
  if (chunk.length > 0) yield chunk;
}

function entriesOf(bytes: Buffer): readonly SortEntry[] {
  const packed = JSON.parse(bytes.toString()) as readonly (readonly [
    readonly Parameters<typeof unpackedKey>[0][],
    Row,
  ])[];
  return packed.map(([keys, row]) => ({ keys: keys.map((key) => unpackedKey(key) ?? null), row }));
}

async function readAt(file: FileHandle, { position, length }: Chunk): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw new AppError("internal", "The file of a sort is shorter than what was written to it.");
    done += bytesRead;
  }
  return bytes;
}

async function openNameless(folder: string): Promise<FileHandle> {
  await mkdir(folder, { recursive: true });
  const own = await mkdtemp(join(folder, "sort-"));
  try {
    return await open(join(own, "runs"), "wx+", 0o600);
  } finally {
    await rm(own, { recursive: true });
  }
}
