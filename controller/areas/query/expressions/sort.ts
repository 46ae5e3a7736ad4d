import { AppError } from "../../../../common/errors.ts";
import { QUERY_SORT_MAX_ROWS } from "../../../../common/limits.ts";
import type { Row, Value } from "../../../../common/value.ts";
import { compare, type Comparable, type Kind, toComparable } from "./kind.ts";
import { isList, isMap } from "./literal.ts";
import { bytesOf, type MemoryShare } from "./aggregates/memory.ts";
import { canonical } from "./questions.ts";

/** Null sorts before every value. */
export type SortKey = Comparable | null;

export interface SortEntry {
  readonly keys: readonly SortKey[];
  readonly row: Row;
}

interface Numbered extends SortEntry {
  readonly bytes: number;
  /** Order of arrival, which decides between rows with equal keys. */
  readonly arrival: number;
}

type Order<T> = (left: T, right: T) => number;

/** Rows sorted together; few enough not to block the thread. */
const RUN_ROWS = 2_048;
/** Estimated bytes of an entry besides its row, and of each of its keys. */
const ENTRY_BYTES = 32;

export function sortKey(kind: Kind, value: Value | undefined): SortKey {
  if (value === undefined || value === null) return null;
  return toComparable(kind, value) ?? canonical(value);
}

type Memory = Pick<MemoryShare, "take" | "free">;

/** Keeps the first `keep` rows of the order. Without `keep` it keeps all, up to `QUERY_SORT_MAX_ROWS`. */
export class Sorter {
  readonly #order: Order<Numbered>;
  readonly #keep: number | undefined;
  readonly #memory: Memory;
  #runs: Numbered[][] = [];
  #open: Numbered[] = [];
  #arrivals = 0;
  readonly #byKeys: Order<readonly SortKey[]>;
  /** Keys of the last row that is kept, after there are `keep` rows. */
  #worst: readonly SortKey[] | undefined;

  constructor(
    descending: readonly boolean[],
    { keep, memory }: { readonly keep?: number | undefined; readonly memory: Memory },
  ) {
    this.#memory = memory;
    this.#byKeys = orderOf(descending);
    this.#order = (left, right) => this.#byKeys(left.keys, right.keys) || left.arrival - right.arrival;
    this.#keep = keep;
  }

  /** True if a row with these keys will certainly be left out, so the row need not be made. */
  isBeyond(keys: readonly SortKey[]): boolean {
    return this.#worst !== undefined && this.#byKeys(keys, this.#worst) >= 0;
  }

  add(entry: SortEntry): void {
    const bytes = bytesOf(entry.row) + ENTRY_BYTES * (1 + entry.keys.length);
    this.#memory.take(bytes);
    this.#open.push({ ...entry, bytes, arrival: this.#arrivals });
    this.#arrivals += 1;
    if (this.#keep === undefined && this.#arrivals > QUERY_SORT_MAX_ROWS) {
      throw new AppError(
        "too_large",
        `[Exec] ORDER BY over more than ${QUERY_SORT_MAX_ROWS} rows: narrow it by WHERE or give a LIMIT.`,
        {
          details: { limit: "QUERY_SORT_MAX_ROWS" },
        },
      );
    }
    if (this.#keep === undefined ? this.#open.length >= RUN_ROWS : this.#open.length >= this.#keep + RUN_ROWS)
      this.#close();
  }

  #close(): void {
    this.#open.sort(this.#order);
    if (this.#keep === undefined) {
      this.#runs.push(this.#open);
      this.#open = [];
    } else {
      for (const { bytes } of this.#open.splice(this.#keep)) this.#memory.free(bytes);
      if (this.#open.length === this.#keep) this.#worst = this.#open.at(-1)?.keys;
    }
  }

  /** The entries in order. Merges sorted runs while it is read, so the work is spread over the reading. */
  *entries(): Iterable<SortEntry> {
    this.#close();
    yield* merge(this.#keep === undefined ? this.#runs : [this.#open], this.#order);
  }

  *rows(): Iterable<Row> {
    for (const entry of this.entries()) yield entry.row;
  }
}

export function orderOf(descending: readonly boolean[]): Order<readonly SortKey[]> {
  return (left, right) => {
    for (let index = 0; index < descending.length; index += 1) {
      const order = compareKeys(left[index] ?? null, right[index] ?? null);
      if (order !== 0) return descending[index] ? -order : order;
    }
    return 0;
  };
}

function compareKeys(left: SortKey, right: SortKey): number {
  if (left === null || right === null) return left === right ? 0 : left === null ? -1 : 1;
  return compare(left, right);
}

interface Head {
  entry: Numbered;
  readonly rest: Iterator<Numbered>;
}

function* merge(runs: readonly (readonly Numbered[])[], order: Order<Numbered>): Iterable<Numbered> {
  const heap: Head[] = [];
  for (const run of runs) {
    const rest = run[Symbol.iterator]();
    const first = rest.next();
    if (!first.done) heap.push({ entry: first.value, rest });
  }
  const byHead = (left: Head, right: Head): number => order(left.entry, right.entry);
  heapify(heap, byHead);
  for (let top = heap[0]; top; top = heap[0]) {
    yield top.entry;
    const next = top.rest.next();
    if (next.done) replaceTop(heap);
    else top.entry = next.value;
    sink(heap, byHead);
  }
}

function replaceTop(heap: Head[]): void {
  const last = heap.pop();
  if (last && heap.length > 0) heap[0] = last;
}

/** Moves the entry at `from` down to its place in the heap. */
export function sink<T>(heap: T[], order: Order<T>, from = 0): void {
  let at = from;
  for (;;) {
    const least = leastOf(heap, at, order);
    const [own, child] = [heap[at], heap[least]];
    if (least === at || own === undefined || child === undefined) return;
    heap[at] = child;
    heap[least] = own;
    at = least;
  }
}

export function heapify<T>(heap: T[], order: Order<T>): void {
  for (let at = (heap.length >> 1) - 1; at >= 0; at -= 1) sink(heap, order, at);
}

function leastOf<T>(heap: readonly T[], at: number, order: Order<T>): number {
  let least = at;
  for (const child of [2 * at + 1, 2 * at + 2]) {
    const [candidate, best] = [heap[child], heap[least]];
    if (candidate !== undefined && best !== undefined && order(candidate, best) < 0) least = child;
  }
  return least;
}

/** The key as JSON keeps it; integers beyond 2^53 become an object. */
export function packedKey(key: SortKey): Value {
  return typeof key === "bigint" ? { integer: String(key) } : key;
}

/** Absent for a value that is not a key. */
export function unpackedKey(value: Value): SortKey | undefined {
  if (isMap(value))
    return typeof value.integer === "string" && /^-?\d+$/.test(value.integer) ? BigInt(value.integer) : undefined;
  return isList(value) ? undefined : value;
}
