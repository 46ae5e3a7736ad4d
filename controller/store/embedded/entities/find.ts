import {
  INDEX_ENTRIES_EXAMINED_MAX,
  OBJECT_PAGE_EXAMINED_MAX,
  OBJECT_PAGE_MAX,
  OBJECT_PAGE_MAX_BYTES,
  TERMS_COMPARED_MAX,
} from "../../../../common/limits.ts";
import type { ClassCount, Entity, FindEstimate, FindRequest, NumberRange, Page, PageRequest } from "../../objects.ts";
import { withOrder } from "../../ordering.ts";
import { Cursors } from "../cursor.ts";
import { EntityView } from "./view.ts";
import type { Environment } from "../environment/environment.ts";
import { isAnyDue } from "../environment/expiry.ts";
import type { KeyLists } from "./key-lists.ts";
import { concat, following, prefixEnd } from "../bytes/keys.ts";
import { indexedTerms } from "../../terms.ts";
import { entityKeyBytes, numberKey, numberOwner, numberPrefix, parseEntityKey } from "../bytes/object-keys.ts";

/** With at most this many candidates no range is counted. */
const FEW_CANDIDATES = 64;
/**
 * The index of a term is compared only if at most one in this many entities has it; otherwise the entity is checked.
 */
const COMPARED_ONE_IN = 2;
/** Entries of a range that are counted in any case. */
const RANGE_COUNTED_ALWAYS = 1_000;
/**
 * Above `RANGE_COUNTED_ALWAYS`, entries of a range are counted only up to the number of the rarest term's entities
 * divided by this number. Counting an entry costs far less than reading an entity.
 */
const RANGE_COUNTED_ONE_IN = 4;
/** Limit of counted entries of a range: counting so many takes about 16 ms, in which the thread does nothing else. */
const RANGE_COUNTED_MAX = 250_000;

export interface FinderOptions {
  readonly env: Environment;
  readonly lists: KeyLists;
  readonly nowMs: () => number;
}

interface Question {
  readonly terms: readonly string[];
  /** With an order, the first range is the one to walk along. */
  readonly ranges: readonly NumberRange[];
  readonly order: FindRequest["order"];
}

/** The index that a page walks along: the entities of one term, or the numbers of one range. */
type Driver = { readonly kind: "term" | "range"; readonly index: number };

interface RankedTerm {
  readonly term: string;
  readonly index: number;
  readonly count: number;
}

const DRIVER_BYTES = 2;

/**
 * Finds entities by terms and ranges. It walks along the narrowest index, and skips candidates that are not in the
 * indexes of other selective terms. It reads the remaining entities and checks the other terms and ranges on them. The
 * result is exact, except for cut terms.
 */
export class Finder {
  readonly #options: FinderOptions;

  constructor(options: FinderOptions) {
    this.#options = options;
  }

  find(request: FindRequest, page: PageRequest, place: string): Page<Entity> {
    const question = questionOf(request);
    const cursors = new Cursors([
      place,
      "find",
      question.terms,
      question.ranges.map((range) => [range.slot, range.from ?? null, range.to ?? null]),
      question.order?.descending ?? null,
      // Without `behind` there is no member, so that cursors of the previous version stay valid. The filling of an
      // index stores such a cursor.
      ...(question.order?.behind === undefined ? [] : [question.order.behind]),
    ]);
    const after = cursors.read(page);
    const { objects, terms } = this.#options.env.read();
    const { driver, compared } = this.#way(question, after);
    const matches = this.#matching(question, driver);
    const items: Entity[] = [];
    let [entries, examined, bytes, last] = [0, 0, 0, after?.subarray(DRIVER_BYTES)];
    for (const position of this.#candidates(question, driver, last)) {
      const isLong = entries >= INDEX_ENTRIES_EXAMINED_MAX || examined >= OBJECT_PAGE_EXAMINED_MAX;
      if (isLong || items.length >= page.limit || bytes >= OBJECT_PAGE_MAX_BYTES) {
        return cursors.page(items, concat(fromDriver(driver), last!));
      }
      last = position;
      entries += 1;
      const key = driver.kind === "term" ? position : numberOwner(position);
      if (!compared.every(({ term }) => terms.doesExist(term, key))) continue;
      examined += 1;
      const stored = objects.get(key);
      if (stored === undefined) continue;
      bytes += stored.length;
      const entity = matches(key, stored);
      if (entity !== undefined) items.push(entity);
    }
    return { items };
  }

