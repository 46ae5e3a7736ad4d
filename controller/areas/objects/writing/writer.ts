import { ulidOf } from "../../../../common/ids.ts";
import type { Row } from "../../../../common/value.ts";
import type { Entity } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { findEntities, placeText, type Place } from "../reading/locate.ts";
import type { Edit, IngestOptions, InsertOptions, NewRecord, UpdateOptions } from "../types.ts";
import { compose, type EntityWrite } from "../values/compose.ts";
import { entityObject, entityRow } from "../values/entity.ts";
import { upsertEvent } from "../values/events.ts";
import { AscendingEntropy, RepeatableIds } from "../values/identity.ts";
import { changeGrowth, inRoom, type Growth } from "../values/room.ts";
import { checkAll, checkEdits, checkRow, type CheckedRow } from "../values/rows.ts";
import { withPast } from "./times/backdated.ts";
import { standingRecords } from "./basis.ts";
import { checkKeyKept } from "./beforetriggers.ts";
import { EntityWrites } from "./entities/writes.ts";
import { linkedAt, linkTargets, linkWrite } from "./edges/links.ts";
import { RecordAppends } from "./records/appends.ts";
import { microseconds, Upserts } from "./entities/upserts.ts";
import { editsOnce, timeOf, writeTimes } from "./times/writetimes.ts";
import type { WriteContext, Writing } from "./writing.ts";

interface AskedUpdate extends UpdateOptions {
  readonly edits: readonly Edit[];
}

interface Ingested extends Omit<IngestOptions, "basis" | "inCommit" | "also"> {
  readonly records: readonly NewRecord[];
}

/**
 * Inserts and updates objects of one tenant. On this controller, only one write of an object runs at a time.
 */
export class ObjectWriter {
  readonly #writing: Writing;
  readonly #records: RecordAppends;
  readonly #writes: EntityWrites;
  readonly #upserts: Upserts;
  readonly #entropy: AscendingEntropy;

  constructor(writing: Writing) {
    this.#writing = writing;
    this.#records = new RecordAppends(writing);
    this.#writes = new EntityWrites(writing);
    this.#upserts = new Upserts(writing, this.#writes);
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
      return this.#records.append(
        context,
        view,
        rows.map((values) => ({ values, ulid: () => ulidOf(timeMs, entropy()) })),
        options,
      );
    const checked = await checkAll(rows, (row) => checkRow(view, context.snapshot, row, { source }));
    const timed = eachMs ? checked.map((row, place) => ({ ...row, writeUs: microseconds(eachMs[place]) })) : checked;
    return this.#upserts.upsert(context, { view, rows: timed, atMs, unstored: options.unstored });
  }

  async ingest(context: WriteContext, view: LoadedClass, { records, ...options }: Ingested): Promise<string[]> {
    const ids = new RepeatableIds();
    const { basis } = context;
    const standing = basis === undefined ? records : standingRecords(basis, view, records);
    if (view.kind === "record")
      return this.#records.append(
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
    return this.#upserts.upsert(context, { view, rows: checked, ...options });
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
    const targets = await linkTargets(context, checked.links, this.#writing.source);
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
        () => this.#writes.make(context, [write], [composed]),
      ),
    );
    return true;
  }

  async #withPast(made: EntityWrite, entity: Entity): Promise<EntityWrite> {
    const [write = made] = await withPast([made], new Map([[made.key, entity]]), this.#writing.source);
    return write;
  }
}
