import { AppError } from "../../../../common/errors.ts";
import { OBJECT_PAGE_EXAMINED_MAX, OBJECT_PAGE_MAX } from "../../../../common/limits.ts";
import { chained, onePage } from "../../../../common/pages.ts";
import type { Row } from "../../../../common/value.ts";
import type { Entity, EntityKey, ObjectStore, StoredRecord } from "../../../store/objects.ts";
import type { Principal } from "../../permissions/index.ts";
import { PSEUDO_COLUMNS, TAGS } from "../definitions/definition.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { ObjectRow, ReadRequest } from "../types.ts";
import { entityObject } from "../values/entity.ts";
import { recordObject } from "../values/records.ts";
import { branchTerms, mayHaveMoreWords, MORE_WORDS_TERM, valueTerms, wordTerms } from "../values/terms.ts";
import { canonicalText } from "../values/values.ts";
import { cellsOf, columnsRead } from "./columns.ts";
import { inPages, type Place } from "./locate.ts";
import type { TermUnion } from "./narrowing.ts";
import type { Branch, Find, ReadPlan } from "./readplan.ts";
import { mergedTimelines } from "./timelines.ts";

const PAGE_DEFAULT_ROWS = 500;
const PAGE_MIN_ROWS = 16;

export interface ReaderDependencies {
  readonly store: ObjectStore;
}

export interface ReadContext {
  readonly snapshot: Snapshot;
  readonly principal: Principal;
  readonly request: ReadRequest;
}

/** All reads of one tenant's objects. */
export class ObjectReader {
  readonly #store: ObjectStore;

  constructor(of: ReaderDependencies) {
    this.#store = of.store;
  }

  /**
   * The objects in the order of `refs`. Each entry of `refs` lists places of one object; the first place that has an
   * object counts.
   */
  async get(refs: readonly (readonly Place[])[]): Promise<(ObjectRow | undefined)[]> {
    const stored = await this.#stored(refs.flat());
    const found = new Map(stored.map((one) => [one.place, objectOf(one)]));
    return refs.map((candidates) => candidates.map((place) => found.get(place)).find((object) => object !== undefined));
  }

