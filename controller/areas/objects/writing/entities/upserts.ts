import { CHANGE_BATCH_MAX, WRITE_AHEAD_MAX_MS } from "../../../../../common/limits.ts";
import type { Row } from "../../../../../common/value.ts";
import { PRESENCE } from "../../../../store/cells.ts";
import type { Entity, EntityKey, EntityTrace } from "../../../../store/objects.ts";
import type { LoadedClass } from "../../definitions/views.ts";
import { inPages, keyText } from "../../reading/locate.ts";
import type { IngestOptions } from "../../types.ts";
import { compose, type EntityWrite } from "../../values/compose.ts";
import { lastRemovalUs } from "../../values/edgelives.ts";
import { entityRow } from "../../values/entity.ts";
import { upsertEvent } from "../../values/events.ts";
import { wholeId } from "../../values/identity.ts";
import { changeGrowth, inRoom, requireRoom, sumOf, type Growth } from "../../values/room.ts";
import { ofRow, type CheckedRow } from "../../values/rows.ts";
import { withPast } from "../times/backdated.ts";
import type { BeforeTriggers } from "../beforetriggers.ts";
import { clearedBefore } from "./ends.ts";
import type { EntityWrites } from "./writes.ts";
import { incomingEdges } from "../edges/incoming.ts";
import { linkedAt, linkTargets, linkWrite, type LinkTargets, type LinkWrite } from "../edges/links.ts";
import { leftoverCells, leftoverEdges, recreatedOf, type Traces } from "./recreated.ts";
import { restorable } from "./restorable.ts";
import { madeAnew, unstoredRows } from "./unstored.ts";
import { editsOnce } from "../times/writetimes.ts";
import { withoutCommit, type WriteContext, type Writing } from "../writing.ts";

/** Checked rows of one class of entities. */
export interface Batch extends Omit<IngestOptions, "basis" | "rewrites" | "inCommit" | "also"> {
  readonly view: LoadedClass;
  readonly rows: readonly CheckedRow[];
  readonly atMs?: number | undefined;
}

/** Inserts entities, or updates those that exist: in batches, with triggers, links, times and the room of the quota. */
export class Upserts {
  readonly #writing: Writing;
  readonly #writes: EntityWrites;

  constructor(writing: Writing, writes: EntityWrites) {
    this.#writing = writing;
    this.#writes = writes;
  }

  /** Answers the whole ids in the order of the rows. */
  async upsert(context: WriteContext, { view, rows, retimed, ...options }: Batch): Promise<string[]> {
    if (rows.length > CHANGE_BATCH_MAX && context.room !== undefined)
      await requireRoom(context.room, view, { objects: await this.#newAmong(view, rows), bytes: 0 });
    let done = 0;
    for (const batch of rows.length === 1 ? [rows] : batches(rows)) {
      const own = batch.length === rows.length ? context : withoutCommit(context);
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
        this.#upsertBatch(own, { ...options, view, rows: batch, ...later }),
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
          const written = this.#writes.make(context, writes, composed);
          return recreated.size === 0 ? written : written.then(() => this.#clearAfter(view, recreated));
        }),
      );
    if (recreated.size === 0) await write();
    else await this.#recreating(context, { view, recreated }, write);
    if (batch.unstored === undefined) return;
    batch.unstored(await unstoredRows(madeAnew(composed, traces), this.#writing.lookup(view)));
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
      context,
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

/** `undefined` without a time. */
export function microseconds(atMs: number | undefined): number | undefined {
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
