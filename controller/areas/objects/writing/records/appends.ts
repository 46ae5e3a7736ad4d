import { CHANGE_BATCH_MAX } from "../../../../../common/limits.ts";
import type { Row } from "../../../../../common/value.ts";
import type { StoredRecord } from "../../../../store/objects.ts";
import { classNow, confirmed } from "../../definitions/confirm.ts";
import type { Snapshot } from "../../definitions/snapshot.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import { keyText } from "../../reading/locate.ts";
import type { RecordMarks, RowOptions } from "../../types.ts";
import { insertEvent } from "../../values/events.ts";
import { wholeId } from "../../values/identity.ts";
import { recordId, recordOf } from "../../values/records.ts";
import { inRoom, less, recordSize, requireRoom, sumOf, type Growth } from "../../values/room.ts";
import { checkAll, checkRecordRow, ofRow } from "../../values/rows.ts";
import { changedMeanwhile } from "../rebind.ts";
import { rewritten } from "../times/rewritten.ts";
import { unstoredRecords } from "../entities/unstored.ts";
import { withoutCommit, type WriteContext, type Writing } from "../writing.ts";

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

/** A record to be written; `ulid` makes its id if the values have none. */
export interface GivenRecord {
  readonly values: Row;
  readonly marked?: RecordMarks | undefined;
  readonly ulid: () => string;
  readonly writeUs?: number | undefined;
}

/** Writes records: in batches, with their triggers, in the room of the quota. */
export class RecordAppends {
  readonly #writing: Writing;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /** Answers the whole ids in the order of `rows`. */
  async append(
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
    if (made.length > CHANGE_BATCH_MAX) await requireRoom(context.room, view, sumOf(certain.map(sizeOfMade)));
    for (let from = 0; from < made.length; from += CHANGE_BATCH_MAX) {
      const batch = made.slice(from, from + CHANGE_BATCH_MAX);
      const own = batch.length === made.length ? context : withoutCommit(context);
      const waiting = batch
        .filter(({ isNamed }) => isNamed || triggers?.has(view))
        .map(({ record }) => keyText(record));
      await this.#writing.queue.run(waiting, triggers?.chain, () => this.#appendBatch(own, view, batch, options));
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
        this.#writing.lookup(view),
      ),
    );
  }

  async #rewritten(made: readonly MadeRecord[]): Promise<readonly MadeRecord[]> {
    const named = made.filter(({ isNamed }) => isNamed);
    const records = await rewritten(named, { clock: this.#writing.clock, ...this.#writing.source });
    const standing = new Map(named.map((one, at) => [one, { ...one, ...records[at] }]));
    return made.map((one) => standing.get(one) ?? one);
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
}

function sizeOfMade({ record, before }: MadeRecord): Growth {
  return before === undefined ? recordSize(record) : sumOf([recordSize(record), less(recordSize(before))]);
}
