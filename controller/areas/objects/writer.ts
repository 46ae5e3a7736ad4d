import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { CHANGE_BATCH_MAX, INDEX_FILL_PAGE_ROWS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { Entity, EntityChange, EntityKey, EntityTrace, ObjectStore, StoredRecord } from "../../store/objects.ts";
import { compose, type ComposedWrite, type EntityWrite } from "./compose.ts";
import { changedMeanwhile, classNow, confirmed, definitionsNow, writeNow, type WriteDefinitions } from "./confirm.ts";
import { entityRow } from "./entity.ts";
import { deleteEvent, insertEvent, upsertEvent, type WriteEvent } from "./events.ts";
import { marksEnd, marksOf } from "./formeredges.ts";
import { GRAVES_CID, graveOf } from "./graves.ts";
import { keyFromColumns, RepeatableIds, wholeId, type IdSource } from "./identity.ts";
import { endEdges, incomingEdges, type Incoming } from "./incoming.ts";
import { withPast } from "./late.ts";
import { linkTargets, linkWrite, type LinkWrite } from "./links.ts";
import { findEntities, inPages, keyText, placeText, type Place } from "./locate.ts";
import { indexEntries, withIndexEntries } from "./indexentries.ts";
import type { Patience } from "./patience.ts";
import { KeyedQueue } from "./queue.ts";
import { leftoverCells, leftoverEdges, rebornOf, type Traces } from "./reborn.ts";
import { recordId, recordOf } from "./records.ts";
import { checkAll, checkEdits, checkRecordRow, checkRow, type CheckedRow } from "./rows.ts";
import { editsOnce, timeOf, writeTimes } from "./settled.ts";
import { keepSharedTerms, type SharedTermsWrite } from "./sharedterms.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Edit, NewRecord, SettledTime, SettledUpdate } from "./types.ts";
import { REMOVED_VERSION } from "./versions.ts";
import type { LoadedClass } from "./views.ts";
import { WriteClock } from "./writeclock.ts";

export interface WriterDependencies {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  readonly patience: Patience;
  /** Of this controller, among those that write at the same time. */
  readonly number: () => number;
}

export interface WriteContext extends WriteDefinitions {
  /** Makes the write, and sees to it that those who want to know are told. They are asked for the events before the write. */
  readonly publish: (events: () => readonly WriteEvent[], write: () => Promise<void>) => Promise<void>;
}

interface MadeRecord {
  readonly record: StoredRecord;
  readonly row: Row;
  /** Its id came with it, so that there may be one already. */
  readonly isNamed: boolean;
}

interface SettledEdits extends SettledUpdate {
  readonly edits: readonly Edit[];
}

interface Removal extends SettledTime {
  readonly withVersions?: boolean;
}

interface Batch {
  readonly view: LoadedClass;
  readonly rows: readonly CheckedRow[];
  readonly atMs: number | undefined;
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
    this.#clock = new WriteClock(of.runtime.clock, of.number);
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
    const sourced = records.map((record) => ({ values: record.values, writeUs: record.writeUs, isNew: record.isNew, source: ids.source(record) }));
    if (view.kind === "record") return this.#append(context, view, sourced);
    const checked = checkAll(sourced, ({ values, source, writeUs, isNew }): CheckedRow => {
      const { key, edits, links, fresh } = checkRow(view, context.snapshot, values, source);
      // An id made of an identity may exist: the source may be repeating itself.
      return { key, edits, links, fresh: fresh && isNew === true, writeUs };
    });
    return this.#upsert(context, view, checked, undefined);
  }

  /** Times for writes that are made later, in the order of `refs`. */
  writeTimes(refs: readonly (readonly Place[])[]): Promise<number[]> {
    return writeTimes(refs, { clock: this.#clock, ...this.#source });
  }

  /** False when none of the places has an object. */
  async update(context: WriteContext, places: readonly Place[], { edits, ...settled }: SettledEdits): Promise<boolean> {
    return this.#queue.run(places.map(placeText), async () => {
      const [found] = await findEntities(this.#store, this.#patience, [places]);
      if (found === undefined) return false;
      const { view, key } = found.place;
      const checked = checkEdits(view, context.snapshot, edits);
      const old = { entity: found.entity, row: entityRow(view, found.entity) };
      const targets = await linkTargets(context.snapshot, checked.links, this.#source);
      const links = await linkWrite(key, { links: checked.links, targets, exists: true, ...this.#source });
      const laterUs = () => this.#clock.nextUs(Math.max(found.entity.lastUs, links.lastUs));
      const timeUs = await timeOf(checked.edits, found.entity, { ...settled, laterUs });
      const made = { view, key: key.id, timeUs, edits: editsOnce(checked.edits, old, timeUs), old, birth: false, fresh: false, ...links };
      const [write = made] = await withPast([made], new Map([[key.id, found.entity]]), this.#source);
      const composed = compose(write);
      checkKeyKept(view, key.id, { before: old.row, after: composed.row });
      await context.publish(() => [upsertEvent(write, composed.row, checked.links)], () => this.#write(context, [write], [composed]));
      return true;
    });
  }

  /** How many there were. Each list of places names one object. */
  async remove(context: WriteContext, refs: readonly (readonly Place[])[], removal: Removal): Promise<number> {
    let removed = 0;
    for (let from = 0; from < refs.length; from += CHANGE_BATCH_MAX) {
      const batch = refs.slice(from, from + CHANGE_BATCH_MAX);
      removed += await this.#removeEntities(context, batch, removal);
      removed += await this.#removeRecords(context, batch);
    }
    return removed;
  }

  /** How many there were. Each list of places names one object. */
  async refresh({ snapshot }: WriteContext, refs: readonly (readonly Place[])[]): Promise<number> {
    let count = 0;
    for (let from = 0; from < refs.length; from += INDEX_FILL_PAGE_ROWS) {
      const batch = refs.slice(from, from + INDEX_FILL_PAGE_ROWS);
      const found = (await findEntities(this.#store, this.#patience, batch)).flatMap((entry) => entry?.entity ?? []);
      await this.reindex(snapshot, found);
      count += found.length;
      for (const { view, key } of batch.flat()) if (view.kind === "record") count += await this.reindexRecords(view, [key]);
    }
    return count;
  }

  /** Writes what the indexes have of these objects once more. Passes over those of classes that are gone. */
  async reindex(snapshot: Snapshot, entities: readonly Entity[]): Promise<void> {
    await this.#change(entities.flatMap((entity) => {
      const view = snapshot.byCid(entity.key.cid);
      return view === undefined ? [] : indexEntries(view, entity);
    }));
  }

  /** The same for records, of which those that are gone by now stay so. How many there were. */
  reindexRecords(view: LoadedClass, keys: readonly EntityKey[]): Promise<number> {
    return this.#queue.run(keys.map(keyText), async () => {
      const records = await inPages(keys, (page) => this.#patience.repeat(() => this.#store.getRecords(page)));
      const there = records.filter((record) => record !== undefined);
      await this.#appendAll(there.map((record) => withIndexEntries(view, record)));
      return there.length;
    });
  }

  get #source(): { readonly store: ObjectStore; readonly patience: Patience } {
    return { store: this.#store, patience: this.#patience };
  }

  async #append(context: WriteContext, view: LoadedClass, rows: readonly { values: Row; source: IdSource }[]): Promise<string[]> {
    const made = checkAll(rows, ({ values, source }): MadeRecord => {
      const row = checkRecordRow(view, context.snapshot, values);
      const given = Object.hasOwn(values, "id") ? values.id : undefined;
      return { row, record: recordOf(view, recordId(view, given, source), row), isNamed: given !== undefined };
    });
    for (let from = 0; from < made.length; from += CHANGE_BATCH_MAX) {
      const batch = made.slice(from, from + CHANGE_BATCH_MAX);
      const named = batch.filter(({ isNamed }) => isNamed).map(({ record }) => keyText(record));
      await context.publish(() => batch.map(({ record, row }) => insertEvent(view, record, row)), async () => {
        await this.#queue.run(named, () => this.#appendAll(batch.map(({ record }) => record)));
        await confirmed(context, (now) => this.#bringRecords(view, batch, now));
      });
    }
    return made.map(({ record }) => wholeId(view, record.id));
  }

  async #upsert(context: WriteContext, view: LoadedClass, rows: readonly CheckedRow[], atMs: number | undefined): Promise<string[]> {
    for (const batch of batches(rows)) {
      const known = batch.filter((row) => !row.fresh).map((row) => `${view.cid}:${row.key}`);
      await this.#queue.run(known, () => this.#upsertBatch(context, { view, rows: batch, atMs }));
    }
    return rows.map((row) => wholeId(view, row.key));
  }

  async #upsertBatch(context: WriteContext, { view, rows, atMs }: Batch): Promise<void> {
    const traces = await this.#traces(rows.filter((row) => !row.fresh).map((row) => ({ cid: view.cid, id: row.key })));
    const links = rows.some((row) => row.links.length > 0) ? await this.#links(context, { view, rows }, traces) : [];
    const lastUs = Math.max(greatest(traces.values()), greatest(links));
    const timeUs = atMs === undefined ? this.#clock.nextUs(lastUs) : Math.floor(atMs * 1_000);
    const made = rows.map(({ key, edits, fresh, writeUs = timeUs }, at): EntityWrite => {
      return { view, key, timeUs: writeUs, edits, old: loaded(view, traces.get(key)), birth: true, fresh, ...links[at] };
    });
    const writes = await withPast(made, traces, this.#source);
    const composed = writes.map(compose);
    const events = () => writes.map((write, at) => upsertEvent(write, composed[at]?.row ?? {}, rows[at]?.links ?? []));
    const reborn = rebornOf(traces);
    if (reborn.size > 0) await this.#clearBefore(context, view, reborn);
    await context.publish(events, async () => {
      await this.#write(context, writes, composed);
      if (reborn.size > 0) await this.#clearAfter(view, reborn);
    });
  }

  async #links(context: WriteContext, { view, rows }: Pick<Batch, "view" | "rows">, traces: Traces): Promise<readonly LinkWrite[]> {
    const targets = await linkTargets(context.snapshot, rows.flatMap((row) => row.links), this.#source);
    return Promise.all(rows.map(({ key, links }) => {
      const exists = traces.get(key)?.entity !== undefined;
      return linkWrite({ cid: view.cid, id: key }, { links, targets, exists, ...this.#source });
    }));
  }

  /** Writes, and sees to it that it stays right whatever other controllers do at the same moment. */
  async #write(context: WriteContext, writes: readonly EntityWrite[], composed: readonly ComposedWrite[]): Promise<void> {
    const linked = writes.filter(({ addEdges }) => addEdges !== undefined);
    if (linked.length > 0) await this.#change(linked.flatMap(edgeMarks));
    await this.#change(composed.map((entry) => entry.change));
    const unneeded = composed.map((entry) => entry.unneeded).filter((change) => change !== undefined);
    // Last: too many terms are harmless.
    if (unneeded.length > 0) await this.#change(unneeded);
    await confirmed(context, (now) => this.#bring(writes, now));
    if (composed.some((entry) => entry.shared !== undefined)) await this.#keepShared(writes, composed);
  }

  #keepShared(writes: readonly EntityWrite[], composed: readonly ComposedWrite[]): Promise<void> {
    const shared = writes.flatMap(({ view, key, fresh, timeUs }, at): SharedTermsWrite[] => {
      const terms = fresh ? undefined : composed[at]?.shared;
      return terms === undefined ? [] : [{ view, key: { cid: view.cid, id: key }, timeUs, terms }];
    });
    return keepSharedTerms(shared, { clock: this.#clock, ...this.#source });
  }

  async #bring(writes: readonly EntityWrite[], now: Snapshot): Promise<void> {
    const orphans = writes.filter((write) => now.byCid(write.view.cid) === undefined);
    // Nobody would ever see them again.
    await this.#change(orphans.map(({ view, key, timeUs }) => ({ key: { cid: view.cid, id: key }, timeUs, death: true as const })));
    await this.#change(writes.map((write) => compose(writeNow(write, now)).change));
  }

  async #bringRecords(view: LoadedClass, made: readonly MadeRecord[], now: Snapshot): Promise<void> {
    if (now.byCid(view.cid) === undefined) await this.#patience.repeat(() => this.#store.removeRecords(made.map(({ record }) => record)));
    const current = classNow(view, now);
    for (const name of new Set(made.flatMap(({ row }) => Object.keys(row)))) {
      if (current.column(name)?.number !== view.column(name)?.number) throw changedMeanwhile(view, `column ${name}`);
    }
    await this.#appendAll(made.map(({ record, row }) => recordOf(current, record.id, row)));
  }

  async #appendAll(records: readonly StoredRecord[]): Promise<void> {
    if (records.length > 0) await this.#patience.repeat(() => this.#store.append(records));
  }

  async #traces(keys: readonly EntityKey[]): Promise<Traces> {
    if (keys.length === 0) return new Map();
    const traces = await this.#patience.repeat(() => this.#store.trace(keys));
    return new Map(traces.map((trace, at) => [keys[at]?.id ?? "", trace]));
  }

  /** What the removal of objects that are made again did not take along, as far as it can be told before there are objects again. */
  async #clearBefore(context: WriteContext, view: LoadedClass, reborn: Traces): Promise<void> {
    await this.#change(leftoverCells(view.cid, reborn));
    const incoming = await incomingEdges([...reborn.keys()].map((id) => ({ cid: view.cid, id })), this.#source);
    await this.#endEdges(context, incoming, ({ id }) => reborn.get(id)?.lastUs ?? 0);
  }

  async #clearAfter(view: LoadedClass, reborn: Traces): Promise<void> {
    for await (const changes of leftoverEdges(view.cid, reborn, this.#source)) await this.#change(changes);
  }

  #endEdges(context: WriteContext, incoming: Incoming, endUs: (target: EntityKey) => number): Promise<void> {
    const definitions = (): Promise<Snapshot> => definitionsNow(context);
    return endEdges(incoming, { endUs, definitions, change: (changes) => this.#change(changes), ...this.#source });
  }

  async #removeEntities(context: WriteContext, refs: readonly (readonly Place[])[], { withVersions = false, writeUs }: Removal): Promise<number> {
    const named = refs.map((places) => places.filter((place) => place.view.kind === "entity")).filter((places) => places.length > 0);
    if (named.length === 0) return 0;
    return this.#queue.run(named.flat().map(placeText), async () => {
      const found = await findEntities(this.#store, this.#patience, named);
      const living = new Map(found.flatMap((entry) => (entry === undefined ? [] : [[placeText(entry.place), entry] as const])));
      const dead = withVersions ? named.flat().filter((place) => !living.has(placeText(place))) : [];
      const traces = await this.#patience.repeat(() => this.#store.trace(dead.map((place) => place.key)));
      const places = [...[...living.values()].map((entry) => entry.place), ...dead.filter((place) => place.view.options.version)];
      const incoming = await incomingEdges(places.map(({ key }) => key), this.#source);
      const lastUs = Math.max(incoming.lastUs, greatest(traces), greatest([...living.values()].map((entry) => entry.entity)));
      const timeUs = writeUs ?? this.#clock.nextUs(lastUs);
      const events = () => [...living.values()].map(({ place }) => deleteEvent(place, timeUs));
      await context.publish(events, async () => {
        await this.#bury(places, { timeUs, withVersions });
        await confirmed(context, (now) => this.#bury(placesNow(withVersions ? named.flat() : places, now), { timeUs, withVersions }));
        await this.#endEdges(context, incoming, () => timeUs);
      });
      return living.size;
    });
  }

  /** The graves go first: what is dead with versions can be found again, whatever happens in between. */
  async #bury(places: readonly Place[], of: { readonly timeUs: number; readonly withVersions: boolean }): Promise<void> {
    const { timeUs, withVersions } = of;
    const versioned = places.filter((place) => place.view.options.version);
    const marks = withVersions ? await marksEnd(versioned, timeUs, this.#source) : [];
    if (!withVersions) await this.#change(versioned.map((place) => graveOf(place.view, place.key.id, timeUs)));
    await this.#change(places.map(({ view, key }): EntityChange => {
      if (withVersions) return { key, timeUs, death: true, forgetHistory: true };
      return { key, timeUs, death: true, ...(view.options.version ? { version: REMOVED_VERSION } : {}) };
    }));
    if (withVersions) await this.#change(versioned.map(({ key }) => ({ key: { cid: GRAVES_CID, id: `${key.cid}:${key.id}` }, timeUs, death: true })));
    await this.#change(marks);
  }

  async #removeRecords(context: WriteContext, refs: readonly (readonly Place[])[]): Promise<number> {
    const places = new Map(refs.flat().filter((place) => place.view.kind === "record").map((place) => [placeText(place), place]));
    if (places.size === 0) return 0;
    return this.#queue.run([...places.keys()], () => this.#removeLivingRecords(context, [...places.values()]));
  }

  async #removeLivingRecords(context: WriteContext, all: readonly Place[]): Promise<number> {
    const records = await inPages(all.map((place) => place.key), (keys) => this.#patience.repeat(() => this.#store.getRecords(keys)));
    const living = all.filter((_, at) => records[at] !== undefined);
    if (living.length === 0) return 0;
    const incoming = await incomingEdges(living.map(({ key }) => key), this.#source);
    const timeUs = this.#clock.nextUs(incoming.lastUs);
    await context.publish(() => living.map((place) => deleteEvent(place, timeUs)), async () => {
      await this.#eraseRecords(living);
      await this.#endEdges(context, incoming, () => timeUs);
    });
    return living.length;
  }

  async #eraseRecords(places: readonly Place[]): Promise<void> {
    for (let from = 0; from < places.length; from += CHANGE_BATCH_MAX) {
      const keys = places.slice(from, from + CHANGE_BATCH_MAX).map((place) => place.key);
      await this.#patience.repeat(() => this.#store.removeRecords(keys));
    }
  }

  async #change(changes: readonly EntityChange[]): Promise<void> {
    for (let from = 0; from < changes.length; from += CHANGE_BATCH_MAX) {
      const batch = from === 0 && changes.length <= CHANGE_BATCH_MAX ? changes : changes.slice(from, from + CHANGE_BATCH_MAX);
      await this.#patience.repeat(() => this.#store.change(batch));
    }
  }
}

