import { AppError, isAppError } from "../../../common/errors.ts";
import { ULID_ORDINALS_MAX } from "../../../common/ids.ts";
import { IMPORT_CHUNK_MAX_CHARACTERS, IMPORT_CHUNK_MAX_ROWS } from "../../../common/limits.ts";
import type { Statement } from "../../../common/mql/index.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type { ClassCatalog, ClassView, NewRecord, Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { checkRowCondition, classChange, classSpec, Slices, type InsertWork } from "../query/index.ts";
import { insertWorks } from "./check.ts";
import { faultOf, parsePart, type ScriptPart } from "./source.ts";
import { openRelations } from "./targets.ts";

/** How far a script is written: what comes next, and how many rows there were before. */
export interface Progress {
  /** Parts. */
  readonly done: number;
  readonly rows: number;
  /** First all objects, then again those with relations to objects written later. */
  readonly pass: "objects" | "relations";
  /** Whether any relations had to wait so far. */
  readonly isRelated: boolean;
}

export interface WriteOrder {
  readonly id: string;
  readonly principal: Principal;
  readonly startedMs: number;
}

interface WriterDependencies {
  readonly objects: Objects;
  readonly clock: Clock;
}

interface PlacedRow {
  readonly row: Row;
  /** Among all rows of the script. */
  readonly ordinal: number;
}

interface Work {
  readonly part: ScriptPart;
  readonly work: InsertWork;
  readonly rows: readonly PlacedRow[];
}

/** Rows that are written together. */
interface Chunk {
  readonly works: Work[];
  rows: number;
  characters: number;
}

/**
 * Writes a script that was checked. What is written again after an interruption is the same: rows without a key of
 * their own get ids made of the import and their place in it, definitions that are there stay. A chunk that is repeated
 * wins over what others wrote into its objects meanwhile.
 */
export class ScriptWriter {
  readonly #dependencies: WriterDependencies;
  readonly #order: WriteOrder;
  #chunk: Chunk = { works: [], rows: 0, characters: 0 };
  #done: number;
  #rows: number;
  #pass: Progress["pass"];
  #isRelated: boolean;

  constructor(dependencies: WriterDependencies, order: WriteOrder, from: Progress) {
    this.#dependencies = dependencies;
    this.#order = order;
    this.#done = from.done;
    this.#rows = from.rows;
    this.#pass = from.pass;
    this.#isRelated = from.isRelated;
  }

