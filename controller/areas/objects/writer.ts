import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { CHANGE_BATCH_MAX, INDEX_FILL_PAGE_ROWS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import type { Entity, EntityChange, EntityKey, EntityTrace, StoredRecord } from "../../store/objects.ts";
import { compose, type ComposedWrite, type EntityWrite } from "./compose.ts";
import { changedMeanwhile, classNow, confirmed, writeNow } from "./confirm.ts";
import { entityRow } from "./entity.ts";
import { insertEvent, upsertEvent } from "./events.ts";
import { marksOf } from "./formeredges.ts";
import { keyFromColumns, RepeatableIds, wholeId, type IdSource } from "./identity.ts";
import { incomingEdges } from "./incoming.ts";
import { withPast } from "./late.ts";
import { linkTargets, linkWrite, type LinkWrite } from "./links.ts";
import { findEntities, inPages, keyText, placeText, type Place } from "./locate.ts";
import { indexEntries, withIndexEntries } from "./indexentries.ts";
import { leftoverCells, leftoverEdges, rebornOf, type Traces } from "./reborn.ts";
import { recordId, recordOf } from "./records.ts";
import { checkAll, checkEdits, checkRecordRow, checkRow, type CheckedRow } from "./rows.ts";
import { editsOnce, timeOf, writeTimes } from "./settled.ts";
import { keepSharedTerms, type SharedTermsWrite } from "./sharedterms.ts";
import type { Snapshot } from "./snapshot.ts";
import type { Edit, NewRecord, SettledUpdate } from "./types.ts";
import type { LoadedClass } from "./views.ts";
import { greatest, type WriteContext, type Writing } from "./writing.ts";

interface MadeRecord {
  readonly record: StoredRecord;
  readonly row: Row;
  /** Its id came with it, so that there may be one already. */
  readonly isNamed: boolean;
}

interface SettledEdits extends SettledUpdate {
  readonly edits: readonly Edit[];
}

interface Batch {
  readonly view: LoadedClass;
  readonly rows: readonly CheckedRow[];
  readonly atMs: number | undefined;
}

/** Makes and changes objects of one tenant. Writes of one object queue, so reading, merging and writing it is exact. */
export class ObjectWriter {
  readonly #writing: Writing;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  async insert(context: WriteContext, view: LoadedClass, rows: readonly Row[], atMs?: number): Promise<string[]> {
    const timeMs = atMs ?? this.#writing.runtime.clock.nowMs();
    const entropy = (): Uint8Array => this.#writing.runtime.random.bytes(10);
    const source = { timeMs, entropy, ulid: () => ulidOf(timeMs, entropy()) };
    if (view.kind === "record")
      return this.#append(
        context,
        view,
        rows.map((values) => ({ values, source })),
      );
    const checked = checkAll(rows, (row) => checkRow(view, context.snapshot, row, source));
    return this.#upsert(context, view, checked, atMs);
  }

  async ingest(context: WriteContext, view: LoadedClass, records: readonly NewRecord[]): Promise<string[]> {
    const ids = new RepeatableIds();
    const sourced = records.map((record) => ({
      values: record.values,
      writeUs: record.writeUs,
      isNew: record.isNew,
      source: ids.source(record),
    }));
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
    return writeTimes(refs, { clock: this.#writing.clock, ...this.#writing.source });
  }

  /** False when none of the places has an object. */
  async update(context: WriteContext, places: readonly Place[], { edits, ...settled }: SettledEdits): Promise<boolean> {
    return this.#writing.queue.run(places.map(placeText), async () => {
      const [found] = await findEntities(this.#writing.store, this.#writing.patience, [places]);
      if (found === undefined) return false;
      const { view, key } = found.place;
      const checked = checkEdits(view, context.snapshot, edits);
      const old = { entity: found.entity, row: entityRow(view, found.entity) };
      const targets = await linkTargets(context.snapshot, checked.links, this.#writing.source);
      const links = await linkWrite(key, { links: checked.links, targets, exists: true, ...this.#writing.source });
      const laterUs = () => this.#writing.clock.nextUs(Math.max(found.entity.lastUs, links.lastUs));
      const timeUs = await timeOf(checked.edits, found.entity, { ...settled, laterUs });
      const made = {
        view,
        key: key.id,
        timeUs,
        edits: editsOnce(checked.edits, old, timeUs),
        old,
        birth: false,
        fresh: false,
        ...links,
      };
      const [write = made] = await withPast([made], new Map([[key.id, found.entity]]), this.#writing.source);
      const composed = compose(write);
      checkKeyKept(view, key.id, { before: old.row, after: composed.row });
      await context.publish(
        () => [upsertEvent(write, composed.row, checked.links)],
        () => this.#write(context, [write], [composed]),
      );
      return true;
    });
  }

  /** How many there were. Each list of places names one object. */
  async refresh({ snapshot }: WriteContext, refs: readonly (readonly Place[])[]): Promise<number> {
    let count = 0;
    for (let from = 0; from < refs.length; from += INDEX_FILL_PAGE_ROWS) {
      const batch = refs.slice(from, from + INDEX_FILL_PAGE_ROWS);
      const found = (await findEntities(this.#writing.store, this.#writing.patience, batch)).flatMap(
        (entry) => entry?.entity ?? [],
      );
      await this.reindex(snapshot, found);
      count += found.length;
      for (const { view, key } of batch.flat())
        if (view.kind === "record") count += await this.reindexRecords(view, [key]);
    }
    return count;
  }

  /** Writes what the indexes have of these objects once more. Passes over those of classes that are gone. */
  async reindex(snapshot: Snapshot, entities: readonly Entity[]): Promise<void> {
    await this.#writing.change(
      entities.flatMap((entity) => {
        const view = snapshot.byCid(entity.key.cid);
        return view === undefined ? [] : indexEntries(view, entity);
      }),
    );
  }

  /** The same for records, of which those that are gone by now stay so. How many there were. */
  reindexRecords(view: LoadedClass, keys: readonly EntityKey[]): Promise<number> {
    return this.#writing.queue.run(keys.map(keyText), async () => {
      const records = await inPages(keys, (page) =>
        this.#writing.patience.repeat(() => this.#writing.store.getRecords(page)),
      );
      const there = records.filter((record) => record !== undefined);
      await this.#appendAll(there.map((record) => withIndexEntries(view, record)));
      return there.length;
    });
  }

  async #append(
    context: WriteContext,
    view: LoadedClass,
    rows: readonly { values: Row; source: IdSource }[],
  ): Promise<string[]> {
    const made = checkAll(rows, ({ values, source }): MadeRecord => {
      const row = checkRecordRow(view, context.snapshot, values);
      const given = Object.hasOwn(values, "id") ? values.id : undefined;
      return { row, record: recordOf(view, recordId(view, given, source), row), isNamed: given !== undefined };
    });
    for (let from = 0; from < made.length; from += CHANGE_BATCH_MAX) {
      const batch = made.slice(from, from + CHANGE_BATCH_MAX);
      const named = batch.filter(({ isNamed }) => isNamed).map(({ record }) => keyText(record));
      await context.publish(
        () => batch.map(({ record, row }) => insertEvent(view, record, row)),
        async () => {
          await this.#writing.queue.run(named, () => this.#appendAll(batch.map(({ record }) => record)));
          await confirmed(context, (now) => this.#bringRecords(view, batch, now));
        },
      );
    }
    return made.map(({ record }) => wholeId(view, record.id));
  }

  async #upsert(
    context: WriteContext,
    view: LoadedClass,
    rows: readonly CheckedRow[],
    atMs: number | undefined,
  ): Promise<string[]> {
    for (const batch of batches(rows)) {
      const known = batch.filter((row) => !row.fresh).map((row) => `${view.cid}:${row.key}`);
      await this.#writing.queue.run(known, () => this.#upsertBatch(context, { view, rows: batch, atMs }));
    }
    return rows.map((row) => wholeId(view, row.key));
  }

  async #upsertBatch(context: WriteContext, { view, rows, atMs }: Batch): Promise<void> {
    const traces = await this.#traces(rows.filter((row) => !row.fresh).map((row) => ({ cid: view.cid, id: row.key })));
    const links = rows.some((row) => row.links.length > 0) ? await this.#links(context, { view, rows }, traces) : [];
    const lastUs = Math.max(greatest(traces.values()), greatest(links));
    const timeUs = atMs === undefined ? this.#writing.clock.nextUs(lastUs) : Math.floor(atMs * 1_000);
    const made = rows.map(({ key, edits, fresh, writeUs = timeUs }, at): EntityWrite => {
      return {
        view,
        key,
        timeUs: writeUs,
        edits,
        old: loaded(view, traces.get(key)),
        birth: true,
        fresh,
        ...links[at],
      };
    });
    const writes = await withPast(made, traces, this.#writing.source);
    const composed = writes.map(compose);
    const events = () => writes.map((write, at) => upsertEvent(write, composed[at]?.row ?? {}, rows[at]?.links ?? []));
    const reborn = rebornOf(traces);
    if (reborn.size > 0) await this.#clearBefore(context, view, reborn);
    await context.publish(events, async () => {
      await this.#write(context, writes, composed);
      if (reborn.size > 0) await this.#clearAfter(view, reborn);
    });
  }

  async #links(
    context: WriteContext,
    { view, rows }: Pick<Batch, "view" | "rows">,
    traces: Traces,
  ): Promise<readonly LinkWrite[]> {
    const targets = await linkTargets(
      context.snapshot,
      rows.flatMap((row) => row.links),
      this.#writing.source,
    );
    return Promise.all(
      rows.map(({ key, links }) => {
        const exists = traces.get(key)?.entity !== undefined;
        return linkWrite({ cid: view.cid, id: key }, { links, targets, exists, ...this.#writing.source });
      }),
    );
  }

  /** Writes, and sees to it that it stays right whatever other controllers do at the same moment. */
  async #write(
    context: WriteContext,
    writes: readonly EntityWrite[],
    composed: readonly ComposedWrite[],
  ): Promise<void> {
    const linked = writes.filter(({ addEdges }) => addEdges !== undefined);
    if (linked.length > 0) await this.#writing.change(linked.flatMap(edgeMarks));
    await this.#writing.change(composed.map((entry) => entry.change));
    const unneeded = composed.map((entry) => entry.unneeded).filter((change) => change !== undefined);
    // Last: too many terms are harmless.
    if (unneeded.length > 0) await this.#writing.change(unneeded);
    await confirmed(context, (now) => this.#bring(writes, now));
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
    // Nobody would ever see them again.
    await this.#writing.change(
      orphans.map(({ view, key, timeUs }) => ({ key: { cid: view.cid, id: key }, timeUs, death: true as const })),
    );
    await this.#writing.change(writes.map((write) => compose(writeNow(write, now)).change));
  }

  async #bringRecords(view: LoadedClass, made: readonly MadeRecord[], now: Snapshot): Promise<void> {
    if (now.byCid(view.cid) === undefined)
      await this.#writing.patience.repeat(() => this.#writing.store.removeRecords(made.map(({ record }) => record)));
    const current = classNow(view, now);
    for (const name of new Set(made.flatMap(({ row }) => Object.keys(row)))) {
      if (current.column(name)?.number !== view.column(name)?.number) throw changedMeanwhile(view, `column ${name}`);
    }
    await this.#appendAll(made.map(({ record, row }) => recordOf(current, record.id, row)));
  }

  async #appendAll(records: readonly StoredRecord[]): Promise<void> {
    if (records.length > 0) await this.#writing.patience.repeat(() => this.#writing.store.append(records));
  }

  async #traces(keys: readonly EntityKey[]): Promise<Traces> {
    if (keys.length === 0) return new Map();
    const traces = await this.#writing.patience.repeat(() => this.#writing.store.trace(keys));
    return new Map(traces.map((trace, at) => [keys[at]?.id ?? "", trace]));
  }

  /** What the removal of objects that are made again did not take along, as far as it can be told before there are objects again. */
  async #clearBefore(context: WriteContext, view: LoadedClass, reborn: Traces): Promise<void> {
    await this.#writing.change(leftoverCells(view.cid, reborn));
    const incoming = await incomingEdges(
      [...reborn.keys()].map((id) => ({ cid: view.cid, id })),
      this.#writing.source,
    );
    await this.#writing.endEdges(context, incoming, ({ id }) => reborn.get(id)?.lastUs ?? 0);
  }

  async #clearAfter(view: LoadedClass, reborn: Traces): Promise<void> {
    for await (const changes of leftoverEdges(view.cid, reborn, this.#writing.source))
      await this.#writing.change(changes);
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

function loaded(
  view: LoadedClass,
  trace: EntityTrace | undefined,
): { readonly entity: Entity; readonly row: Row } | undefined {
  return trace?.entity === undefined ? undefined : { entity: trace.entity, row: entityRow(view, trace.entity) };
}

/** An object whose id is made of its key columns keeps them. */
function checkKeyKept(view: LoadedClass, key: string, rows: { readonly before: Row; readonly after: Row }): void {
  if (keyFromColumns(view, rows.before) !== key || keyFromColumns(view, rows.after) === key) return;
  throw new AppError(
    "invalid",
    `[Valid] class ${view.path}: the key columns ${view.keys.join(", ")} make the id and cannot be changed.`,
  );
}