  read(context: ReadContext, plan: ReadPlan): AsyncIterable<readonly ObjectRow[]> {
    const { request } = context;
    const parts: AsyncIterable<readonly ObjectRow[]>[] = [];
    const check = () => checkSignal(request.signal);
    for (const view of plan.provided) parts.push(this.#provided(view, context));
    if (plan.byId !== undefined) parts.push(this.#byId(plan.byId, plan.columns, check));
    for (const branch of plan.branches) {
      for (const find of branch.finds) parts.push(this.#find(context, branch, find));
    }
    if (plan.timelines.length > 0) {
      const columns = columnsRead(request);
      parts.push(mergedTimelines(plan.timelines, { store: this.#store, expected: request.expected, columns, check }));
    }
    return chained(parts);
  }

  async *#provided(view: LoadedClass, { principal, request }: ReadContext): AsyncGenerator<readonly ObjectRow[]> {
    const ids = request.ids && new Set(request.ids);
    for await (const rows of view.provide?.(principal) ?? []) {
      checkSignal(request.signal);
      yield rows.map((row) => providedObject(view, row)).filter(({ id }) => ids?.has(id) ?? true);
    }
  }

  #byId(
    places: readonly Place[],
    columns: ReadonlySet<string> | undefined,
    check: () => void,
  ): AsyncIterable<readonly ObjectRow[]> {
    // Few places, as for a single id, are one page without a generator around it.
    if (places.length > OBJECT_PAGE_EXAMINED_MAX) return this.#byIds(places, columns, check);
    return onePage(async () => {
      check();
      return existing(await this.#stored(places, columns), columns);
    });
  }

  async *#byIds(
    places: readonly Place[],
    columns: ReadonlySet<string> | undefined,
    check: () => void,
  ): AsyncGenerator<readonly ObjectRow[]> {
    for (let from = 0; from < places.length; from += OBJECT_PAGE_MAX) {
      check();
      const stored = await this.#stored(places.slice(from, from + OBJECT_PAGE_MAX), columns);
      // Yields a few objects at a time, so that the caller can let others have the thread: an object of many columns
      // takes long to make.
      for (let at = 0; at < stored.length; at += OBJECT_PAGE_EXAMINED_MAX) {
        const rows = existing(stored.slice(at, at + OBJECT_PAGE_EXAMINED_MAX), columns);
        if (rows.length > 0) yield rows;
      }
    }
  }

  async *#find(context: ReadContext, branch: Branch, find: Find): AsyncGenerator<readonly ObjectRow[]> {
    const { request, snapshot } = context;
    let limit = Math.min(OBJECT_PAGE_MAX, Math.max(PAGE_MIN_ROWS, request.expected ?? PAGE_DEFAULT_ROWS));
    let cursor: string | undefined;
    do {
      checkSignal(request.signal);
      const page = cursor === undefined ? { limit } : { limit, cursor };
      const answer = await this.#store.find(find.request, page);
      // Yields an empty page, too, so that the caller can let others have the thread.
      yield objectsOf(snapshot, branch, { entities: answer.items, find });
      cursor = answer.cursor;
      // The caller's conditions let through fewer objects than expected.
      limit = Math.min(OBJECT_PAGE_MAX, 2 * limit);
    } while (cursor !== undefined);
  }

  /** Stored entities and records in the order of `places`. `objectOf` makes their values. */
  async #stored(places: readonly Place[], columns?: ReadonlySet<string> | undefined): Promise<readonly Stored[]> {
    const living = places.filter((place) => place.view.kind === "entity");
    const cells = columns && cellsOf([...new Set(living.map(({ view }) => view))], columns);
    const entities = await asked(living, (keys) => this.#store.get(keys, cells));
    if (living.length === places.length) return places.map((place, at) => ({ place, entity: entities[at] }));
    const records = await asked(
      places.filter((place) => place.view.kind === "record"),
      (keys) => this.#store.getRecords(keys),
    );
    return inOrder(places, { entities, records });
  }
}

function asked<T>(
  places: readonly Place[],
  ask: (keys: readonly EntityKey[]) => Promise<readonly T[]>,
): Promise<readonly T[]> | readonly T[] {
  const keys = places.map((place) => place.key);
  return keys.length === 0 ? [] : inPages(keys, ask);
}

/** Without `entity` and `record` the object does not exist. */
interface Stored {
  readonly place: Place;
  readonly entity?: Entity | undefined;
  readonly record?: StoredRecord | undefined;
}

function inOrder(
  places: readonly Place[],
  of: {
    readonly entities: readonly (Entity | undefined)[];
    readonly records: readonly (StoredRecord | undefined)[];
  },
): Stored[] {
  let entityAt = 0;
  let recordAt = 0;
  return places.map((place) =>
    place.view.kind === "entity"
      ? { place, entity: of.entities[entityAt++] }
      : { place, record: of.records[recordAt++] },
  );
}

function existing(stored: readonly Stored[], columns: ReadonlySet<string> | undefined): ObjectRow[] {
  const rows: ObjectRow[] = [];
  for (const one of stored) {
    const object = objectOf(one, columns);
    if (object !== undefined) rows.push(object);
  }
  return rows;
}

function objectOf({ place: { view }, entity, record }: Stored, columns?: ReadonlySet<string>): ObjectRow | undefined {
  if (entity !== undefined) return entityObject(view, entity, columns);
  return record === undefined ? undefined : recordObject(view, record);
}

/**
 * The objects of this find. Leaves out objects that another find returns, because a store may return more than is
 * asked.
 */
export function objectsOf(
  snapshot: Snapshot,
  branch: Branch,
  { entities, find }: { readonly entities: readonly Entity[]; readonly find: Find },
): ObjectRow[] {
  const objects: ObjectRow[] = [];
  for (const entity of entities) {
    const view = find.cids.has(entity.key.cid) ? snapshot.byCid(entity.key.cid) : undefined;
    if (view === undefined) continue;
    const object = entityObject(view, entity, branch.columns);
    if (isOfUnion(view, branch, { object, find }) && isOfWords(view, branch, { object, find })) objects.push(object);
  }
  return objects;
}

function isOfUnion(
  view: LoadedClass,
  { narrowing }: Branch,
  of: { readonly object: ObjectRow; readonly find: Find },
): boolean {
  const { union } = narrowing;
  if (union === undefined) return true;
  const borne = borneOf(view, union, of.object.values);
  return union.terms.findIndex((term) => borne.has(term)) === of.find.unionAt;
}

function borneOf(view: LoadedClass, { column: of }: TermUnion, values: Row): ReadonlySet<string> {
  if (of === undefined) return new Set(wordTerms(view, values));
  const column = view.columnByNumber(of.number);
  const borne = new Set(column === undefined ? [] : valueTerms(column, values[column.name]));
  if (column?.number === TAGS.number) for (const term of branchTerms(values)) borne.add(term);
  return borne;
}

/**
 * An object with more words than the index keeps is returned by the find for such objects, unless the index has all
 * words that were asked for.
 */
function isOfWords(
  view: LoadedClass,
  { narrowing }: Branch,
  of: { readonly object: ObjectRow; readonly find: Find },
): boolean {
  if (narrowing.words.length === 0) return true;
  if (!mayHaveMoreWords(view, of.object.values)) return !of.find.moreWords;
  const borne = new Set(wordTerms(view, of.object.values));
  const complete = !borne.has(MORE_WORDS_TERM) || narrowing.words.every((term) => borne.has(term));
  return complete !== of.find.moreWords;
}

function providedObject(view: LoadedClass, row: Row): ObjectRow {
  const values = Object.fromEntries(
    Object.entries(row).filter(([name, value]) => !PSEUDO_COLUMNS.has(name) && value !== null),
  );
  const id = typeof row.id === "string" ? row.id : canonicalText(row.id ?? "");
  return { id, class: view, values, vtimeMs: timeOf(row.vtime), ctimeMs: timeOf(row.ctime ?? row.vtime) };
}

function timeOf(value: Row[string] | undefined): number {
  return typeof value === "number" ? value : 0;
}

export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AppError("cancelled", "The read was stopped.");
}
