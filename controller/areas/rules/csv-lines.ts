import { CsvReader } from "../../../common/csv/reader.ts";
import { AppError } from "../../../common/errors.ts";
import { CHANGE_BATCH_MAX, CSV_JOINED_LINES_MAX, RECORD_MAX_BYTES } from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { CsvRows } from "./csv.ts";

type Pieces = AsyncIterable<readonly string[]> | Iterable<readonly string[]>;

/**
 * Joins lines, of which a carriage return at the end is taken off, while a value in quotes goes on. The record takes
 * the place of its first line and the others are blank, so that each line keeps its number. Lines that make no row
 * together, or whose quotes are open for too long, are records by themselves.
 */
export async function* joinedLines(pieces: Pieces, rows: CsvRows): AsyncGenerator<readonly string[]> {
  const joiner = new LineJoiner(rows);
  for await (const lines of pieces) yield* batches(joiner.take(lines));
  yield* batches(joiner.end());
}

function* batches(lines: readonly string[]): Generator<readonly string[]> {
  for (let at = 0; at < lines.length; at += CHANGE_BATCH_MAX) yield lines.slice(at, at + CHANGE_BATCH_MAX);
}

class LineJoiner {
  readonly #rows: CsvRows;
  #reader: CsvReader | undefined;
  /** Lines whose quotes are open. */
  #held: string[] = [];
  #characters = 0;

  constructor(rows: CsvRows) {
    this.#rows = rows;
  }

  take(lines: readonly string[]): readonly string[] {
    const made: string[] = [];
    const waiting = lines.toReversed();
    for (let line = waiting.pop(); line !== undefined; line = waiting.pop()) {
      made.push(...this.#line(line));
      if (this.#isGivenUp()) made.push(this.#giveUp(waiting));
    }
    return made;
  }

  /** To be called when there are no more lines. */
  end(): readonly string[] {
    const made: string[] = [];
    while (this.#held.length > 0) {
      const waiting: string[] = [];
      made.push(this.#giveUp(waiting), ...this.take(waiting.reverse()));
    }
    return made;
  }

  /** What the line completes. */
  #line(line: string): readonly string[] {
    const { form, comment } = this.#rows.options;
    const isComment = comment !== undefined && line.startsWith(comment);
    if (this.#reader === undefined && (form.quote === "" || isComment || !line.includes(form.quote)))
      return [ended(line)];
    const reader = (this.#reader ??= new CsvReader(form));
    const isFirst = this.#held.length === 0;
    const isBroken = reader.take(isFirst ? line : `\n${line}`).some(({ fault }) => fault !== undefined);
    this.#held.push(line);
    this.#characters += line.length + 1;
    if (isBroken) this.#characters = Infinity;
    if (isBroken || reader.isInQuotes) return [];
    const [, ...more] = this.#held;
    const record = ended(this.#held.join("\n"));
    this.#forget();
    return [record, ...more.map(() => "")];
  }

  #isGivenUp(): boolean {
    return this.#held.length >= CSV_JOINED_LINES_MAX || this.#characters > RECORD_MAX_BYTES;
  }

  /** The first line is a record by itself; those behind it come again. */
  #giveUp(waiting: string[]): string {
    const [first = "", ...more] = this.#held;
    this.#forget();
    waiting.push(...more.reverse());
    return ended(first);
  }

  #forget(): void {
    this.#reader = undefined;
    this.#held = [];
    this.#characters = 0;
  }
}

function ended(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** Finds the heading line of a file or call, and blanks it and what a csv rule leaves out. */
export class HeadingLine {
  readonly #rows: CsvRows | undefined;
  readonly #isWhole: boolean;
  #names: readonly string[];
  #text: string | undefined;
  #isOver: boolean;

  /** `isWhole`: a whole file, which has to begin with the heading line that the rule names. */
  constructor(rows: CsvRows | undefined, { isWhole }: { readonly isWhole: boolean }) {
    const { names = [], options } = rows ?? {};
    this.#rows = options?.hasHeader === true || options?.comment !== undefined ? rows : undefined;
    this.#isWhole = isWhole;
    this.#names = names;
    this.#isOver = options?.hasHeader !== true;
  }

  /** For records whose fields the rule does not name. */
  get text(): string | undefined {
    return this.#text;
  }

  /** `AppError("invalid")` for a heading line that is none, or not the one that `--fields` names. */
  take(lines: readonly string[]): readonly string[] {
    const rows = this.#rows;
    if (rows === undefined) return lines;
    return lines.map((line) => {
      if (rows.isLeftOut(line, this.#isOver ? this.#names : [])) return "";
      if (this.#isOver) return line;
      this.#isOver = true;
      return this.#first(line, rows) ? "" : line;
    });
  }

  /** True for a heading line. */
  #first(line: string, rows: CsvRows): boolean {
    if (this.#names.length === 0) {
      this.#names = rows.headingNames(line);
      this.#text = line;
      return true;
    }
    if (rows.isLeftOut(line, this.#names)) return true;
    if (!this.#isWhole) return false;
    const named = this.#names.join(rows.options.form.separator);
    const found = JSON.stringify(beginningOf(line, SHOWN_CHARACTERS));
    throw new AppError("invalid", `The first line is not the heading line that --fields names, ${named}: ${found}.`);
  }
}

const SHOWN_CHARACTERS = 200;
