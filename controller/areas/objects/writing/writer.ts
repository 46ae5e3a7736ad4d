import { ulidOf } from "../../../../common/ids.ts";
import { CHANGE_BATCH_MAX, INDEX_FILL_PAGE_ROWS, WRITE_AHEAD_MAX_MS } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import { PRESENCE } from "../../../store/cells.ts";
import type { Entity, EntityChange, EntityKey, EntityTrace, StoredRecord } from "../../../store/objects.ts";
import { classNow, confirmed } from "../definitions/confirm.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { marksOf } from "../history/formeredges.ts";
import { findEntities, inPages, keyText, placeText, type Place } from "../reading/locate.ts";
import { changeGrowth, inRoom, less, recordSize, sumOf, type Growth } from "../values/room.ts";
import type { Edit, NewRecord, RecordMarks, UpdateOptions } from "../types.ts";
import type { IngestOptions, InsertOptions, RowOptions } from "../write-options.ts";
import { compose, type ComposedWrite, type EntityWrite } from "../values/compose.ts";
import { lastRemovalUs } from "../values/edgelives.ts";
import { entityObject, entityRow } from "../values/entity.ts";
import { insertEvent, upsertEvent } from "../values/events.ts";
import { AscendingEntropy, RepeatableIds, wholeId } from "../values/identity.ts";
import { recordId, recordOf } from "../values/records.ts";
import { checkAll, checkEdits, checkRecordRow, checkRow, ofRow, type CheckedRow } from "../values/rows.ts";
import { withPast } from "./backdated.ts";
import { standingRecords } from "./basis.ts";
import { checkKeyKept, type BeforeTriggers } from "./beforetriggers.ts";
import { beforeEnds, clearedBefore, expires, tombstonesAhead } from "./ends.ts";
import { incomingEdges } from "./incomingedges.ts";
import { indexEntries, withIndexEntries } from "./indexentries.ts";
import { edgesAt, linkTargets, linkWrite, type LinkTargets, type LinkWrite } from "./links.ts";
import { changedMeanwhile, rebindWrite } from "./rebind.ts";
import { leftoverCells, leftoverEdges, recreatedOf, type Traces } from "./recreated.ts";
import { restorable } from "./restorable.ts";
import { rewritten } from "./rewritten.ts";
import { keepSharedTerms, type SharedTermsWrite } from "./sharedterms.ts";
import { madeAnew, unstoredRecords, unstoredRows } from "./unstored.ts";
import { editsOnce, timeOf, writeTimes } from "./writetimes.ts";
import type { WriteContext, Writing } from "./writing.ts";

interface MadeRecord {
  readonly record: StoredRecord;
  readonly row: Row;
  readonly marked: RecordMarks | undefined;
  /** True when the id was given, so the record may exist. */
  readonly isNamed: boolean;
  readonly writeUs: number | undefined;
  /** The stored record that this one replaces, if it was read. */
  readonly before?: StoredRecord | undefined;
  readonly announced: boolean;
}

interface GivenRecord {
  readonly values: Row;
  readonly marked?: RecordMarks | undefined;
  readonly ulid: () => string;
  readonly writeUs?: number | undefined;
}

interface AskedUpdate extends UpdateOptions {
  readonly edits: readonly Edit[];
}

interface Ingested extends Omit<IngestOptions, "basis"> {
  readonly records: readonly NewRecord[];
}

interface Batch extends Omit<IngestOptions, "basis" | "rewrites"> {
  readonly view: LoadedClass;
  readonly rows: readonly CheckedRow[];
  readonly atMs?: number | undefined;
}

/**
 * Inserts and updates objects of one tenant. On this controller, only one write of an object runs at a time.
 */
export class ObjectWriter {
  readonly #writing: Writing;
  readonly #entropy: AscendingEntropy;

  constructor(writing: Writing) {
    this.#writing = writing;
    this.#entropy = new AscendingEntropy((length) => writing.runtime.random.bytes(length));
  }

