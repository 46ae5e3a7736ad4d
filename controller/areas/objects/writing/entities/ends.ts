import { TERMS_PER_OBJECT_MAX } from "../../../../../common/limits.ts";
import type { Edge, EdgeEnd, Entity, EntityChange, EntityKey } from "../../../../store/objects.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import { CREATED_CELL } from "../../values/celllayout.ts";
import { encodeCell } from "../../values/codec.ts";
import type { ComposedWrite, EntityWrite } from "../../values/compose.ts";
import { createdMs, entityRow } from "../../values/entity.ts";
import { droppedTerms } from "../../values/terms.ts";
import { objectOfTombstone, tombstoneAhead, tombstoneEnd } from "../../values/tombstones.ts";
import { entriesOf } from "./indexentries.ts";
import { outgoingPages } from "../edges/links.ts";
import type { Traces } from "./recreated.ts";
import type { Writing } from "../writing.ts";

type Source = Writing["source"];

/** True if objects of the class expire. Only then `beforeEnds` may yield something for its writes. */
export function expires({ options }: LoadedClass): boolean {
  return options.ttlSeconds !== undefined;
}

/**
 * Yields the changes that must be written before these writes: tombstones of objects that expire, and parts of older
 * objects.
 */
export async function* beforeEnds(
  writes: readonly EntityWrite[],
  composed: readonly ComposedWrite[],
  source: Source,
): AsyncGenerator<readonly EntityChange[]> {
  yield tombstonesAhead(writes);
  for (const [at, { view, old }] of writes.entries()) {
    const change = composed[at]?.change;
    if (old === undefined || change === undefined || !mayEndInParts(view, old.entity)) continue;
    for await (const changes of asOne(view, old.entity, source)) yield besides(change, changes);
  }
}

export function tombstonesAhead(writes: readonly EntityWrite[]): EntityChange[] {
  return writes.flatMap(({ view, key, timeUs }) => tombstoneAhead(view, key, timeUs) ?? []);
}

/**
 * True if the object has no end yet and its next write sets one. An earlier version may have written it: there each
 * cell, term and edge expired on its own, a ttl after its own write.
 */
export function mayEndInParts({ options }: LoadedClass, { endsAtMs: named }: Entity): boolean {
  return options.ttlSeconds !== undefined && named === undefined;
}

/**
 * Writes all parts of an object again, so that no part expires on its own. Neither edges nor indexed values have a
 * limit here. Each part gets the time just above its own: of two writes with one time, Cassandra keeps the one that
 * expires. Concurrent and later writes win. `endsAtMs` absent: the write that follows sets the end.
 */
export async function* asOne(
  view: LoadedClass,
  entity: Entity,
  { endsAtMs: named, ...source }: Source & { readonly endsAtMs?: number },
): AsyncGenerator<readonly EntityChange[]> {
  const { key } = entity;
  for await (const edges of outgoingPages(key, source)) yield edgesAgain(key, edges);
  for (const { timeUs, addTerms = [] } of entriesOf(view, entity))
    for (let from = 0; from < addTerms.length; from += TERMS_PER_OBJECT_MAX)
      yield [{ key, timeUs: timeUs + 1, addTerms: addTerms.slice(from, from + TERMS_PER_OBJECT_MAX) }];
  yield cellsAndEnd(view, entity, named);
}

function edgesAgain(key: EntityKey, edges: readonly Edge[]): EntityChange[] {
  const byTime = new Map<number, EdgeEnd[]>();
  for (const { timeUs, type, to, value } of edges) {
    const known = byTime.get(timeUs) ?? [];
    known.push(value === undefined ? { type, to } : { type, to, value });
    byTime.set(timeUs, known);
  }
  return [...byTime].map(([timeUs, addEdges]) => ({ key, timeUs: timeUs + 1, addEdges }));
}

function cellsAndEnd(view: LoadedClass, entity: Entity, named: number | undefined): EntityChange[] {
  const { key, birthUs, cells, lastUs } = entity;
  const parts = new Map<number, EntityChange>();
  const add = (timeUs: number, part: Partial<EntityChange>): void => {
    const known = parts.get(timeUs) ?? { key, timeUs: timeUs + 1 };
    const merged = part.cells === undefined ? {} : { cells: new Map([...(known.cells ?? []), ...part.cells]) };
    parts.set(timeUs, { ...known, ...part, ...merged });
  };
  for (const { timeUs, numbers } of entriesOf(view, entity)) if (numbers !== undefined) add(timeUs, { numbers });
  cells.keys.forEach((name, at) => {
    const value = new Uint8Array(cells.bytes(at).subarray(cells.start(at), cells.end(at)));
    add(cells.timeUs(at), { cells: new Map([[name, value]]) });
  });
  const created = encodeCell("timestamp", createdMs(entity), "ctime");
  const isMade = cells.keys.includes(CREATED_CELL);
  add(birthUs, { birth: true, ...(isMade ? {} : { cells: new Map([[CREATED_CELL, created]]) }) });
  if (named !== undefined) add(lastUs, { endsAtMs: named });
  return [...parts.values()];
}

/**
 * The change that removes an ended object, or an ended tombstone. `view` is undefined if the class does not exist any
 * more.
 */
export function clearing(view: LoadedClass | undefined, entity: Entity): EntityChange {
  const { key, lastUs } = entity;
  const object = objectOfTombstone(key);
  if (object !== undefined) return tombstoneEnd(object, lastUs);
  const terms = view === undefined ? [] : droppedTerms(view, entityRow(view, entity));
  return { key, timeUs: lastUs, death: true, dropTerms: terms };
}

/**
 * Like `clearing`, but for an end so long ago that no earlier write can still arrive. The removal has at least the time
 * of the end, so that edges to the ended object are recognised by it.
 */
export function clearingLate(view: LoadedClass | undefined, entity: Entity): EntityChange {
  const change = clearing(view, entity);
  const endedUs = Math.floor((entity.endsAtMs ?? 0) * 1_000);
  return objectOfTombstone(entity.key) === undefined ? { ...change, timeUs: Math.max(entity.lastUs, endedUs) } : change;
}

/** The changes that clear the ended ones among the objects to be inserted again. */
export function clearedBefore(view: LoadedClass, recreated: Traces): EntityChange[] {
  return [...recreated.values()].flatMap(({ ended }) => (ended === undefined ? [] : [clearing(view, ended)]));
}

/** The parts without the cells and numbers that `change` writes at the same time. */
function besides(change: EntityChange, parts: readonly EntityChange[]): EntityChange[] {
  return parts.map((part) => (part.timeUs === change.timeUs ? without(change, part) : part));
}

function without(change: EntityChange, part: EntityChange): EntityChange {
  return {
    ...part,
    ...(part.cells && { cells: new Map([...part.cells].filter(([name]) => !change.cells?.has(name))) }),
    ...(part.numbers && { numbers: new Map([...part.numbers].filter(([slot]) => !change.numbers?.has(slot))) }),
  };
}