function edgeMarks({ view, key, addEdges = [], timeUs }: EntityWrite): EntityChange[] {
  return marksOf({ view, key: { cid: view.cid, id: key } }, addEdges, timeUs);
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

function greatest(known: Iterable<{ readonly lastUs: number }>): number {
  let greatestUs = 0;
  for (const { lastUs } of known) greatestUs = Math.max(greatestUs, lastUs);
  return greatestUs;
}

function loaded(view: LoadedClass, trace: EntityTrace | undefined): { readonly entity: Entity; readonly row: Row } | undefined {
  return trace?.entity === undefined ? undefined : { entity: trace.entity, row: entityRow(view, trace.entity) };
}

/** Those of classes that keep versions by the definitions of now: their removals are remembered with them. */
function placesNow(places: readonly Place[], now: Snapshot): Place[] {
  return places.flatMap(({ key }) => {
    const view = now.byCid(key.cid);
    return view?.options.version === true ? [{ view, key }] : [];
  });
}

/** An object whose id is made of its key columns keeps them. */
function checkKeyKept(view: LoadedClass, key: string, rows: { readonly before: Row; readonly after: Row }): void {
  if (keyFromColumns(view, rows.before) !== key || keyFromColumns(view, rows.after) === key) return;
  throw new AppError("invalid", `[Valid] class ${view.path}: the key columns ${view.keys.join(", ")} make the id and cannot be changed.`);
}