  async insert(
    context: WriteContext,
    view: LoadedClass,
    rows: readonly Row[],
    { atMs: at, ...options }: InsertOptions = {},
  ): Promise<string[]> {
    const [atMs, eachMs] = typeof at === "object" ? [undefined, at] : [at, undefined];
    const timeMs = atMs ?? this.#writing.runtime.clock.nowMs();
    const entropy = this.#entropy.series(timeMs, rows.length);
    const source = { timeMs, entropy };
    if (view.kind === "record")
      return this.#append(
        context,
        view,
        rows.map((values) => ({ values, ulid: () => ulidOf(timeMs, entropy()) })),
        options,
      );
    const checked = await checkAll(rows, (row) => checkRow(view, context.snapshot, row, { source }));
    const timed = eachMs ? checked.map((row, place) => ({ ...row, writeUs: microseconds(eachMs[place]) })) : checked;
    return this.#upsert(context, { view, rows: timed, atMs, unstored: options.unstored });
  }

  async ingest(context: WriteContext, view: LoadedClass, { records, ...options }: Ingested): Promise<string[]> {
    const ids = new RepeatableIds();
    const { basis } = context;
    const standing = basis === undefined ? records : standingRecords(basis, view, records);
    if (view.kind === "record")
      return this.#append(
        context,
        view,
        standing.map((record) => ({
          values: record.values,
          marked: record.marked,
          ulid: () => ids.ulid(record),
          writeUs: record.writeUs,
        })),
        options,
      );
    const checked = await checkAll(standing, (record): CheckedRow => {
      const { values, writeUs, isNew, createdMs, wholeBut } = record;
      const source = ids.source(record);
      const { key, edits, links, fresh } = checkRow(view, context.snapshot, values, { source, basis });
      // The source may repeat itself, so an object may exist even if its id is made of an identity.
      return { key, edits, links, fresh: fresh && isNew === true, writeUs, createdMs, wholeBut };
    });
    return this.#upsert(context, { view, rows: checked, ...options });
  }

  /** Times for writes that are made later, in the order of `refs`. */
  writeTimes(refs: readonly (readonly Place[])[]): Promise<number[]> {
    return writeTimes(refs, { clock: this.#writing.clock, ...this.#writing.source });
  }

  /** False when no place has an object, or when `compute` says that the object is not to be changed. */
  async update(context: WriteContext, places: readonly Place[], asked: AskedUpdate): Promise<boolean> {
    const held = places.map(placeText);
    const update = () => this.#update(context, places, asked);
    return this.#writing.queue.run(held, context.triggers?.chain, () =>
      asked.compute === undefined ? update() : this.#writing.turns.run(held.join(" "), context, update),
    );
  }

  async #update(
    context: WriteContext,
    places: readonly Place[],
    { edits, compute, ...preset }: AskedUpdate,
  ): Promise<boolean> {
    const { triggers } = context;
    const [found] = await findEntities(this.#writing.store, [places]);
    if (found === undefined) return false;
    const { view, key } = found.place;
    const computed = compute === undefined ? [] : compute(entityObject(view, found.entity));
    if (computed === undefined) return false;
    const old = { entity: found.entity, row: entityRow(view, found.entity) };
    const asked = checkEdits(view, context.snapshot, [...edits, ...computed]);
    const checked = triggers?.has(view)
      ? await triggers.entity({ view, key: key.id, checked: asked, old }, places.map(placeText))
      : asked;
    const targets = await linkTargets(context.snapshot, checked.links, this.#writing.source);
    const links = await linkWrite(key, { links: checked.links, targets, exists: true, ...this.#writing.source });
    const commonUs = this.#writing.clock.nextUs();
    const lastUs = Math.max(found.entity.lastUs, links.lastUs);
    const laterUs = () => this.#writing.clock.ofObject([placeText(found.place)], lastUs, commonUs);
    const made = {
      edits: checked.edits,
      computed: new Set([...computed.map(({ column }) => column), ...(checked.computed ?? [])]),
    };
    const timeUs = await timeOf(made, found.entity, { ...preset, laterUs });
    const linked = linkedAt(links, { timeUs, commonUs, targets });
    const write = await this.#withPast(
      { view, key: key.id, timeUs, edits: editsOnce(made, old, timeUs), old, birth: false, fresh: false, ...linked },
      found.entity,
    );
    const composed = compose(write);
    checkKeyKept(view, key.id, { before: old.row, after: composed.row });
    const growth = (): Growth => changeGrowth(composed.change, found.entity);
    await inRoom(context.room, { view, growth }, () =>
      context.publish(
        () => [upsertEvent(write, composed.row, checked)],
        () => this.#write(context, [write], [composed]),
      ),
    );
    return true;
  }

  async #withPast(made: EntityWrite, entity: Entity): Promise<EntityWrite> {
    const [write = made] = await withPast([made], new Map([[made.key, entity]]), this.#writing.source);
    return write;
  }

  /** Returns the number of objects found. Each list of places names one object. */
  async refresh({ snapshot }: WriteContext, refs: readonly (readonly Place[])[]): Promise<number> {
    let count = 0;
    for (let from = 0; from < refs.length; from += INDEX_FILL_PAGE_ROWS) {
      const batch = refs.slice(from, from + INDEX_FILL_PAGE_ROWS);
      const found = (await findEntities(this.#writing.store, batch)).flatMap((entry) => entry?.entity ?? []);
      await this.reindex(snapshot, found);
      count += found.length;
      for (const { view, key } of batch.flat())
        if (view.kind === "record") count += await this.reindexRecords(view, [key]);
    }
    return count;
  }

  /** Writes the index entries of these objects again. Skips objects of dropped classes. */
  async reindex(snapshot: Snapshot, entities: readonly Entity[]): Promise<void> {
    await this.#writing.change(
      entities.flatMap((entity) => {
        const view = snapshot.byCid(entity.key.cid);
        return view === undefined ? [] : indexEntries(view, entity);
      }),
    );
  }

  /** Does the same for records; removed records stay removed. Returns the number of records. */
  reindexRecords(view: LoadedClass, keys: readonly EntityKey[]): Promise<number> {
    return this.#writing.queue.run(keys.map(keyText), undefined, async () => {
      const records = await inPages(keys, (page) => this.#writing.store.getRecords(page));
      const there = records.filter((record) => record !== undefined);
      await this.#writing.append(there.map((record) => withIndexEntries(view, record)));
      return there.length;
    });
  }

  async #append(
    context: WriteContext,
    view: LoadedClass,
    rows: readonly GivenRecord[],
    options: RowOptions,
  ): Promise<string[]> {
    const made = await checkAll(rows, ({ values, marked, ulid, writeUs }): MadeRecord => {
      const row = checkRecordRow(view, context.snapshot, values);
      const given = Object.hasOwn(values, "id") ? values.id : undefined;
      return {
        row,
        marked,
        record: recordOf(view, recordId(view, given, ulid), row, marked),
        isNamed: given !== undefined,
        writeUs,
        announced: false,
      };
    });
    const { triggers } = context;
    const certain = options.rewrites === true ? made.filter(({ isNamed }) => !isNamed) : made;
    if (made.length > CHANGE_BATCH_MAX) await requireRoom(context, view, sumOf(certain.map(sizeOfMade)));
    for (let from = 0; from < made.length; from += CHANGE_BATCH_MAX) {
      const batch = made.slice(from, from + CHANGE_BATCH_MAX);
      const waiting = batch
        .filter(({ isNamed }) => isNamed || triggers?.has(view))
        .map(({ record }) => keyText(record));
      await this.#writing.queue.run(waiting, triggers?.chain, () => this.#appendBatch(context, view, batch, options));
    }
    return made.map(({ record }) => wholeId(view, record.id));
  }

  async #appendBatch(
    context: WriteContext,
    view: LoadedClass,
    asked: readonly MadeRecord[],
    { rewrites = false, unstored }: RowOptions,
  ): Promise<void> {
    const left = await this.#triggeredRecords(context, view, asked);
    const batch = rewrites ? await this.#rewritten(left) : left;
    await inRoom(context.room, { view, growth: () => sumOf(batch.map(sizeOfMade)) }, () =>
      context.publish(
        () => batch.map((one) => insertEvent(view, one)),
        async () => {
          const records = batch.map(({ record }) => record);
          await this.#writing.append(records, context.inCommit);
          await confirmed(context, (now) => this.#bringRecords(view, batch, now));
        },
      ),
    );
    unstored?.(
      await unstoredRecords(
        batch.map(({ record }) => record),
        this.#looking(view),
      ),
    );
  }

  async #rewritten(made: readonly MadeRecord[]): Promise<readonly MadeRecord[]> {
    const named = made.filter(({ isNamed }) => isNamed);
    const records = await rewritten(named, { clock: this.#writing.clock, ...this.#writing.source });
    const standing = new Map(named.map((one, at) => [one, { ...one, ...records[at] }]));
    return made.map((one) => standing.get(one) ?? one);
  }

  #looking(view: LoadedClass): Parameters<typeof unstoredRows>[1] {
    return { view, nowMs: this.#writing.runtime.clock.nowMs(), ...this.#writing.source };
  }

  async #triggeredRecords(
    { triggers, snapshot }: WriteContext,
    view: LoadedClass,
    asked: readonly MadeRecord[],
  ): Promise<readonly MadeRecord[]> {
    if (!triggers?.has(view)) return asked;
    const held = asked.map(({ record }) => keyText(record));
    const made: MadeRecord[] = [];
    for (const one of asked) {
      const { id } = one.record;
      const left = await ofRow(made.length, async () => {
        const { values, announced } = await triggers.record(view, { id, values: one.row }, held);
        return { row: checkRecordRow(view, snapshot, values), announced };
      });
      made.push({ ...one, ...left, record: recordOf(view, id, left.row, one.marked) });
    }
    return made;
  }

  async #upsert(context: WriteContext, { view, rows, retimed, ...options }: Batch): Promise<string[]> {
    if (rows.length > CHANGE_BATCH_MAX && context.room !== undefined)
      await requireRoom(context, view, { objects: await this.#newAmong(view, rows), bytes: 0 });
    let done = 0;
    for (const batch of rows.length === 1 ? [rows] : batches(rows)) {
      const first = done;
      done += batch.length;
      const later = retimed && {
        retimed: (at: readonly number[], writeUs: number) =>
          retimed(
            at.map((place) => first + place),
            writeUs,
          ),
      };
      const { triggers } = context;
      const waiting = batch.filter((row) => !row.fresh || triggers?.has(view)).map((row) => `${view.cid}:${row.key}`);
      await this.#writing.queue.run(waiting, triggers?.chain, () =>
        this.#upsertBatch(context, { ...options, view, rows: batch, ...later }),
      );
    }
    return rows.map((row) => wholeId(view, row.key));
  }

  async #upsertBatch(context: WriteContext, batch: Batch): Promise<void> {
    const { view, rows: asked, atMs, retimed } = batch;
    const known = asked.filter((row) => !row.fresh).map((row) => ({ cid: view.cid, id: row.key }));
    const traces = await this.#traces(known);
    const standing =
      batch.restored === undefined
        ? asked
        : await restorable(batch, traces, { ...this.#writing.source, later: batch.restored });
    const rows = context.triggers?.has(view)
      ? await triggered(context.triggers, { view, rows: standing }, traces)
      : standing;
    const { links, targets } = rows.some((row) => row.links.length > 0)
      ? await this.#links(context, { view, rows }, traces)
      : { links: [], targets: NO_TARGETS };
    const commonUs = this.#writing.clock.nextUs();
    const late = lateAmong({ ...batch, rows }, traces, commonUs);
    const timesUs = rows.map((row, at) => {
      const presetUs = late.has(at) ? undefined : (row.writeUs ?? microseconds(atMs));
      return presetUs ?? this.#ownTime({ view, row }, [traces.get(row.key), links[at]], commonUs);
    });
    if (retimed !== undefined) for (const [timeUs, places] of byTime(late, timesUs)) await retimed(places, timeUs);
    const made = rows.map((row, at): EntityWrite => {
      const { key, fresh, createdMs, hasVersion } = row;
      const timeUs = timesUs[at] ?? commonUs;
      const writeUs = late.has(at) ? timeUs : row.writeUs;
      const old = loaded(view, traces.get(key));
      const edits = rowEditsOnce({ ...row, writeUs }, old);
      const linked = linkedAt(links[at], { timeUs, commonUs, targets });
      return { view, key, timeUs, edits, old, birth: true, fresh, ...linked, createdMs, hasVersion };
    });
    const past = withPast(made, traces, this.#writing.source);
    const writes = past instanceof Promise ? await past : past;
    const composed = writes.map(compose);
    const events = () => writes.map((write, at) => upsertEvent(write, composed[at]?.row ?? {}, rows[at] ?? NO_LINKS));
    const recreated = recreatedOf(traces);
    const growth = (): Growth =>
      sumOf(composed.map(({ change }) => changeGrowth(change, traces.get(change.key.id)?.entity)));
    const write = (): Promise<void> =>
      inRoom(context.room, { view, growth }, () =>
        context.publish(events, () => {
          const written = this.#write(context, writes, composed);
          return recreated.size === 0 ? written : written.then(() => this.#clearAfter(view, recreated));
        }),
      );
    if (recreated.size === 0) await write();
    else await this.#recreating(context, { view, recreated }, write);
    if (batch.unstored === undefined) return;
    batch.unstored(await unstoredRows(madeAnew(composed, traces), this.#looking(view)));
  }

  /** Number of the rows that have no object yet. */
  async #newAmong(view: LoadedClass, rows: readonly CheckedRow[]): Promise<number> {
    const named = new Set(rows.filter((row) => !row.fresh).map(({ key }) => key));
    const keys = [...named].map((id) => ({ cid: view.cid, id }));
    const found = await inPages(keys, (page) => this.#writing.store.get(page, PRESENCE));
    return rows.filter((row) => row.fresh).length + found.filter((entity) => entity === undefined).length;
  }

  /** The time of a write of one object. A generated id has no earlier write, so it needs no time above one. */
  #ownTime(
    { view, row }: { readonly view: LoadedClass; readonly row: CheckedRow },
    read: readonly ({ readonly lastUs: number } | undefined)[],
    commonUs: number,
  ): number {
    const lastUs = Math.max(0, ...read.map((one) => one?.lastUs ?? 0));
    const name = keyText({ cid: view.cid, id: row.key });
    return row.fresh && lastUs === 0 ? commonUs : this.#writing.clock.ofObject([name], lastUs, commonUs);
  }

  async #links(
    context: WriteContext,
    { view, rows }: Pick<Batch, "view" | "rows">,
    traces: Traces,
  ): Promise<{ readonly links: readonly LinkWrite[]; readonly targets: LinkTargets }> {
    const targets = await linkTargets(
      context.snapshot,
      rows.flatMap((row) => row.links),
      this.#writing.source,
    );
    const links = await Promise.all(
      rows.map(({ key, links: asked }) => {
        const exists = traces.get(key)?.entity !== undefined;
        return linkWrite({ cid: view.cid, id: key }, { links: asked, targets, exists, ...this.#writing.source });
      }),
    );
    return { links, targets };
  }

  /** Makes the writes. Repairs damage that concurrent writes of other controllers may have done. */
  async #write(
    context: WriteContext,
    writes: readonly EntityWrite[],
    composed: readonly ComposedWrite[],
  ): Promise<void> {
    const before = writes.some(({ view }) => expires(view)) ? beforeEnds(writes, composed, this.#writing.source) : [];
    for await (const changes of before) await this.#writing.change(changes);
    const linked = writes.filter(({ addEdges }) => addEdges !== undefined);
    if (linked.length > 0) await this.#writing.change(linked.flatMap(edgeMarks));
    const changes = composed.map((entry) => entry.change);
    await this.#writing.changeOnce(changes, context.inCommit);
    const unneeded = composed.map((entry) => entry.unneeded).filter((change) => change !== undefined);
    // Removes terms last, because superfluous terms do no harm.
    if (unneeded.length > 0) await this.#writing.change(unneeded);
    if (!context.held.isHeld()) await confirmed(context, (now) => this.#bring(writes, now));
    if (composed.some((entry) => entry.shared !== undefined)) await this.#keepShared(writes, composed);
  }

  #keepShared(writes: readonly EntityWrite[], composed: readonly ComposedWrite[]): Promise<void> {
    const shared = writes.flatMap(({ view, key, fresh, timeUs }, at): SharedTermsWrite[] => {
      const terms = fresh ? undefined : composed[at]?.shared;
      return terms === undefined ? [] : [{ view, key: { cid: view.cid, id: key }, timeUs, terms }];
    });
    return keepSharedTerms(shared, { clock: this.#writing.clock, ...this.#writing.source });
  }

  async #bring(writes: readonly EntityWrite[], now: Snapshot): Promise<void> {
    const orphans = writes.filter((write) => now.byCid(write.view.cid) === undefined);
    // Their class does not exist any more, so no read would find these objects.
    await this.#writing.change(
      orphans.map(({ view, key, timeUs }) => ({ key: { cid: view.cid, id: key }, timeUs, death: true as const })),
    );
    const rebound = writes.map((write) => rebindWrite(write, now));
    await this.#writing.change(tombstonesAhead(rebound));
    await this.#writing.change(rebound.map((write) => compose(write).change));
  }

  async #bringRecords(view: LoadedClass, made: readonly MadeRecord[], now: Snapshot): Promise<void> {
    if (now.byCid(view.cid) === undefined) await this.#writing.store.removeRecords(made.map(({ record }) => record));
    const current = classNow(view, now);
    for (const name of new Set(made.flatMap(({ row }) => Object.keys(row)))) {
      if (current.column(name)?.number !== view.column(name)?.number) throw changedMeanwhile(view, `column ${name}`);
    }
    await this.#writing.append(
      made.map(({ record, row, marked }) => ({ ...record, ...recordOf(current, record.id, row, marked) })),
    );
  }

  async #traces(keys: readonly EntityKey[]): Promise<Traces> {
    if (keys.length === 0) return new Map();
    const traces = await this.#writing.store.trace(keys);
    return new Map(traces.map((trace, at) => [keys[at]?.id ?? "", trace]));
  }

  /** Removes what removed objects left, as far as it can be read before they exist again. Then makes the write. */
  async #recreating(
    context: WriteContext,
    { view, recreated }: { readonly view: LoadedClass; readonly recreated: Traces },
    write: () => Promise<void>,
  ): Promise<void> {
    await this.#writing.change(clearedBefore(view, recreated));
    await this.#writing.change(leftoverCells(view.cid, recreated));
    const incoming = await incomingEdges(
      [...recreated.keys()].map((id) => ({ cid: view.cid, id })),
      this.#writing.source,
    );
    const endUs = ({ id }: EntityKey): number => {
      const trace = recreated.get(id);
      return trace === undefined ? 0 : lastRemovalUs(trace);
    };
    await this.#writing.endEdges(context, incoming, { endUs });
    await this.#writing.ending(incoming, endUs, write);
  }

  async #clearAfter(view: LoadedClass, recreated: Traces): Promise<void> {
    for await (const changes of leftoverEdges(view.cid, recreated, this.#writing.source))
      await this.#writing.change(changes);
  }
}

/** The rows after the triggers of their class ran, on the rows and on the objects as they are now. */
async function triggered(
  triggers: BeforeTriggers,
  { view, rows }: Pick<Batch, "view" | "rows">,
  traces: Traces,
): Promise<readonly CheckedRow[]> {
  const held = rows.map(({ key }) => `${view.cid}:${key}`);
  const left: CheckedRow[] = [];
  for (const [at, row] of rows.entries()) {
    const entity = { view, key: row.key, checked: row, old: loaded(view, traces.get(row.key)) };
    const checked = await ofRow(at, () => triggers.entity(entity, held));
    left.push({ ...row, ...checked });
  }
  return left;
}

/**
 * Places of the rows that get another time than their preset one. On the first attempt: rows whose objects were written
 * at that time or later. With `aboveAhead`: rows whose objects are far ahead of the clock.
 */
function lateAmong({ rows, retimed, aboveAhead }: Batch, traces: Traces, commonUs: number): ReadonlySet<number> {
  if (retimed === undefined && aboveAhead === undefined) return NONE_LATE;
  const leastUs = retimed === undefined ? commonUs + WRITE_AHEAD_MAX_MS * 1_000 : 0;
  const isLate = ({ key, writeUs = Infinity }: CheckedRow): boolean =>
    (traces.get(key)?.lastUs ?? 0) >= Math.max(writeUs, leastUs);
  return new Set(rows.flatMap((row, at) => (isLate(row) ? [at] : [])));
}

/** The places, grouped by the times of their rows. */
function byTime(places: ReadonlySet<number>, timesUs: readonly number[]): ReadonlyMap<number, readonly number[]> {
  const groups = new Map<number, number[]>();
  for (const at of places) {
    const timeUs = timesUs[at] ?? 0;
    groups.set(timeUs, [...(groups.get(timeUs) ?? []), at]);
  }
  return groups;
}

function linkedAt(links: LinkWrite | undefined, at: Parameters<typeof edgesAt>[1]): Partial<LinkWrite> {
  return links?.addEdges === undefined ? { ...links } : { ...links, addEdges: edgesAt(links.addEdges, at) };
}

/** Edits of a row that may have been written already. Values that triggers computed are not changed then. */
function rowEditsOnce({ edits, computed, writeUs }: CheckedRow, old: EntityWrite["old"]): CheckedRow["edits"] {
  if (computed === undefined || writeUs === undefined || old === undefined) return edits;
  const own = edits.filter(({ column }) => !computed.has(column.name));
  const theirs = edits.filter(({ column }) => computed.has(column.name));
  return [...own, ...editsOnce({ edits: theirs, computed }, old, writeUs)];
}

const NONE_LATE: ReadonlySet<number> = new Set();
const NO_LINKS = { links: [] };
const NO_TARGETS: LinkTargets = { keys: new Map(), diedUs: new Map() };

function sizeOfMade({ record, before }: MadeRecord): Growth {
  return before === undefined ? recordSize(record) : sumOf([recordSize(record), less(recordSize(before))]);
}

/** Checks the quota for a call of several batches before its first batch, so that it is not refused between two. */
async function requireRoom({ room }: WriteContext, view: LoadedClass, growth: Growth): Promise<void> {
  if (!view.system) await room?.require(growth);
}

function edgeMarks({ view, key, addEdges = [], timeUs }: EntityWrite): EntityChange[] {
  return marksOf({ view, key: { cid: view.cid, id: key } }, addEdges, timeUs);
}

function microseconds(atMs: number | undefined): number | undefined {
  return atMs === undefined ? undefined : Math.floor(atMs * 1_000);
}

/** Slices of rows. Each has at most one batch of rows, and no object occurs in it twice. */
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

function loaded(
  view: LoadedClass,
  trace: EntityTrace | undefined,
): { readonly entity: Entity; readonly row: Row } | undefined {
  return trace?.entity === undefined ? undefined : { entity: trace.entity, row: entityRow(view, trace.entity) };
}
