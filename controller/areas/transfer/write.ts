import { AppError, isAppError } from "../../../common/errors.ts";
import { IMPORT_CHUNK_MAX_CHARACTERS, IMPORT_CHUNK_MAX_ROWS } from "../../../common/limits.ts";
import type { Statement } from "../../../common/mql/index.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type { ClassCatalog, Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { classChange, classSpec, Slices, UnstoredRows, type UnstoredNote } from "../query/index.ts";
import { insertWorks, type InsertStatement, noteUntaken } from "./check.ts";
import type { BoundWork } from "./past/bind.ts";
import { type PastNote, PastNotes } from "./past/notes.ts";
import type { LastRow } from "./past/order.ts";
import { isPast, PastWriter } from "./past/write.ts";
import { type PathOf, pathsBelow } from "./rooted.ts";
import { parsePart, placed, type ScriptPart } from "./source.ts";
import { openRelations } from "./targets.ts";
import { TimedWriter, type Pass, type PlacedRow, type TimedRows, type WriteOrder } from "./timed.ts";

/** Progress of the current pass over a script: the parts and rows that are written. */
export interface Progress {
  /** Number of parts that are written. */
  readonly done: number;
  readonly rows: number;
  readonly pass: Pass;
  /** True if some relation must be written in the second pass. */
  readonly isRelated: boolean;
  /** Rows whose objects do not exist after the write. Absent in progress that an older version stored. */
  readonly unstored?: UnstoredNote;
  /** Progress of rows with former times. Absent in progress that an older version stored. */
  readonly past?: PastProgress;
}

interface PastProgress {
  readonly last: LastRow | undefined;
  readonly note: PastNote;
}

/** The state at which an earlier attempt stopped. */
export interface WriteFrom extends Progress {
  readonly timed?: TimedRows;
}

/** Stores the progress. The writer continues when the call resolves. */
export interface WriteNotes {
  /** Called after each chunk, before the next part is written. */
  saved(progress: Progress): Promise<void>;
  /** Called before the rows are written, with the times of their writes. */
  timed(timed: TimedRows): Promise<void>;
}

interface WriterDependencies {
  readonly objects: Objects;
  readonly clock: Clock;
  readonly notes: WriteNotes;
}

/** Rows that are written together, and the length of their parts in characters. */
interface Chunk {
  readonly rows: PlacedRow[];
  characters: number;
}

/**
 * Writes a checked script. If writing is repeated after an interruption, the result is the same. The id of a row
 * without a key is made from the import and the position of the row. Existing definitions stay. Repeated rows keep the
 * times of the first attempt, so they change nothing that is already written.
 */
export class ScriptWriter {
  readonly #dependencies: WriterDependencies;
  readonly #principal: Principal;
  readonly #timed: TimedWriter;
  #chunk: Chunk = { rows: [], characters: 0 };
  #done: number;
  #rows: number;
  #pass: Progress["pass"];
  #isRelated: boolean;
  readonly #unstored: UnstoredRows;
  readonly #pathOf: PathOf;
  readonly #times: boolean;
  readonly #pastNotes: PastNotes;
  readonly #past: PastWriter;

