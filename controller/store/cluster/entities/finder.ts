import { OBJECT_PAGE_MAX, FIND_ROUNDS_PER_PAGE_MAX } from "../../../../common/limits.ts";
import type { Entity, FindEstimate, FindRequest, FoundPage, PageRequest } from "../../objects.ts";
import { indexedTerms, isClassTerm } from "../../terms.ts";
import type { EntityTable, FoundEntity } from "./entities.ts";
import { pageBefore, readCursor, requestText } from "../cursor.ts";
import type { Deadline } from "../deadline.ts";
import { findInOrder } from "./ordered.ts";
import type { Posting, Position } from "../postings/posting-stream.ts";
import type { PostingTable } from "../postings/postings.ts";
import type { Tables } from "../tables.ts";

export interface FinderParts {
  readonly tables: Tables;
  readonly entities: EntityTable;
  readonly postings: PostingTable;
}

/**
 * Position of the next page: a position among postings and the compared terms, or the driver's state for an index of
 * `present`.
 */
type Place = PostingPlace | { readonly state: string } | undefined;

interface PostingPlace {
  readonly position: Position;
  /** Indexes of these terms among the requested ones. */
  readonly compared: readonly number[];
}

/**
 * Finds entities by terms and ranges. Terms that name a class, and numbers, have indexes of the table `present`; other
 * terms have postings. Postings are used if the request has such a term. The exception is a request with a range in
 * which every such term is frequent: the range may find fewer entities, so the indexes are used.
 */
export class Finder {
  readonly #of: FinderParts;

  constructor(of: FinderParts) {
    this.#of = of;
  }

  async find(request: FindRequest, page: PageRequest): Promise<FoundPage> {
    const { cassandra, keyspace } = this.#of.tables;
    if (request.order !== undefined)
      return findInOrder(keyspace, this.#of.entities, { request, page, order: request.order });
    const text = requestText(keyspace, "find", request);
    const place = placeOf(readCursor(text, page));
    const deadline = cassandra.deadline();
    const terms = indexedTerms(request.terms);
    const plain = terms.filter((term) => !isClassTerm(term));
    const classes = terms.filter(isClassTerm);
    if (await this.#byPostings(request, { plain, place }, deadline)) {
      const after = place !== undefined && "position" in place ? place : undefined;
      const { items, next } = await this.#narrowed({ request, plain, classes, after, limit: page.limit }, deadline);
      return next === undefined ? { items } : pageBefore(items, text, textOf(next));
    }
    const size = Math.min(page.limit, OBJECT_PAGE_MAX);
    const state = place !== undefined && "state" in place ? place.state : undefined;
    const found = await this.#of.entities.search({ ...request, classes }, { size, state });
    return found.state === undefined
      ? { items: found.items }
      : pageBefore(found.items, text, textOf({ state: found.state }));
  }

  async estimate(request: FindRequest): Promise<FindEstimate> {
    const deadline = this.#of.tables.cassandra.deadline();
    const terms = indexedTerms(request.terms);
    const plain = terms.filter((term) => !isClassTerm(term));
    const classes = terms.filter(isClassTerm);
    const isRead = await this.#byPostings(request, { plain, place: undefined }, deadline);
    const estimated = plain.length === 0 ? [] : await this.#of.postings.estimate(plain, deadline);
    return {
      terms: [
        ...estimated.map((one) => ({ ...one, isRead: isRead && one.isRead })),
        ...classes.map((term) => ({ term, isRead: !isRead })),
      ],
    };
  }

  async #byPostings(
    { ranges = [] }: FindRequest,
    { plain, place }: { readonly plain: readonly string[]; readonly place: Place },
    deadline: Deadline,
  ): Promise<boolean> {
    if (plain.length === 0) return false;
    if (place !== undefined) return "position" in place;
    return ranges.length === 0 || (await this.#of.postings.level(plain, deadline)) === 0;
  }

  /** Reads until the page is full, more in each round. Returns early after `FIND_ROUNDS_PER_PAGE_MAX` rounds. */
  async #narrowed(
    search: Search,
    deadline: Deadline,
  ): Promise<{ readonly items: Entity[]; readonly next?: PostingPlace }> {
    const items: Entity[] = [];
    let { limit } = search;
    let after = search.after?.position;
    let compared = search.after?.compared;
    for (let round = 0; round < FIND_ROUNDS_PER_PAGE_MAX; round += 1) {
      const found = await this.#of.postings.find({ terms: search.plain, compared, after, limit }, deadline);
      const { postings, next } = found;
      compared = found.compared;
      const fitting = await this.#fitting(postings, search, deadline);
      const room = search.limit - items.length;
      items.push(...fitting.slice(0, room).map(({ entity }) => entity));
      const last = fitting[room - 1];
      if (last !== undefined && fitting.length > room) return { items, next: { position: last.posting, compared } };
      if (next === undefined) return { items };
      after = next;
      if (fitting.length === room) break;
      limit = Math.min(OBJECT_PAGE_MAX, 2 * limit);
    }
    return { items, ...(after === undefined || !compared ? {} : { next: { position: after, compared } }) };
  }

  /** The living entities in the classes and ranges whose postings are not from an earlier life. */
  async #fitting(
    postings: readonly Posting[],
    { request, classes }: Search,
    deadline: Deadline,
  ): Promise<readonly { readonly posting: Posting; readonly entity: Entity }[]> {
    const found = await this.#of.entities.find(postings, deadline, request.cells);
    return postings.flatMap((posting, at) => {
      const one = found[at];
      return one !== undefined && posting.timeUs > one.entity.diedUs && fits(one, request, classes)
        ? [{ posting, entity: { ...one.entity, key: { cid: posting.cid, id: posting.id } } }]
        : [];
    });
  }
}

interface Search {
  readonly request: FindRequest;
  readonly plain: readonly string[];
  readonly classes: readonly string[];
  readonly after: PostingPlace | undefined;
  readonly limit: number;
}

function fits(found: FoundEntity, { ranges = [] }: FindRequest, classes: readonly string[]): boolean {
  return (
    classes.every((term) => found.classes.includes(term)) &&
    ranges.every(({ slot, from = -Infinity, to = Infinity }) => {
      const number = found.entity.numbers[slot];
      return number !== undefined && number >= from && number <= to;
    })
  );
}

function textOf(place: Exclude<Place, undefined>): string {
  return JSON.stringify(place);
}

function placeOf(text: string | undefined): Place {
  return text === undefined ? undefined : (JSON.parse(text) as Place);
}
