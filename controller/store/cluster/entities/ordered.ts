import {
  COUNTED_ROWS_PER_READ,
  ORDERED_READS_PER_PAGE_MAX,
  ORDERED_TIED_KEYS_MAX,
  ORDERED_TIED_SCANS_MAX,
  ORDERED_WINDOW_ROWS,
} from "../../../../common/limits.ts";
import type {
  Entity,
  EntityKey,
  FindRequest,
  FoundPage,
  NumberOrder,
  NumberRange,
  PageRequest,
} from "../../objects.ts";
import { withOrder } from "../../ordering.ts";
import { indexedTerms, isClassTerm } from "../../terms.ts";
import { pageBefore, readCursor, requestText } from "../cursor.ts";
import type { DriverPage, EntityTable } from "./entities.ts";

/** If a window has too many rows, the next window ends below this fraction of the sampled numbers. */
const NARROWED_TO = 1 / 50;

/** The part still to be read, along the order. For a descending order, numbers are negated. */
interface Place {
  readonly from: number;
  /** Entities with the number `from` continue after this key. */
  readonly behind?: EntityKey | undefined;
  /** Set if too many entities have the number `from` to be sorted: they come in the order of the driver. */
  readonly state?: string | undefined;
  /** Number of earlier pages that read the keys of the number `from`. */
  readonly scans?: number | undefined;
}

interface Reading {
  readonly request: FindRequest;
  readonly order: NumberOrder;
  readonly classes: readonly string[];
  readonly end: number;
}

interface Window {
  readonly items: readonly Entity[];
  readonly to: number;
}

/**
 * Finds entities ordered by a number. An index of Cassandra has no order, so a window of numbers is read completely and
 * sorted. If a window has too many rows, the rows read so far are a random sample, because they come in the order of
 * their hashes. The sample determines a narrower window. Each step narrows by a factor of fifty, so two or three reads
 * find the first of a million. Terms that do not name a class are ignored; the caller checks them.
 */
export async function findInOrder(
  keyspace: string,
  entities: EntityTable,
  { request, page, order }: { readonly request: FindRequest; readonly page: PageRequest; readonly order: NumberOrder },
): Promise<FoundPage> {
  const text = requestText(keyspace, "ordered", request);
  const stored = readCursor(text, page);
  const [range] = withOrder(request);
  const sides = [along(range?.from ?? -Infinity, order), along(range?.to ?? Infinity, order)];
  const reading = { request, order, classes: indexedTerms(request.terms).filter(isClassTerm), end: Math.max(...sides) };
  // JSON has no infinite numbers, so they are stored as text.
  const place = stored === undefined ? { from: Math.min(...sides), behind: order.behind } : placeOf(stored);
  if (range !== undefined && (range.from ?? -Infinity) > (range.to ?? Infinity)) return { items: [] };
  const { items, next, isMixed } = await new OrderedFind(entities, reading).page(place, page.limit);
  const mixed = isMixed === true ? { isMixed } : {};
  return next === undefined ? { items, ...mixed } : Object.assign(pageBefore(items, text, textOf(next)), mixed);
}

interface Found {
  readonly items: readonly Entity[];
  readonly next?: Place;
  readonly isMixed?: true;
}

class OrderedFind {
  readonly #entities: EntityTable;
  readonly #of: Reading;

  constructor(entities: EntityTable, of: Reading) {
    this.#entities = entities;
    this.#of = of;
  }

  async page(place: Place, limit: number): Promise<Found> {
    if (place.state !== undefined) return this.#mixed(place, limit);
    let { from } = place;
    let to = this.#of.end;
    for (let reads = 0; reads < ORDERED_READS_PER_PAGE_MAX; reads += 1) {
      const { items, state } = await this.#read(from, to);
      if (state === undefined) {
        const { page, next } = this.#cut({ items, to }, place, limit);
        if (page.length > 0 || next === undefined) return { items: page, ...(next === undefined ? {} : { next }) };
        ({ from } = next);
        to = this.#of.end;
      } else if (from === to) {
        const isSame = place.from === from;
        return this.#equal(isSame ? place : { from }, limit);
      } else to = this.#narrower(items, from, to);
    }
    return { items: [], next: { from, behind: place.from === from ? place.behind : undefined } };
  }

