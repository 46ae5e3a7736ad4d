import { AppError } from "../../../common/errors.ts";
import { ulidOf, ulidTimeMs } from "../../../common/ids.ts";
import { CHANGE_BATCH_MAX, EDGES_PER_WRITE_MAX, OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { EdgeEnd, Entity, EntityChange, EntityKey, ObjectStore, StoredRecord } from "../../store/objects.ts";
import { compose, type ComposedWrite, type EntityWrite } from "./compose.ts";
import { encodeVersion, entityRow } from "./entity.ts";
import { GRAVES_CID, graveOf } from "./graves.ts";
import { keyFromColumns, RepeatableIds, wholeId, type IdSource } from "./identity.ts";
import { findEntities, inPages, placeText, resolveTargets, type Place } from "./locate.ts";
import type { Patience } from "./patience.ts";
import { KeyedQueue } from "./queue.ts";
import { recordId, recordOf } from "./records.ts";
import { checkAll, checkEdits, checkRecordRow, checkRow, type CheckedRow, type LinkEdit } from "./rows.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Edit, NewRecord, ObjectChangeEvent } from "./types.ts";
import type { LoadedClass } from "./views.ts";
import { WriteClock } from "./writeclock.ts";

export type WriteEvent = Pick<ObjectChangeEvent, "class" | "id" | "timeMs" | "action" | "fields">;

export interface WriterDependencies {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  readonly patience: Patience;
}

/** What one call writes with: the definitions it began with, and who is told. */
export interface WriteContext {
  readonly snapshot: Snapshot;
  /** Absent when nobody listens. */
  readonly tell: ((events: readonly WriteEvent[]) => void) | undefined;
}

interface Loaded {
  readonly entity: Entity;
  readonly row: Row;
}

/** All writes of one tenant's objects in this controller. Those of one object queue, so reading, merging and writing it is exact. */
export class ObjectWriter {
  readonly #store: ObjectStore;
  readonly #runtime: Runtime;
  readonly #patience: Patience;
  readonly #queue = new KeyedQueue();
  readonly #clock: WriteClock;

  constructor(of: WriterDependencies) {
    this.#store = of.store;
    this.#runtime = of.runtime;
    this.#patience = of.patience;
    this.#clock = new WriteClock(of.runtime);
  }

  async insert(context: WriteContext, view: LoadedClass, rows: readonly Row[], atMs?: number): Promise<string[]> {
    const timeMs = atMs ?? this.#runtime.clock.nowMs();
    const entropy = (): Uint8Array => this.#runtime.random.bytes(10);
    const source = { timeMs, entropy, ulid: () => ulidOf(timeMs, entropy()) };
    if (view.kind === "record") return this.#append(context, view, rows.map((values) => ({ values, source })));
    const checked = checkAll(rows, (row) => checkRow(view, context.snapshot, row, source));
    return this.#upsert(context, view, checked, atMs);
  }

  async ingest(context: WriteContext, view: LoadedClass, records: readonly NewRecord[]): Promise<string[]> {
    const ids = new RepeatableIds();
    const sourced = records.map((record) => ({ values: record.values, writeUs: record.writeUs, source: ids.source(record) }));
    if (view.kind === "record") return this.#append(context, view, sourced);
    // An id made of an identity may exist: the source may be repeating itself.
    const checked = checkAll(sourced, ({ values, source, writeUs }) => ({ ...checkRow(view, context.snapshot, values, source), fresh: false, writeUs }));
    return this.#upsert(context, view, checked, undefined);
  }

  /** False when none of the places has an object. */
  async update(context: WriteContext, places: readonly Place[], edits: readonly Edit[]): Promise<boolean> {
    return this.#queue.run(places.map(placeText), async () => {
      const [found] = await findEntities(this.#store, this.#patience, [places]);
      if (found === undefined) return false;
      const { view, key } = found.place;
      const checked = checkEdits(view, context.snapshot, edits);
      const old = { entity: found.entity, row: entityRow(view, found.entity) };
      const edges = await this.#edges(context.snapshot, key, { links: checked.links, exists: true });
      const timeUs = this.#clock.nextUs(found.entity.lastUs);
      const composed = compose({ view, key: key.id, timeUs, edits: checked.edits, old, birth: false, fresh: false, ...edges });
      checkKeyKept(view, key.id, { before: old.row, after: composed.row });
      await this.#change([composed.change]);
      const fields = { ...composed.fields, ...linkFields(checked.links) };
      context.tell?.([{ class: view.path, id: wholeId(view, key.id), timeMs: timeUs / 1_000, action: "UPDATE", fields }]);
      return true;
    });
  }

  /** How many there were. Each list of places names one object. */
  async remove(context: WriteContext, refs: readonly (readonly Place[])[], withVersions: boolean): Promise<number> {
    let removed = 0;
    for (let from = 0; from < refs.length; from += CHANGE_BATCH_MAX) {
      const batch = refs.slice(from, from + CHANGE_BATCH_MAX);
      removed += await this.#removeEntities(context, batch, withVersions);
      removed += await this.#removeRecords(context, batch);
    }
    return removed;
  }

  async #append(context: WriteContext, view: LoadedClass, rows: readonly { values: Row; source: IdSource }[]): Promise<string[]> {
    const made = checkAll(rows, ({ values, source }) => {
      const row = checkRecordRow(view, context.snapshot, values);
      return { row, record: recordOf(view, recordId(view, Object.hasOwn(values, "id") ? values.id : undefined, source), row) };
    });
    for (let from = 0; from < made.length; from += CHANGE_BATCH_MAX) {
      const batch = made.slice(from, from + CHANGE_BATCH_MAX);
      const records = batch.map((entry) => entry.record);
      await this.#patience.repeat(() => this.#store.append(records));
      context.tell?.(batch.map(({ record, row }) => insertEvent(view, record, row)));
    }
    return made.map(({ record }) => wholeId(view, record.id));
  }

  async #upsert(context: WriteContext, view: LoadedClass, rows: readonly CheckedRow[], atMs: number | undefined): Promise<string[]> {
    for (const batch of batches(rows)) {
      const known = batch.filter((row) => !row.fresh).map((row) => ({ cid: view.cid, id: row.key }));
      await this.#queue.run(known.map((key) => `${key.cid}:${key.id}`), () => this.#upsertBatch(context, { view, rows: batch, known, atMs }));
    }
    return rows.map((row) => wholeId(view, row.key));
  }

  async #upsertBatch(
    context: WriteContext, batch: { view: LoadedClass; rows: readonly CheckedRow[]; known: readonly EntityKey[]; atMs: number | undefined },
  ): Promise<void> {
    const { view } = batch;
    const olds = await this.#load(view, batch.known);
    const timeUs = batch.atMs === undefined ? this.#clock.nextUs(greatest(olds)) : Math.floor(batch.atMs * 1_000);
    const writes: EntityWrite[] = [];
    for (const row of batch.rows) {
      const old = olds.get(row.key);
      const edges = row.links.length === 0 ? {} : await this.#edges(context.snapshot, { cid: view.cid, id: row.key }, { links: row.links, exists: old !== undefined });
      writes.push({ view, key: row.key, timeUs: row.writeUs ?? timeUs, edits: row.edits, old, birth: true, fresh: row.fresh, ...edges });
    }
    const composed = writes.map(compose);
    await this.#change(composed.map((entry) => entry.change));
    context.tell?.(composed.map((entry, at) => upsertEvent(writes[at], entry, batch.rows[at]?.links ?? [])));
  }

  async #load(view: LoadedClass, keys: readonly EntityKey[]): Promise<Map<string, Loaded>> {
    const loaded = new Map<string, Loaded>();
    if (keys.length === 0) return loaded;
    const entities = await this.#patience.repeat(() => this.#store.get(keys));
    for (const entity of entities) if (entity !== undefined) loaded.set(entity.key.id, { entity, row: entityRow(view, entity) });
    return loaded;
  }

  /** Edges to add and drop so that the object has what its links say. */
  async #edges(
    snapshot: Snapshot, from: EntityKey, of: { readonly links: readonly LinkEdit[]; readonly exists: boolean },
  ): Promise<{ addEdges?: EdgeEnd[]; dropEdges?: EdgeEnd[] }> {
    if (of.links.length === 0) return {};
    const targets = await resolveTargets(snapshot, of.links.flatMap((link) => link.ids), { store: this.#store, patience: this.#patience });
    const add = new Map<string, EdgeEnd>();
    const drop = new Map<string, EdgeEnd>();
    for (const link of of.links) {
      const ends = link.ids.flatMap((id) => edgeEnd(link.type, targets.get(id)));
      if (link.operation === "set" && of.exists) for (const end of await this.#outgoing(from, link.type)) move(end, { from: add, to: drop });
      for (const end of ends) move(end, link.operation === "take" ? { from: add, to: drop } : { from: drop, to: add });
    }
    if (add.size + drop.size > EDGES_PER_WRITE_MAX) throw tooManyEdges();
    return { addEdges: [...add.values()], dropEdges: [...drop.values()] };
  }

  async #outgoing(from: EntityKey, type: string): Promise<EdgeEnd[]> {
    const ends: EdgeEnd[] = [];
    let cursor: string | undefined;
    do {
      const at = cursor;
      const page = await this.#patience.repeat(() => this.#store.edges(from, "out", { type, limit: OBJECT_PAGE_MAX, ...(at === undefined ? {} : { cursor: at }) }));
      for (const edge of page.items) ends.push({ type: edge.type, to: edge.to });
      if (ends.length > EDGES_PER_WRITE_MAX) throw tooManyEdges();
      cursor = page.cursor;
    } while (cursor !== undefined);
    return ends;
  }

  async #removeEntities(context: WriteContext, refs: readonly (readonly Place[])[], withVersions: boolean): Promise<number> {
    const named = refs.map((places) => places.filter((place) => place.view.kind === "entity")).filter((places) => places.length > 0);
    if (named.length === 0) return 0;
    return this.#queue.run(named.flat().map(placeText), async () => {
      const found = await findEntities(this.#store, this.#patience, named);
      const living = new Map(found.flatMap((entry) => (entry === undefined ? [] : [[placeText(entry.place), entry] as const])));
      const dead = withVersions ? named.flat().filter((place) => place.view.options.version && !living.has(placeText(place))) : [];
      const timeUs = this.#clock.nextUs(Math.max(0, ...[...living.values()].map((entry) => entry.entity.lastUs)));
      const places = [...[...living.values()].map((entry) => entry.place), ...dead];
      await this.#bury(places, { timeUs, withVersions });
      context.tell?.([...living.values()].map(({ place }) => deleteEvent(place, timeUs)));
      return living.size;
    });
  }

  /** The graves go first: what is dead with versions can be found again, whatever happens in between. */
  async #bury(places: readonly Place[], of: { readonly timeUs: number; readonly withVersions: boolean }): Promise<void> {
    const { timeUs, withVersions } = of;
    const versioned = places.filter((place) => place.view.options.version);
    if (!withVersions) await this.#change(versioned.map((place) => graveOf(place.view, place.key.id, timeUs)));
    await this.#change(places.map(({ view, key }): EntityChange => {
      if (withVersions) return { key, timeUs, death: true, forgetHistory: true };
      return { key, timeUs, death: true, ...(view.options.version ? { version: encodeVersion(view, undefined) } : {}) };
    }));
    if (withVersions) await this.#change(versioned.map(({ key }) => ({ key: { cid: GRAVES_CID, id: `${key.cid}:${key.id}` }, timeUs, death: true })));
  }

  async #removeRecords(context: WriteContext, refs: readonly (readonly Place[])[]): Promise<number> {
    const places = new Map(refs.flat().filter((place) => place.view.kind === "record").map((place) => [placeText(place), place]));
    if (places.size === 0) return 0;
    const all = [...places.values()];
    const records = await inPages(all.map((place) => place.key), (keys) => this.#patience.repeat(() => this.#store.getRecords(keys)));
    const living = all.filter((_, at) => records[at] !== undefined);
    if (living.length === 0) return 0;
    for (let from = 0; from < living.length; from += CHANGE_BATCH_MAX) {
      const keys = living.slice(from, from + CHANGE_BATCH_MAX).map((place) => place.key);
      await this.#patience.repeat(() => this.#store.removeRecords(keys));
    }
    const timeUs = this.#clock.nextUs();
    context.tell?.(living.map((place) => deleteEvent(place, timeUs)));
    return living.length;
  }

  async #change(changes: readonly EntityChange[]): Promise<void> {
    for (let from = 0; from < changes.length; from += CHANGE_BATCH_MAX) {
      const batch = from === 0 && changes.length <= CHANGE_BATCH_MAX ? changes : changes.slice(from, from + CHANGE_BATCH_MAX);
      await this.#patience.repeat(() => this.#store.change(batch));
    }
  }
}