  /**
   * Calls `saved` after each chunk, and goes on when that resolves. Ends with what the signal says when that fires;
   * what is saved then is written.
   */
  async write(
    parts: () => AsyncIterable<ScriptPart>,
    saved: (progress: Progress) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    if (this.#pass === "objects") await this.#writeAll(parts(), saved, signal);
    if (!this.#isRelated) return;
    if (this.#pass === "objects") [this.#pass, this.#done, this.#rows] = ["relations", 0, 0];
    await this.#writeAll(parts(), saved, signal);
  }

  async #writeAll(
    parts: AsyncIterable<ScriptPart>,
    saved: (progress: Progress) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const slices = new Slices({ tenant: this.#order.principal.tenant, clock: this.#dependencies.clock, signal });
    const first = this.#done;
    let at = 0;
    for await (const part of parts) {
      at += 1;
      if (at <= first) continue;
      await this.#take(part, { saved, mayBeDone: at === first + 1 });
      if (slices.isOver()) await slices.pause();
    }
    await this.#flush(saved);
  }

  async #take(
    part: ScriptPart,
    of: { readonly saved: (progress: Progress) => Promise<void>; readonly mayBeDone: boolean },
  ): Promise<void> {
    for (const statement of flat(await placed(part, () => parsePart(part)))) {
      if (statement.kind === "insert" || statement.kind === "insertJson")
        await placed(part, () => this.#collect(part, statement));
      else {
        await this.#writeChunk();
        if (this.#pass === "objects") await placed(part, () => this.#define(statement, of.mayBeDone));
      }
    }
    this.#done += 1;
    this.#chunk.characters += part.text.length;
    if (this.#chunk.rows >= IMPORT_CHUNK_MAX_ROWS || this.#chunk.characters >= IMPORT_CHUNK_MAX_CHARACTERS)
      await this.#flush(of.saved);
  }

  async #collect(part: ScriptPart, statement: Extract<Statement, { kind: "insert" | "insertJson" }>): Promise<void> {
    const catalog = await this.#dependencies.objects.catalog(this.#order.principal);
    for (const work of insertWorks(statement, { principal: this.#order.principal, catalog })) {
      const rows = work.rows.flatMap((row, at) =>
        this.#rowOf(row, { view: work.view, catalog, ordinal: this.#rows + at }),
      );
      if (rows.length > 0) this.#chunk.works.push({ part, work, rows });
      this.#chunk.rows += rows.length;
      this.#rows += work.rows.length;
    }
  }

  /** The row as this pass writes it, if it does. A guard gets its rows once and whole. */
  #rowOf(
    row: Row,
    { view, catalog, ordinal }: { view: ClassView; catalog: ClassCatalog; ordinal: number },
  ): readonly PlacedRow[] {
    const waiting = view.system ? [] : openRelations(row, view, catalog);
    if (this.#pass === "relations") return waiting.length === 0 ? [] : [{ row, ordinal }];
    if (waiting.length === 0) return [{ row, ordinal }];
    this.#isRelated = true;
    return [{ row: Object.fromEntries(Object.entries(row).filter(([name]) => !waiting.includes(name))), ordinal }];
  }

  async #flush(saved: (progress: Progress) => Promise<void>): Promise<void> {
    await this.#writeChunk();
    await saved({ done: this.#done, rows: this.#rows, pass: this.#pass, isRelated: this.#isRelated });
  }

  async #writeChunk(): Promise<void> {
    const { works } = this.#chunk;
    this.#chunk = { works: [], rows: 0, characters: 0 };
    const byClass = new Map<string, Work[]>();
    for (const each of works) {
      const { path } = each.work.view;
      const those = byClass.get(path);
      if (those) those.push(each);
      else byClass.set(path, [each]);
    }
    for (const [path, those] of byClass) await this.#writeRows(path, those);
  }

  async #writeRows(path: string, works: readonly Work[]): Promise<void> {
    const { objects, clock } = this.#dependencies;
    const { principal } = this.#order;
    for (const { part, work } of works) await placed(part, () => checkRowCondition(work, { objects, clock }));
    const records = works.flatMap(({ part, work, rows }) =>
      rows.map(({ row, ordinal }) => ({ part, record: this.#record(work, row, ordinal) })),
    );
    const guard = works[0]?.work.view.guard?.insert;
    try {
      if (guard)
        await guard(
          principal,
          records.map(({ record }) => record.values),
        );
      else
        await objects.ingest(
          principal,
          path,
          records.map(({ record }) => record),
        );
    } catch (error) {
      const row = isAppError(error) ? error.details?.["row"] : undefined;
      const part = typeof row === "number" ? records[row]?.part : undefined;
      throw part ? faultOf(part, error) : error;
    }
  }

  #record({ atMs }: InsertWork, values: NewRecord["values"], ordinal: number): NewRecord {
    const { id, startedMs } = this.#order;
    const series = Math.floor(ordinal / ULID_ORDINALS_MAX);
    const identity = { timeMs: atMs ?? startedMs, identity: `${id}/${series}`, ordinal: ordinal % ULID_ORDINALS_MAX };
    return { values, ...identity, ...(atMs === undefined ? {} : { writeUs: atMs * 1_000 }) };
  }

  /** A part that was interrupted may have changed the class already. */
  async #define(statement: Statement, mayBeDone: boolean): Promise<void> {
    const { objects } = this.#dependencies;
    const { principal } = this.#order;
    if (statement.kind === "createClass")
      await objects.createClass(principal, classSpec(statement, []), { ifNotExists: true });
    else if (statement.kind === "createEdgeType") {
      await objects.createEdgeType(
        principal,
        { name: statement.name, remedy: statement.remedy ?? "" },
        { ifNotExists: true },
      );
    } else if (statement.kind === "alterClass") {
      await objects.alterClass(principal, statement.class.path, classChange(statement, [])).catch((error: unknown) => {
        if (!mayBeDone || !isAppError(error, "conflict", "not_found")) throw error;
      });
    } else throw new AppError("internal", `An import came to a ${statement.kind} that its check let pass.`);
  }
}

async function placed<T>(part: ScriptPart, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw faultOf(part, error);
  }
}

function flat(statements: readonly Statement[]): readonly Statement[] {
  return statements.flatMap((statement) => (statement.kind === "batch" ? flat(statement.statements) : [statement]));
}