  /** A page of entities that share one number, when they do not fit into a window. */
  async #equal(place: Place, limit: number): Promise<Found> {
    const { scans = 0 } = place;
    const found = scans < ORDERED_TIED_SCANS_MAX ? await this.#byKeys(place, limit) : undefined;
    return found ?? this.#mixed(place, limit);
  }

  /** Reads the keys of all and sorts them, then reads the first entities. Undefined if there are too many keys. */
  async #byKeys({ from, behind, scans = 0 }: Place, limit: number): Promise<Found | undefined> {
    const { classes } = this.#of;
    const request = { classes, ranges: this.#ranges(from, from) };
    let first: readonly EntityKey[] = [];
    let read = 0;
    let state: string | undefined;
    do {
      const page = await this.#entities.keys(request, { size: COUNTED_ROWS_PER_READ, state });
      read += page.keys.length;
      if (read > ORDERED_TIED_KEYS_MAX) return undefined;
      const behindIt = page.keys.filter((key) => this.#isBehind(key, behind));
      first = [...first, ...behindIt].sort((one, other) => this.#byKey(one, other)).slice(0, limit);
      ({ state } = page);
    } while (state !== undefined);
    const last = first.length < limit ? undefined : first.at(-1);
    const next = last === undefined ? this.#beyond(from) : { from, behind: last, scans: scans + 1 };
    const items = (await this.#entities.living(first, this.#of.request.cells)).filter(
      (entity) => this.#number(entity) === from,
    );
    return { items, ...(next === undefined ? {} : { next }) };
  }

  /** A page in the order of the driver. */
  async #mixed({ from, behind, state }: Place, limit: number): Promise<Found> {
    const found = await this.#read(from, from, { size: Math.min(limit, ORDERED_WINDOW_ROWS), state });
    const items = found.items.filter(({ key }) => this.#isBehind(key, behind));
    const next = found.state === undefined ? this.#beyond(from) : { from, behind, state: found.state };
    return { items, isMixed: true, ...(next === undefined ? {} : { next }) };
  }

  #cut(
    { items, to }: Window,
    place: Place,
    limit: number,
  ): { readonly page: readonly Entity[]; readonly next?: Place } {
    const rest = items
      .filter((entity) => this.#number(entity) !== place.from || this.#isBehind(entity.key, place.behind))
      .sort((one, other) => this.#number(one) - this.#number(other) || this.#byKey(one.key, other.key));
    const page = rest.slice(0, limit);
    const last = page.at(-1);
    const next = last && rest.length > limit ? { from: this.#number(last), behind: last.key } : this.#beyond(to);
    return { page, ...(next === undefined ? {} : { next }) };
  }

  #beyond(to: number): Place | undefined {
    return to >= this.#of.end ? undefined : { from: nextUp(to) };
  }

  /** End of a narrower window, estimated from a sample; never the same window. */
  #narrower(sample: readonly Entity[], from: number, to: number): number {
    const numbers = sample.map((entity) => this.#number(entity)).sort((one, other) => one - other);
    const guess = numbers[Math.floor(numbers.length * NARROWED_TO)] ?? from;
    // Most rows have the last number. The window excludes that number, because the other rows come first.
    return guess < to ? guess : -nextUp(-to);
  }

  #number({ numbers }: Entity): number {
    const { order } = this.#of;
    return along(numbers[order.slot] ?? 0, order);
  }

  #read(from: number, to: number, page: DriverPage = WINDOW) {
    const { request, classes } = this.#of;
    const { cells } = request;
    return this.#entities.search({ classes, ranges: this.#ranges(from, to), ...(cells ? { cells } : {}) }, page);
  }

  #ranges(from: number, to: number): readonly NumberRange[] {
    const { request, order } = this.#of;
    const sides = [along(from, order), along(to, order)];
    return [{ slot: order.slot, from: Math.min(...sides), to: Math.max(...sides) }, ...withOrder(request).slice(1)];
  }

  #isBehind(key: EntityKey, behind: EntityKey | undefined): boolean {
    return behind === undefined || this.#byKey(key, behind) > 0;
  }

  #byKey(one: EntityKey, other: EntityKey): number {
    return along(one.cid - other.cid || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0), this.#of.order);
  }
}

const WINDOW = { size: ORDERED_WINDOW_ROWS, state: undefined };

function along(number: number, { descending }: NumberOrder): number {
  return descending ? -number : number;
}

/** The next greater number that a double can represent. */
function nextUp(number: number): number {
  const bits = new DataView(new ArrayBuffer(8));
  // Adding 0 turns minus zero into zero.
  bits.setFloat64(0, number + 0);
  const own = bits.getBigInt64(0);
  bits.setBigInt64(0, own >= 0n ? own + 1n : own - 1n);
  return number === -Infinity ? -Number.MAX_VALUE : bits.getFloat64(0);
}

function textOf(place: Place): string {
  return JSON.stringify({ ...place, from: String(place.from) });
}

function placeOf(text: string): Place {
  const place = JSON.parse(text) as Omit<Place, "from"> & { readonly from: string };
  return { ...place, from: Number(place.from) };
}
