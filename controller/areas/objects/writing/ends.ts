import type { Entity, EntityChange } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { CREATED_CELL } from "../values/celllayout.ts";
import { encodeCell } from "../values/codec.ts";
import { endsAtMs, type ComposedWrite, type EntityWrite } from "../values/compose.ts";
import { createdMs, entityRow } from "../values/entity.ts";
import { droppedTerms } from "../values/terms.ts";
import { objectOfTombstone, tombstoneAhead, tombstoneEnd } from "../values/tombstones.ts";
import { indexEntries } from "./indexentries.ts";
import { outgoing } from "./links.ts";
import type { Traces } from "./recreated.ts";
import type { Writing } from "./writing.ts";

type Source = Writing["source"];

/** What comes before the writes of objects that end by themselves. */
export async function beforeEnds(
  writes: readonly EntityWrite[],
  composed: readonly ComposedWrite[],
  source: Source,
): Promise<readonly EntityChange[]> {
  const changes = tombstonesAhead(writes);
  for (const [at, { view, old }] of writes.entries()) {
    const change = composed[at]?.change;
    if (old !== undefined && change !== undefined && endsInParts(view, old.entity))
      changes.push(...besides(change, await asOne(view, old.entity, source)));
  }
  return changes;
}

export function tombstonesAhead(writes: readonly EntityWrite[]): EntityChange[] {
  return writes.flatMap(({ view, key, timeUs }) => tombstoneAhead(view, key, timeUs) ?? []);
}

/**
 * Whether no write named the end of an object that has one. It was written before its class had a ttl, or by an earlier
 * version, in whose stores each cell, term and edge ends so long after its own write.
 */
export function endsInParts({ options }: LoadedClass, { endsAtMs: named }: Entity): boolean {
  return options.ttlSeconds !== undefined && named === undefined;
}

/**
 * All of an object again, so that no part of it ends by itself. Each part bears a time just above its own, as Cassandra
 * keeps what ends of two writes of one time; concurrent and later writes overtake it.
 */
export async function asOne(view: LoadedClass, entity: Entity, source: Source): Promise<EntityChange[]> {
  const { key, birthUs, cells, lastUs } = entity;
  const parts = new Map<number, EntityChange>();
  const add = (timeUs: number, part: Partial<EntityChange>): void => {
    const known = parts.get(timeUs) ?? { key, timeUs: timeUs + 1 };
    const merged = part.cells === undefined ? {} : { cells: new Map([...(known.cells ?? []), ...part.cells]) };
    const edges = part.addEdges === undefined ? {} : { addEdges: [...(known.addEdges ?? []), ...part.addEdges] };
    parts.set(timeUs, { ...known, ...part, ...merged, ...edges });
  };
  for (const { timeUs, addTerms, numbers } of indexEntries(view, entity))
    add(timeUs, { ...(addTerms && { addTerms }), ...(numbers && { numbers }) });
  cells.keys.forEach((name, at) => {
    const value = new Uint8Array(cells.bytes(at).subarray(cells.start(at), cells.end(at)));
    add(cells.timeUs(at), { cells: new Map([[name, value]]) });
  });
  for (const { timeUs, type, to, value } of await outgoing(key, source))
    add(timeUs, { addEdges: [value === undefined ? { type, to } : { type, to, value }] });
  const created = encodeCell("timestamp", createdMs(entity), "ctime");
  const isMade = cells.keys.includes(CREATED_CELL);
  add(birthUs, { birth: true, ...(isMade ? {} : { cells: new Map([[CREATED_CELL, created]]) }) });
  const endMs = endsAtMs(view, lastUs);
  if (endMs !== undefined) add(lastUs, { endsAtMs: endMs });
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

/** Does that for objects which are to be inserted again. */
export function clearedBefore(view: LoadedClass, recreated: Traces): EntityChange[] {
  return [...recreated.values()].flatMap(({ ended }) => (ended === undefined ? [] : [clearing(view, ended)]));
}

/** Without what the change itself writes: its time may be that of a part. */
function besides(change: EntityChange, parts: readonly EntityChange[]): EntityChange[] {
  return parts.map((part) => ({
    ...part,
    ...(part.cells && { cells: new Map([...part.cells].filter(([name]) => !change.cells?.has(name))) }),
    ...(part.numbers && { numbers: new Map([...part.numbers].filter(([slot]) => !change.numbers?.has(slot))) }),
  }));
}
