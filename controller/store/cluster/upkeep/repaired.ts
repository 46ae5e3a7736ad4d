import { AppError } from "../../../../common/errors.ts";
import { REPAIRED_RANGES_MAX } from "../../../../common/limits.ts";

const OLDEST = -(2n ** 63n);
const NEWEST = 2n ** 63n - 1n;
const RANGE = /^\((-?\d+),\s*(-?\d+)\]$/;

/** One complete repair of these ranges of these tables. */
export interface Repair {
  readonly tables: readonly string[];
  readonly startedMs: number;
  /**
   * `(<token>,<token>]`: above the first, up to and including the second. If the second is not greater, the range wraps
   * around the ring.
   */
  readonly ranges: readonly string[];
}

/** Start of the latest repair of each range, by the range's text. */
type Newest = ReadonlyMap<string, number>;

/** The repaired ranges of a keyspace, with their times. A repeatedly repaired range takes space once. */
export class Repaired {
  /** By the tables that were repaired together. */
  readonly #newest = new Map<string, Map<string, number>>();
  #size = 0;

  /** `AppError("too_large")` beyond `REPAIRED_RANGES_MAX` different ranges. */
  add({ tables, startedMs, ranges }: Repair): void {
    const together = [...tables].sort().join(" ");
    const newest = this.#newest.get(together) ?? new Map<string, number>();
    this.#newest.set(together, newest);
    const before = newest.size;
    for (const range of ranges) newest.set(range, Math.max(startedMs, newest.get(range) ?? startedMs));
    this.#size += newest.size - before;
    if (this.#size > REPAIRED_RANGES_MAX)
      throw new AppError(
        "too_large",
        `Cassandra's history has repairs of more than ${REPAIRED_RANGES_MAX} different ranges of one keyspace.`,
      );
  }

  /** For each table: the time since which every token of it was repaired; `undefined` if some were not. */
  wholeSince(tables: readonly string[]): ReadonlyMap<string, number | undefined> {
    // Tables with the same groups of repairs have the same time.
    const known = new Map<string, number | undefined>();
    const since = tables.map((table) => {
      const groups = [...this.#newest].filter(([together]) => together.split(" ").includes(table));
      const name = groups.map(([together]) => together).join("\n");
      if (!known.has(name)) known.set(name, coveredSince(groups.map(([, newest]) => newest)));
      return [table, known.get(name)] as const;
    });
    return new Map(since);
  }
}

interface Span {
  readonly after: bigint;
  readonly to: bigint;
  readonly startedMs: number;
}

/**
 * Newest first, each span takes the pieces that no other span has taken. The span that takes the last piece gives the
 * time.
 */
function coveredSince(groups: readonly Newest[]): number | undefined {
  const spans = groups.flatMap((newest) => [...newest].flatMap(([range, startedMs]) => spansOf(range, startedMs)));
  const ends = BigInt64Array.from([OLDEST, NEWEST, ...spans.flatMap(({ after, to }) => [after, to])]).sort();
  const places = new Map<bigint, number>();
  for (const end of ends) if (!places.has(end)) places.set(end, places.size);
  const pieces = new Untaken(places.size - 1);
  for (const { after, to, startedMs } of spans.sort((a, b) => b.startedMs - a.startedMs)) {
    pieces.take(places.get(after) ?? 0, places.get(to) ?? 0);
    if (pieces.left === 0) return startedMs;
  }
  return undefined;
}

/** Pieces of the ring that no span has taken yet. A disjoint-set forest finds the next free piece. */
class Untaken {
  left: number;
  readonly #next: Uint32Array;

  constructor(count: number) {
    this.left = count;
    this.#next = Uint32Array.from({ length: count + 1 }, (_, at) => at);
  }

  take(from: number, to: number): void {
    for (let at = this.#find(from); at < to; at = this.#find(at)) {
      this.#next[at] = at + 1;
      this.left -= 1;
    }
  }

  #find(from: number): number {
    let at = from;
    for (let next = this.#at(at); next !== at; next = this.#at(at)) {
      this.#next[at] = this.#at(next);
      at = next;
    }
    return at;
  }

  #at(place: number): number {
    return this.#next[place] ?? place;
  }
}

/** Empty for a text that is no range. No data has the least token. */
function spansOf(range: string, startedMs: number): Span[] {
  const [, from, end] = RANGE.exec(range) ?? [];
  if (from === undefined || end === undefined) return [];
  const [after, to] = [BigInt(from), BigInt(end)];
  if (after < to) return [{ after, to, startedMs }];
  return [
    { after, to: NEWEST, startedMs },
    { after: OLDEST, to, startedMs },
  ].filter((span) => span.after < span.to);
}