/** Slices of at most a batch, in which no object occurs twice. */
function* batches(rows: readonly CheckedRow[]): Generator<readonly CheckedRow[]> {
  let batch: CheckedRow[] = [];
  let keys = new Set<string>();
  for (const row of rows) {
    if (batch.length === CHANGE_BATCH_MAX || keys.has(row.key)) {
      yield batch;
      batch = [];
      keys = new Set();
    }
    batch.push(row);
    keys.add(row.key);
  }
  if (batch.length > 0) yield batch;
}

function greatest(olds: ReadonlyMap<string, Loaded>): number {
  let lastUs = 0;
  for (const { entity } of olds.values()) lastUs = Math.max(lastUs, entity.lastUs);
  return lastUs;
}

/** An object whose id is made of its key columns keeps them. */
function checkKeyKept(view: LoadedClass, key: string, rows: { readonly before: Row; readonly after: Row }): void {
  if (keyFromColumns(view, rows.before) !== key || keyFromColumns(view, rows.after) === key) return;
  throw new AppError("invalid", `[Valid] class ${view.path}: the key columns ${view.keys.join(", ")} make the id and cannot be changed.`);
}

function edgeEnd(type: string, to: EntityKey | undefined): EdgeEnd[] {
  return to === undefined ? [] : [{ type, to }];
}

