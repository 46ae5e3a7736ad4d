import { isAppError } from "../../../common/errors.ts";
import { ULID_ORDINALS_MAX } from "../../../common/ids.ts";
import { IMPORT_CHUNK_MAX_ROWS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type { IngestOptions, NewRecord, Objects, Unstored } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { checkRowCondition, insertedId, insertTimes, type InsertWork } from "../query/index.ts";
import { markedRow } from "./marked.ts";
import type { PastRow } from "./past/bind.ts";
import { faultOf, placed, type ScriptPart } from "./source.ts";

/**
 * The pass `objects` writes all objects. Some relations can only be written when their targets exist; the pass
 * `relations` writes those objects again.
 */
export type Pass = "objects" | "relations";

/** Rows that are being written, with the times of their writes. So a repeated write is recognised as done. */
export interface TimedRows {
  readonly pass: Pass;
  /**
   * `from` is the position of the first row, `to` the position after the last row, among all rows of the script. Rows
   * before `from` are written.
   */
  readonly from: number;
  readonly to: number;
  /** Pairs in ascending order: the position of a row, and the write time in microseconds from that row on. */
  readonly timesUs: readonly TimeFrom[];
}

type TimeFrom = readonly [place: number, writeUs: number];

export interface PlacedRow {
  readonly part: ScriptPart;
  readonly work: InsertWork;
  readonly row: Row;
  /** Former times of the row; absent: the row is a new write. */
  readonly past?: PastRow | undefined;
  /** Names of the relations that the second pass writes; absent: none. */
  readonly waiting?: readonly string[];
  /** Position among all rows of the script. */
  readonly place: number;
}

export interface WriteOrder {
  readonly id: string;
  readonly principal: Principal;
  readonly startedMs: number;
  /** Path that replaces the ospace of the script's classes; absent: their paths stay. */
  readonly root?: string | undefined;
  /** True: stores former times and earlier states. Absent: every row is a new write. */
  readonly times?: boolean | undefined;
}

interface TimedWriterDependencies {
  /** Receives the rows whose objects do not exist after the write. */
  readonly unstored: (rows: readonly Unstored[]) => void;
  readonly objects: Objects;
  readonly clock: Clock;
  readonly order: WriteOrder;
  /** The rows that an earlier attempt was writing when it stopped. */
  readonly timed: TimedRows | undefined;
  /** Resolves when `timed` is stored. */
  readonly note: (timed: TimedRows) => Promise<void>;
}

/** Rows whose times are stored together. */
interface Slice {
  readonly rows: readonly PlacedRow[];
  /** True if no earlier attempt can have written any of the rows. */
  readonly isNew: boolean;
  readonly timed: TimedRows;
}

/** Writes the rows of an import. Stores the times of the writes before it writes the rows. */
export class TimedWriter {
  readonly #with: TimedWriterDependencies;
  #timed: TimedRows | undefined;

  constructor(dependencies: TimedWriterDependencies) {
    this.#with = dependencies;
    this.#timed = dependencies.timed;
  }

  async write(rows: readonly PlacedRow[], pass: Pass): Promise<void> {
    const { from = 0 } = this.#timed?.pass === pass ? this.#timed : {};
    let rest = rows.filter(({ place }) => place >= from);
    while (rest.length > 0) {
      const slice = await this.#slice(rest, pass);
      for (const ofClass of byClass(slice.rows))
        for (const those of byTime(ofClass)) await this.#writeClass(those, slice);
      rest = rest.slice(slice.rows.length);
    }
  }

  async #slice(rest: readonly PlacedRow[], pass: Pass): Promise<Slice> {
    const timed = this.#timed;
    const again = timed?.pass === pass ? rest.filter(({ place }) => place < timed.to) : [];
    if (timed && again.length > 0) return { rows: again, isNew: false, timed };
    const rows = rest.slice(0, IMPORT_CHUNK_MAX_ROWS);
    for (const { part, work } of byWork(rows)) await placed(part, () => checkRowCondition(work, this.#with));
    const { objects, order } = this.#with;
    const times = await insertTimes(
      objects,
      order.principal,
      rows.map((row) => refOf(row)),
    );
    const next = { pass, from: rows[0]?.place ?? 0, to: (rows.at(-1)?.place ?? 0) + 1 };
    return {
      rows,
      isNew: true,
      timed: await this.#note({ ...next, timesUs: grouped(rows, (_, at) => times[at] ?? 0) }),
    };
  }

  async #note(timed: TimedRows): Promise<TimedRows> {
    await this.#with.note(timed);
    this.#timed = timed;
    return timed;
  }

  async #writeClass(rows: readonly PlacedRow[], slice: Slice): Promise<void> {
    const { objects, order } = this.#with;
    const [first] = rows;
    if (!first) return;
    const { view } = first.work;
    const guard = view.guard?.insert;
    try {
      if (guard)
        await guard(
          order.principal,
          rows.map(({ row }) => row),
        );
      else
        await objects.unrestricted.ingest(order.principal, view.path, this.#records(rows, slice), {
          ...this.#retiming(rows, slice),
          rewrites: true,
          // In the second pass, the same rows would be reported again.
          ...(slice.timed.pass === "objects" && { unstored: this.#with.unstored }),
        });
    } catch (error) {
      const at = isAppError(error) ? error.details?.["row"] : undefined;
      const part = typeof at === "number" ? rows[at]?.part : undefined;
      throw part ? faultOf(part, error) : error;
    }
  }

  #records(rows: readonly PlacedRow[], { isNew, timed }: Slice): readonly NewRecord[] {
    const { id, startedMs } = this.#with.order;
    const timeUs = timesOf(timed);
    return rows.map(({ row, place, work: { atMs, view } }) => ({
      ...markedRow(row, view),
      timeMs: atMs ?? startedMs,
      // For records, AT is the time of the record. For objects, it is the time of the write.
      writeUs: atMs === undefined || view.kind === "record" ? timeUs(place) : atMs * 1_000,
      identity: `${id}/${Math.floor(place / ULID_ORDINALS_MAX)}`,
      ordinal: place % ULID_ORDINALS_MAX,
      isNew: isNew && timed.pass === "objects",
    }));
  }

  #retiming(rows: readonly PlacedRow[], slice: Slice): IngestOptions {
    if (!slice.isNew || rows[0]?.work.atMs !== undefined) return {};
    return { retimed: (at, writeUs) => this.#retime(new Set(at.map((each) => rows[each]?.place)), slice, writeUs) };
  }

  async #retime(places: ReadonlySet<number | undefined>, { rows, timed }: Slice, writeUs: number): Promise<void> {
    const now = this.#timed ?? timed;
    const timeUs = timesOf(now);
    const timesUs = grouped(rows, ({ place }) => (places.has(place) ? writeUs : timeUs(place)));
    await this.#note({ ...now, timesUs });
  }
}

