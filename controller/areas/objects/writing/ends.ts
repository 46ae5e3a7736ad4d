import { TERMS_PER_OBJECT_MAX } from "../../../../common/limits.ts";
import type { Edge, EdgeEnd, Entity, EntityChange, EntityKey } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { CREATED_CELL } from "../values/celllayout.ts";
import { encodeCell } from "../values/codec.ts";
import type { ComposedWrite, EntityWrite } from "../values/compose.ts";
import { createdMs, entityRow } from "../values/entity.ts";
import { droppedTerms } from "../values/terms.ts";
import { objectOfTombstone, tombstoneAhead, tombstoneEnd } from "../values/tombstones.ts";
import { entriesOf } from "./indexentries.ts";
import { outgoingPages } from "./links.ts";
import type { Traces } from "./recreated.ts";
import type { Writing } from "./writing.ts";

type Source = Writing["source"];

/** Yields the changes that come before the writes of objects that end by themselves. */
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
 * Answers true for an object without an end that gets one with its next write. Parts of it may end by themselves: an
 * earlier version, which let each cell, term and edge end so long after its own write, may have written it.
 */
export function mayEndInParts({ options }: LoadedClass, { endsAtMs: named }: Entity): boolean {
  return options.ttlSeconds !== undefined && named === undefined;
}

/**
 * All of an object again, so that no part of it ends by itself, however many edges and indexed values it has. Each part
 * bears a time just above its own, as Cassandra keeps what ends of two writes of one time; concurrent and later writes
 * overtake it. `endsAtMs` absent: the write that follows names the end.
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

/** Clears up what has ended, of any class or none. */
export function clearing(view: LoadedClass | undefined, entity: Entity): EntityChange {
  const { key, lastUs } = entity;
  const object = objectOfTombstone(key);
  if (object !== undefined) return tombstoneEnd(object, lastUs);
  const terms = view === undefined ? [] : droppedTerms(view, entityRow(view, entity));
  return { key, timeUs: lastUs, death: true, dropTerms: terms };
}

/** The same so long after the end that no write of before can still arrive: edges of before are known by it. */
export function clearingLate(view: LoadedClass | undefined, entity: Entity): EntityChange {
  const change = clearing(view, entity);
  const endedUs = Math.floor((entity.endsAtMs ?? 0) * 1_000);
  return objectOfTombstone(entity.key) === undefined ? { ...change, timeUs: Math.max(entity.lastUs, endedUs) } : change;
}

/** Does that for objects which are to be inserted again. */
export function clearedBefore(view: LoadedClass, recreated: Traces): EntityChange[] {
  return [...recreated.values()].flatMap(({ ended }) => (ended === undefined ? [] : [clearing(view, ended)]));
}

/** Without what the change itself writes at the time of a part. */
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