function move(end: EdgeEnd, ends: { readonly from: Map<string, EdgeEnd>; readonly to: Map<string, EdgeEnd> }): void {
  const text = `${end.type}/${end.to.cid}:${end.to.id}`;
  ends.from.delete(text);
  ends.to.set(text, end);
}

function tooManyEdges(): AppError {
  return new AppError("too_large", `[Valid] One write sets or clears at most ${EDGES_PER_WRITE_MAX} edges.`, { details: { limit: "EDGES_PER_WRITE_MAX" } });
}

function linkFields(links: readonly LinkEdit[]): Row {
  return Object.fromEntries(links.map((link) => [link.type, link.ids]));
}

function upsertEvent(write: EntityWrite | undefined, composed: ComposedWrite, links: readonly LinkEdit[]): WriteEvent {
  const { change, fields } = composed;
  return {
    class: write?.view.path ?? "",
    id: write === undefined ? change.key.id : wholeId(write.view, change.key.id),
    timeMs: change.timeUs / 1_000,
    action: write?.old === undefined ? "INSERT" : "UPDATE",
    fields: { ...fields, ...linkFields(links) },
  };
}

function insertEvent(view: LoadedClass, record: StoredRecord, row: Row): WriteEvent {
  const fields = Object.fromEntries(Object.entries(row).filter(([name]) => view.column(name)?.sealed !== true));
  return { class: view.path, id: wholeId(view, record.id), timeMs: recordTimeMs(record), action: "INSERT", fields };
}

function recordTimeMs(record: StoredRecord): number {
  return ulidTimeMs(record.id) ?? 0;
}

function deleteEvent({ view, key }: Place, timeUs: number): WriteEvent {
  return { class: view.path, id: wholeId(view, key.id), timeMs: timeUs / 1_000, action: "DELETE", fields: {} };
}