  /** The index to walk along, and the terms to compare. Where there is only one index, nothing is counted. */
  #way(
    question: Question,
    after: Uint8Array | undefined,
  ): { readonly driver: Driver; readonly compared: readonly RankedTerm[] } {
    const { terms, ranges } = question;
    if (terms.length === 1 && ranges.length === 0) return { driver: { kind: "term", index: 0 }, compared: [] };
    const ranked = this.#ranked(terms);
    const driver = after === undefined ? this.#choose(question, ranked).driver : toDriver(after);
    return { driver, compared: this.#compared(ranked, driver) };
  }

  estimate(request: FindRequest): FindEstimate {
    const question = questionOf(request);
    const ranked = this.#ranked(question.terms);
    const { driver, count: led } = this.#choose(question, ranked);
    const read = new Set([driverTerm(question, driver), ...this.#compared(ranked, driver).map(({ term }) => term)]);
    const terms = ranked.map(({ term, count }) => ({ term, count, isRead: read.has(term) }));
    return driver.kind === "range" ? { terms, range: led } : { terms };
  }

  /** Counts in the index alone, unless the index may still contain expired entities. */
  countClass(term: string, cursor: string | undefined, place: string): ClassCount {
    const { env, nowMs } = this.#options;
    if (cursor === undefined && !isAnyDue(env, nowMs())) return { count: this.#count(term) };
    const page = { limit: OBJECT_PAGE_MAX, ...(cursor === undefined ? {} : { cursor }) };
    const { items, cursor: next } = this.find({ terms: [term] }, page, place);
    return { count: items.length, ...(next === undefined ? {} : { cursor: next }) };
  }

  /** Returns a function that gives the entity if it exists and has all terms and ranges. */
  #matching({ terms, ranges }: Question, driver: Driver): (key: Uint8Array, stored: Uint8Array) => Entity | undefined {
    const context = { lists: this.#options.lists, nowMs: this.#options.nowMs() };
    const all = terms.map((term) => Buffer.from(term));
    // The driver's term need not be checked again, unless a part of the entity has expired.
    const others = driver.kind === "term" ? all.filter((_, index) => index !== driver.index) : all;
    return (key, stored) => {
      const view = EntityView.of(parseEntityKey(key), stored, context);
      if (!view.alive) return undefined;
      const unasked = view.changed ? all : others;
      if (unasked.length > 0 && !view.bears(unasked)) return undefined;
      if (ranges.length === 0) return view;
      const { numbers } = view;
      return ranges.every((range) => lies(numbers[range.slot], range)) ? view : undefined;
    };
  }

  #candidates(question: Question, driver: Driver, after: Uint8Array | undefined): Iterable<Uint8Array> {
    const { terms, numbers } = this.#options.env.tables;
    if (driver.kind === "term") {
      const key = question.terms[driver.index]!;
      return after === undefined ? terms.getValues(key) : terms.getValues(key, { start: following(after) });
    }
    const range = question.ranges[driver.index]!;
    const { start, end } = bounds(range);
    const passed = after ?? passedKey(range, question.order);
    if (!question.order?.descending)
      return numbers.getKeys({ start: passed === undefined ? start : following(passed), end });
    // Neither bound is a key, because keys are longer: it does not matter which bound is exclusive.
    return numbers.getKeys({ start: passed ?? end, end: start, reverse: true, exclusiveStart: true });
  }

  /** The terms with their counts, rarest first. */
  #ranked(terms: readonly string[]): readonly RankedTerm[] {
    if (terms.length === 1) return [{ term: terms[0]!, index: 0, count: this.#count(terms[0]!) }];
    const counted = terms.map((term, index) => ({ term, index, count: this.#count(term) }));
    return counted.sort((a, b) => a.count - b.count);
  }

  #count(term: string): number {
    return this.#options.env.read().terms.getValuesCount(term);
  }

  /** Terms whose indexes exclude candidates before an entity is read. */
  #compared(ranked: readonly RankedTerm[], driver: Driver): readonly RankedTerm[] {
    const others = ranked.filter(({ index }) => driver.kind === "range" || index !== driver.index);
    if (others.length === 0) return others;
    const { entryCount } = this.#options.env.read().objects;
    return others.filter(({ count }) => count * COMPARED_ONE_IN <= entryCount).slice(0, TERMS_COMPARED_MAX);
  }

  /** The narrowest index, or the first that is narrow enough. With an order, the range of the order. */
  #choose(
    { ranges, order }: Question,
    ranked: readonly RankedTerm[],
  ): { readonly driver: Driver; readonly count: number } {
    const [rarest] = ranked;
    if (order !== undefined) return { driver: { kind: "range", index: 0 }, count: rarest?.count ?? Infinity };
    let best: Driver = { kind: "term", index: rarest?.index ?? 0 };
    let count = rarest?.count ?? Infinity;
    if (count <= FEW_CANDIDATES) return { driver: best, count };
    for (const [index, range] of ranges.entries()) {
      const most = countedUpTo(count);
      const matches = this.#countedBelow(range, most);
      if (matches !== undefined || count === Infinity) [best, count] = [{ kind: "range", index }, matches ?? most];
    }
    return { driver: best, count };
  }

  /** Number of entries in the range; `undefined` if there are `most` or more. */
  #countedBelow(range: NumberRange, most: number): number | undefined {
    const { numbers } = this.#options.env.read();
    const within = bounds(range);
    const [reached] = numbers.getKeys({ ...within, offset: most - 1, limit: 1 });
    return reached === undefined ? numbers.getKeysCount(within) : undefined;
  }
}

function questionOf(request: FindRequest): Question {
  return { terms: indexedTerms(request.terms), ranges: withOrder(request), order: request.order };
}

function lies(value: number | undefined, range: NumberRange): boolean {
  return value !== undefined && value >= (range.from ?? -Infinity) && value <= (range.to ?? Infinity);
}

function bounds(range: NumberRange): { readonly start: Uint8Array; readonly end: Uint8Array } {
  const start = numberPrefix(range.slot, range.from ?? -Infinity);
  return { start, end: prefixEnd(numberPrefix(range.slot, range.to ?? Infinity))! };
}

/** The index key of `order.behind`: an ordered page begins after it. */
function passedKey({ slot, from, to }: NumberRange, order: FindRequest["order"]): Uint8Array | undefined {
  const number = order?.descending ? to : from;
  if (order?.behind === undefined || number === undefined) return undefined;
  return numberKey(slot, number, entityKeyBytes(order.behind));
}

function countedUpTo(count: number): number {
  if (count === Infinity) return RANGE_COUNTED_ALWAYS;
  const most = Math.min(RANGE_COUNTED_MAX, Math.ceil(count / RANGE_COUNTED_ONE_IN));
  return Math.min(count, Math.max(RANGE_COUNTED_ALWAYS, most));
}

function driverTerm({ terms }: Question, { kind, index }: Driver): string | undefined {
  return kind === "term" ? terms[index] : undefined;
}

function fromDriver(driver: Driver): Uint8Array {
  return Uint8Array.of(driver.kind === "term" ? 0 : 128, driver.index);
}

function toDriver(place: Uint8Array): Driver {
  return { kind: place[0] === 0 ? "term" : "range", index: place[1]! };
}