function refOf({ work: { view }, row }: PlacedRow): { readonly id: string; readonly class: string } | undefined {
  const id = view.system ? undefined : insertedId(view, row);
  return id === undefined ? undefined : { id, class: view.path };
}

function grouped(rows: readonly PlacedRow[], timeOf: (row: PlacedRow, at: number) => number): readonly TimeFrom[] {
  const times: TimeFrom[] = [];
  for (const [at, row] of rows.entries()) {
    const writeUs = timeOf(row, at);
    if (times.at(-1)?.[1] !== writeUs) times.push([row.place, writeUs]);
  }
  return times;
}

/** Returns a function that finds the write time of a row. Call that function with ascending positions. */
function timesOf({ timesUs }: TimedRows): (place: number) => number {
  let at = 0;
  return (place) => {
    for (let next = timesUs[at + 1]; next && next[0] <= place; next = timesUs[at + 1]) at += 1;
    return timesUs[at]?.[1] ?? 0;
  };
}

function byClass(rows: readonly PlacedRow[]): Iterable<readonly PlacedRow[]> {
  return groupsBy(rows, ({ work }) => work.view.path).values();
}

export function groupsBy<R, K>(rows: readonly R[], keyOf: (row: R) => K): ReadonlyMap<K, readonly R[]> {
  const groups = new Map<K, R[]>();
  for (const row of rows) {
    const those = groups.get(keyOf(row));
    if (those) those.push(row);
    else groups.set(keyOf(row), [row]);
  }
  return groups;
}

/** Splits the rows, in their order, where rows with an own time (AT) begin or end. */
function* byTime(rows: readonly PlacedRow[]): Generator<readonly PlacedRow[]> {
  let first = 0;
  for (const [at, { work }] of rows.entries()) {
    const before = rows[at - 1]?.work ?? work;
    if ((before.atMs === undefined) === (work.atMs === undefined)) continue;
    yield rows.slice(first, at);
    first = at;
  }
  yield rows.slice(first);
}

/** Yields each work, with those of its rows that are in `rows`. */
function* byWork(rows: readonly PlacedRow[]): Generator<{ readonly part: ScriptPart; readonly work: InsertWork }> {
  for (const [work, those] of groupsBy(rows, (row) => row.work)) {
    const [{ part } = {}] = those;
    if (part) yield { part, work: { ...work, rows: those.map(({ row }) => row) } };
  }
}
