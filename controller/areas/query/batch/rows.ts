import type { Row } from "../../../../common/value.ts";
import type { IngestOptions, NewRecord, ObjectRef, ReadRequest, DryRun, Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { Slices } from "../run/slice.ts";
import { checkRowCondition, type InsertContext, type InsertWork } from "../write/insert.ts";
import { isRuledByRow } from "../write/write.ts";
import type { Making, Repeatable, Settled, Settlement } from "./repeatable.ts";

type Ids = readonly (string | undefined)[];

/** `undefined` if the owner of a system class makes the insert. */
export function repeatableInsert(works: readonly InsertWork[], context: InsertContext): Repeatable | undefined {
  return works.some(({ view }) => view.system) ? undefined : new RepeatableInsert(works, context);
}

class RepeatableInsert implements Repeatable {
  readonly #works: readonly InsertWork[];
  readonly #context: InsertContext;
  /** Known ids by work, then by row; `undefined` if the id is generated later. */
  #ids: readonly Ids[] = [];

  constructor(works: readonly InsertWork[], context: InsertContext) {
    this.#works = works;
    this.#context = context;
  }

  check(rehearsal: DryRun): void {
    this.#ids = this.#works.map(({ view, rows }) => rows.map((row) => rehearsal.checkRow(view.path, row)));
  }

  /** Only a row condition depends on stored objects. */
  reads(): readonly ReadRequest[] {
    return this.#works.flatMap(({ scope, view }, at) => {
      return !isRuledByRow(scope, view) ? [] : [{ class: view.path, subtree: false, ids: this.#known(at) }];
    });
  }

  async settle(signal: AbortSignal | undefined): Promise<Settlement> {
    const timesUs: (readonly number[])[] = [];
    for (const [at, work] of this.#works.entries()) {
      new Slices({ ...this.#context, signal }).check();
      await checkRowCondition(work, this.#context);
      timesUs.push(await this.#timesUs(work, this.#ids[at] ?? []));
    }
    const changes = this.#works.map(({ view }, at) => ({ class: view.path, ids: this.#known(at) }));
    return { settled: { kind: "orderedRows", timesUs }, changes };
  }

  async make(settled: Settled, { identity, batch, signal, retimed }: Making): Promise<readonly Row[]> {
    // A kind of a later version is left to controllers of that version.
    if (settled.kind !== "rows" && settled.kind !== "orderedRows") throw new RangeError("an insert is settled as rows");
    const isOrdered = settled.kind === "orderedRows" || settled.isOrdered === true;
    const ids: string[] = [];
    for (const [at, work] of this.#works.entries()) {
      new Slices({ ...this.#context, signal }).check();
      const isNew = retimed !== undefined;
      const records = recordsOf(work, settled.timesUs[at] ?? [], {
        identity: isOrdered ? `${batch.identity}/of/${at}` : `${identity}/${at}`,
        isNew,
        statement: isOrdered ? batch.statement : undefined,
      });
      const { objects, unstored } = this.#context;
      // Rows with a time given by AT keep it.
      const retiming: IngestOptions =
        retimed === undefined || work.atMs !== undefined
          ? {}
          : {
              retimed: (places, laterUs) =>
                retimed((now) => retimedIn(now, { at, places, count: records.length }, laterUs)),
            };
      const stored = await unstored.storedOf((told) =>
        objects.unrestricted.ingest(work.scope.principal, work.view.path, records, {
          ...retiming,
          rewrites: true,
          unstored: told,
        }),
      );
      ids.push(...stored);
    }
    return [{ count: ids.length, ids }];
  }

  #known(at: number): string[] {
    return (this.#ids[at] ?? []).filter((id) => id !== undefined);
  }

  async #timesUs({ scope, view }: InsertWork, ids: Ids): Promise<readonly number[]> {
    const refs = ids.map((id) => (id === undefined ? undefined : { id, class: view.path }));
    const timesUs = await insertTimes(this.#context.objects, scope.principal, refs);
    return new Set(timesUs).size === 1 ? timesUs.slice(0, 1) : timesUs;
  }
}

/** The settled change with another time for some rows of one class. */
export function retimedIn(
  settled: Settled,
  { at, places, count }: { readonly at: number; readonly places: readonly number[]; readonly count: number },
  writeUs: number,
): Settled {
  if (settled.kind === "found") return settled;
  const [common = 0] = settled.timesUs[at] ?? [];
  const timesUs = Array.from({ length: count }, (_, row) => settled.timesUs[at]?.[row] ?? common);
  for (const place of places) timesUs[place] = writeUs;
  return { ...settled, timesUs: settled.timesUs.with(at, timesUs) };
}

/** Preset times of rows, in their order. A row that names the same object as an earlier row gets a later time. */
export async function insertTimes(
  objects: Unrestricted<"writeTimes">,
  principal: Principal,
  refs: readonly (ObjectRef | undefined)[],
): Promise<readonly number[]> {
  const timesUs: number[] = [];
  for (const wave of waves(refs)) timesUs.push(...(await objects.unrestricted.writeTimes(principal, wave)));
  return timesUs;
}

/** Successive parts of the list. No id occurs twice in a part. */
function waves(refs: readonly (ObjectRef | undefined)[]): (ObjectRef | undefined)[][] {
  const found: (ObjectRef | undefined)[][] = [];
  let seen = new Set<string>();
  for (const ref of refs) {
    const isAgain = ref !== undefined && seen.has(ref.id);
    if (isAgain) seen = new Set();
    if (ref !== undefined) seen.add(ref.id);
    const last = found.at(-1);
    if (last && !isAgain) last.push(ref);
    else found.push([ref]);
  }
  return found;
}

/** Rows as records to ingest. AT gives the time of a record, or of the write of an object. */
function recordsOf(
  { view, rows, atMs }: InsertWork,
  timesUs: readonly number[],
  { statement, ...of }: Pick<NewRecord, "identity" | "isNew"> & { readonly statement: number | undefined },
): readonly NewRecord[] {
  const [common = 0] = timesUs;
  return rows.map((values, at) => {
    const settledUs = timesUs[at] ?? common;
    const writeUs = atMs === undefined || view.kind === "record" ? settledUs : Math.floor(atMs * 1_000);
    const timeMs = atMs ?? Math.floor(settledUs / 1_000);
    return { ...of, values, writeUs, timeMs, ...placeOf(of.identity, statement, at) };
  });
}

/** More rows than an INSERT can have. */
const ROWS_OF_STATEMENT = 2 ** 24;

/** Identity of a row: its own, or that of its batch with the place of the row in the batch. */
function placeOf(
  identity: string,
  statement: number | undefined,
  row: number,
): Pick<NewRecord, "identity" | "ordinal" | "isOrdered"> {
  if (statement === undefined) return { identity: `${identity}/${row}` };
  return { identity, ordinal: statement * ROWS_OF_STATEMENT + row, isOrdered: true };
}
