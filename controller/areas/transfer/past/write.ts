import { isAppError } from "../../../../common/errors.ts";
import type { Clock } from "../../../../common/time.ts";
import type { NewRecord, Objects, Restored, RestoredState, Unstored } from "../../objects/index.ts";
import { writesAll } from "../../permissions/index.ts";
import { checkRowCondition } from "../../query/index.ts";
import { faultOf, placed } from "../source.ts";
import { groupsBy, type Pass, type PlacedRow, type WriteOrder } from "../timed.ts";
import type { PastRow } from "./bind.ts";
import type { PastNotes } from "./notes.ts";
import { supersededUs, type LastRow } from "./order.ts";

interface PastWriterDependencies {
  readonly objects: Objects;
  readonly clock: Clock;
  readonly order: WriteOrder;
  readonly notes: PastNotes;
  /** Receives the rows whose objects do not exist after the write. */
  readonly unstored: (rows: readonly Unstored[]) => void;
  readonly last: LastRow | undefined;
}

export interface PlacedPast extends PlacedRow {
  readonly past: PastRow;
}

interface OrderedRow {
  readonly row: PlacedPast;
  readonly path: string;
  /** Time at which the next state of the same object began; absent: this is the first row of its object. */
  readonly supersededUs: number | undefined;
}

export function isPast(row: PlacedRow): row is PlacedPast {
  return row.past !== undefined;
}

/**
 * Writes rows with their former times. If an object has a later write here, the object and its history stay unchanged.
 * Repeated writes have the same result.
 */
export class PastWriter {
  readonly #with: PastWriterDependencies;
  #last: LastRow | undefined;

  constructor(dependencies: PastWriterDependencies) {
    this.#with = dependencies;
    this.#last = dependencies.last;
  }

  /** The last row that was written. */
  get last(): LastRow | undefined {
    return this.#last;
  }

  async write(rows: readonly PlacedPast[], pass: Pass): Promise<void> {
    for (const { part, work, row } of rows)
      await placed(part, () => checkRowCondition({ ...work, rows: [row] }, this.#with));
    const kept = new Set(this.#last?.isKept === true ? [textOf(this.#last)] : []);
    const ordered = this.#ordered(rows);
    const isKept = ({ row, path }: OrderedRow): boolean => kept.has(textOf({ class: path, id: row.past.id }));
    const present = ordered.filter(({ row }) => row.past.kind === "present");
    const states = ordered.filter(({ row }) => row.past.kind !== "present");
    // Write the latest state of each object first: it decides if any row of the object is stored.
    await this.#restore(
      states.filter((one) => one.supersededUs === undefined),
      kept,
    );
    await this.#insert(
      present.filter((one) => !isKept(one)),
      pass,
      kept,
    );
    await this.#restore(
      states.filter((one) => one.supersededUs !== undefined && !isKept(one)),
      kept,
    );
    if (this.#last) this.#last = { ...this.#last, isKept: kept.has(textOf(this.#last)) };
  }

  #ordered(rows: readonly PlacedPast[]): readonly OrderedRow[] {
    return rows.map((row) => {
      const { past, work } = row;
      const of = { ...past, class: work.view.path };
      const nextUs = supersededUs(this.#last, of);
      this.#last = { class: of.class, id: of.id, timeUs: of.timeUs, isKept: false };
      return { row, path: of.class, supersededUs: nextUs };
    });
  }

  async #insert(all: readonly OrderedRow[], pass: Pass, kept: Set<string>): Promise<void> {
    const { objects, order, unstored, notes } = this.#with;
    for (const [path, rows] of byClass(all)) {
      const restored = (later: readonly string[]): void => {
        for (const id of later) {
          kept.add(textOf({ class: path, id }));
          if (pass === "objects") notes.add("later", id);
        }
      };
      await placedRow(rows, () =>
        objects.unrestricted.ingest(
          order.principal,
          path,
          rows.map(({ row }) => recordOf(row, order)),
          { restored, ...(pass === "objects" && { unstored }) },
        ),
      );
    }
  }

  async #restore(all: readonly OrderedRow[], kept: Set<string>): Promise<void> {
    const { objects, order } = this.#with;
    for (const [path, rows] of byClass(all)) {
      const states = rows.map(stateOf);
      const restored = await placedRow(rows, () => objects.unrestricted.restore(order.principal, path, states));
      for (const [at, each] of restored.entries()) this.#note(each, rows[at]!, kept);
    }
  }

  #note({ outcome, relationsLeft }: Restored, { row, path }: OrderedRow, kept: Set<string>): void {
    const { id } = row.past;
    const { notes } = this.#with;
    if (outcome !== "stored") notes.add(outcome, id);
    if (outcome === "later" || outcome === "exists") kept.add(textOf({ class: path, id }));
    if (relationsLeft > 0) notes.add("relations", id, relationsLeft);
  }
}

function textOf(of: Pick<LastRow, "class" | "id">): string {
  return `${of.class} ${of.id}`;
}

/**
 * The record to write. Columns that it does not contain are cleared only if the principal may write the whole class.
 */
function recordOf(
  { row, place, past, work, waiting }: PlacedPast,
  { id, startedMs, principal }: WriteOrder,
): NewRecord {
  const { timeUs: writeUs, createdMs } = past;
  const wholeBut = writesAll(principal, work.view.path) ? new Set(waiting) : undefined;
  return {
    values: { ...row, id: past.id },
    timeMs: startedMs,
    identity: `${id}/${place}`,
    writeUs,
    createdMs,
    wholeBut,
  };
}

function stateOf({ row: { row, past }, supersededUs: nextUs }: OrderedRow): RestoredState {
  const { id, timeUs, createdMs, untilMs, added, dropped, lost, kind } = past;
  const state = kind === "removal" ? {} : { state: { values: row, createdMs, untilMs, added, dropped, lost } };
  return { id, timeUs, supersededUs: nextUs, ...state };
}

function byClass(rows: readonly OrderedRow[]): ReadonlyMap<string, readonly OrderedRow[]> {
  return groupsBy(rows, ({ path }) => path);
}

/** Does the work. If an error names a row, adds the row's place in the upload. */
async function placedRow<T>(rows: readonly OrderedRow[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const at = isAppError(error) ? error.details?.["row"] : undefined;
    const part = typeof at === "number" ? rows[at]?.row.part : undefined;
    throw part ? faultOf(part, error) : error;
  }
}