  constructor(dependencies: WriterDependencies, order: WriteOrder, from: WriteFrom) {
    const { notes } = dependencies;
    this.#dependencies = dependencies;
    this.#principal = order.principal;
    this.#pathOf = pathsBelow(order.root);
    this.#unstored = new UnstoredRows(from.unstored);
    this.#timed = new TimedWriter({
      ...dependencies,
      order,
      timed: from.timed,
      note: (timed) => notes.timed(timed),
      unstored: this.#unstored.add,
    });
    this.#times = order.times === true;
    this.#pastNotes = new PastNotes(from.past?.note);
    this.#past = new PastWriter({
      ...dependencies,
      order,
      notes: this.#pastNotes,
      unstored: this.#unstored.add,
      last: from.past?.last,
    });
    this.#done = from.done;
    this.#rows = from.rows;
    this.#pass = from.pass;
    this.#isRelated = from.isRelated;
  }

  /** Writes the script. If the signal fires, throws its reason; everything that was saved by then is written. */
  async write(parts: () => AsyncIterable<ScriptPart | undefined>, signal: AbortSignal): Promise<void> {
    if (this.#pass === "objects") await this.#writeAll(parts(), signal);
    if (!this.#isRelated) return;
    if (this.#pass === "objects") [this.#pass, this.#done, this.#rows] = ["relations", 0, 0];
    await this.#writeAll(parts(), signal);
  }

  async #writeAll(parts: AsyncIterable<ScriptPart | undefined>, signal: AbortSignal): Promise<void> {
    const slices = new Slices({ tenant: this.#principal.tenant, clock: this.#dependencies.clock, signal });
    const first = this.#done;
    let at = 0;
    for await (const part of parts) {
      if (part) at += 1;
      if ((!part || at <= first) && slices.isOverNow()) await slices.pause();
      if (!part || at <= first) continue;
      await this.#take(part, at === first + 1, slices);
      if (slices.isOver()) await slices.pause();
    }
    await this.#flush();
  }

  async #take(part: ScriptPart, mayBeDone: boolean, slices: Slices): Promise<void> {
    for (const statement of flat(await placed(part, () => parsePart(part, this.#pathOf, slices)))) {
      if (statement.kind === "insert" || statement.kind === "insertJson")
        await placed(part, () => this.#collect(part, statement, slices));
      else {
        await this.#writeChunk();
        if (this.#pass === "objects") await placed(part, () => this.#define(statement, mayBeDone));
      }
    }
    this.#done += 1;
    this.#chunk.characters += part.text.length;
    const { rows, characters } = this.#chunk;
    if (rows.length >= IMPORT_CHUNK_MAX_ROWS || characters >= IMPORT_CHUNK_MAX_CHARACTERS) await this.#flush();
  }

  async #collect(part: ScriptPart, statement: InsertStatement, slices: Slices): Promise<void> {
    const catalog = await this.#dependencies.objects.catalog(this.#principal);
    const times = this.#times;
    const target = { principal: this.#principal, catalog, slices, pathOf: this.#pathOf, times };
    if (this.#pass === "objects") noteUntaken(statement, { times, past: this.#pastNotes });
    for (const work of await insertWorks(statement, target)) {
      for (const [at, row] of work.rows.entries()) {
        const written = this.#asWritten(row, work, catalog);
        if (written) this.#chunk.rows.push({ part, work, place: this.#rows + at, past: work.past, ...written });
        if (slices.isOver()) await slices.pause();
      }
      this.#rows += work.rows.length;
    }
  }

  /**
   * The row as the current pass writes it; `undefined` if this pass does not write it. Rows of the platform's classes
   * are written once and whole.
   */
  #asWritten(
    row: Row,
    { view, past }: BoundWork,
    catalog: ClassCatalog,
  ): Pick<PlacedRow, "row" | "waiting"> | undefined {
    if (past && past.kind !== "present") return this.#pass === "objects" ? { row } : undefined;
    const waiting = view.system ? [] : openRelations(row, view, catalog);
    if (this.#pass === "relations") return waiting.length === 0 ? undefined : { row };
    if (waiting.length === 0) return { row };
    this.#isRelated = true;
    return { row: Object.fromEntries(Object.entries(row).filter(([name]) => !waiting.includes(name))), waiting };
  }

  async #flush(): Promise<void> {
    await this.#writeChunk();
    await this.#dependencies.notes.saved({
      done: this.#done,
      rows: this.#rows,
      pass: this.#pass,
      isRelated: this.#isRelated,
      unstored: this.#unstored.note(),
      past: { last: this.#past.last, note: this.#pastNotes.note() },
    });
  }

  async #writeChunk(): Promise<void> {
    const { rows } = this.#chunk;
    this.#chunk = { rows: [], characters: 0 };
    for (const run of runsOf(rows)) {
      if (run.every(isPast)) await this.#past.write(run, this.#pass);
      else await this.#timed.write(run, this.#pass);
    }
  }

  /**
   * Creates or alters a definition. If `mayBeDone`, an interrupted attempt may already have altered the class, so that
   * error is ignored.
   */
  async #define(statement: Statement, mayBeDone: boolean): Promise<void> {
    const { objects } = this.#dependencies;
    const principal = this.#principal;
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

function flat(statements: readonly Statement[]): readonly Statement[] {
  return statements.flatMap((statement) => (statement.kind === "batch" ? flat(statement.statements) : [statement]));
}

/** Splits the rows into runs of adjacent rows: either all with former times, or all without. */
function* runsOf(rows: readonly PlacedRow[]): Generator<readonly PlacedRow[]> {
  let first = 0;
  for (const [at, row] of rows.entries()) {
    if (at === first || isPast(row) === isPast(rows[first]!)) continue;
    yield rows.slice(first, at);
    first = at;
  }
  if (first < rows.length) yield rows.slice(first);
}
