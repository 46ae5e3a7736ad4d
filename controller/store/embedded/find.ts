import { OBJECT_PAGE_EXAMINED_MAX, OBJECT_PAGE_MAX_BYTES } from "../../../common/limits.ts";
import type { Entity, FindRequest, NumberRange, Page, PageRequest } from "../objects.ts";
import { Cursors } from "./cursor.ts";
import { EntityView } from "./entity-view.ts";
import type { Environment } from "./environment.ts";
import { concat, following, prefixEnd, textBytes } from "./keys.ts";
import { indexedTerms } from "../terms.ts";
import { numberOwner, numberPrefix, parseEntityKey } from "./object-keys.ts";

/** With fewer candidates than this, looking at each entity is cheaper than asking the other terms first. */
const FEW_CANDIDATES = 64;
/** A range is counted up to here to see whether it narrows more than the terms do. */
const RANGE_COUNT_MAX = 1_000;

interface Question {
  readonly terms: readonly string[];
  readonly ranges: readonly NumberRange[];
}

/** What a page walks along: the entities of one term, or the numbers of one range. */
type Driver = { readonly kind: "term" | "range"; readonly index: number };

const DRIVER_BYTES = 2;

/** Entities by terms and ranges: walks along the narrowest index and checks the rest on the entity. Exact but for cut terms. */
export class Finder {
  readonly #env: Environment;
  readonly #nowMs: () => number;

  constructor(env: Environment, nowMs: () => number) {
    this.#env = env;
    this.#nowMs = nowMs;
  }

  find(request: FindRequest, page: PageRequest, place: string): Page<Entity> {
    const question = { terms: indexedTerms(request.terms), ranges: request.ranges ?? [] };
    const cursors = new Cursors([place, "find", question.terms, question.ranges.map((range) => [range.slot, range.from ?? null, range.to ?? null])]);
    const after = cursors.read(page);
    const [driver, few] = after === undefined ? this.#choose(question) : [toDriver(after), false];
    const nowMs = this.#nowMs();
    const items: Entity[] = [];
    let [examined, bytes, last] = [0, 0, after?.subarray(DRIVER_BYTES)];
    const tables = this.#env.read();
    const others = driver.kind === "term" ? question.terms.filter((_, index) => index !== driver.index) : question.terms;
    const otherKeys = others.map(textBytes);
    for (const position of this.#candidates(question, driver, last)) {
      if (items.length >= page.limit || examined >= OBJECT_PAGE_EXAMINED_MAX || bytes >= OBJECT_PAGE_MAX_BYTES) {
        return { items, cursor: cursors.write(concat(fromDriver(driver), last!)) };
      }
      last = position;
      examined += 1;
      const key = driver.kind === "term" ? position : numberOwner(position);
      if (!few && !otherKeys.every((term) => tables.terms.doesExist(term, key))) continue;
      const stored = tables.objects.get(key);
      if (stored === undefined) continue;
      bytes += stored.length;
      const view = new EntityView(stored, nowMs);
      // What the indexes have said already need not be looked for again, unless something has vanished since.
      const unasked = !view.settled ? question.terms : few ? others : [];
      if (view.alive && (unasked.length === 0 || view.bears(unasked)) && question.ranges.every((range) => lies(view.number(range.slot), range))) {
        items.push(view.toEntity(parseEntityKey(key)));
      }
    }
    return { items };
  }

  #candidates(question: Question, driver: Driver, after: Uint8Array | undefined): Iterable<Uint8Array> {
    const { terms, numbers } = this.#env.tables;
    if (driver.kind === "term") {
      const key = textBytes(question.terms[driver.index]!);
      return after === undefined ? terms.getValues(key) : terms.getValues(key, { start: following(after) });
    }
    const { start, end } = bounds(question.ranges[driver.index]!);
    return numbers.getKeys({ start: after === undefined ? start : following(after), end });
  }

  /** The narrowest index, and whether it has so few candidates that nothing else need be asked first. */
  #choose({ terms, ranges }: Question): [Driver, boolean] {
    let best: Driver = { kind: "term", index: 0 };
    let count = Infinity;
    terms.forEach((term, index) => {
      const matches = this.#env.read().terms.getValuesCount(textBytes(term));
      if (matches < count) [best, count] = [{ kind: "term", index }, matches];
    });
    ranges.forEach((range, index) => {
      const limit = Math.min(count, RANGE_COUNT_MAX);
      const matches = count <= FEW_CANDIDATES ? limit : [...this.#env.read().numbers.getKeys({ ...bounds(range), limit })].length;
      if (matches < limit || count === Infinity) [best, count] = [{ kind: "range", index }, matches];
    });
    return [best, count <= FEW_CANDIDATES];
  }
}

function lies(value: number | undefined, range: NumberRange): boolean {
  return value !== undefined && value >= (range.from ?? -Infinity) && value <= (range.to ?? Infinity);
}

function bounds(range: NumberRange): { readonly start: Uint8Array; readonly end: Uint8Array } {
  const start = numberPrefix(range.slot, range.from ?? -Infinity);
  return { start, end: prefixEnd(numberPrefix(range.slot, range.to ?? Infinity))! };
}

function fromDriver(driver: Driver): Uint8Array {
  return Uint8Array.of(driver.kind === "term" ? 0 : 128, driver.index);
}

function toDriver(place: Uint8Array): Driver {
  return { kind: place[0] === 0 ? "term" : "range", index: place[1]! };
}
