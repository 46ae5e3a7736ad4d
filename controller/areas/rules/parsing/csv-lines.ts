import { setImmediate } from "node:timers/promises";
import { CsvReader } from "../../../../common/csv/reader.ts";
import { AppError } from "../../../../common/errors.ts";
import {
  CHANGE_BATCH_MAX,
  CSV_JOINED_LINES_MAX,
  CSV_TURN_CHARACTERS,
  RECORD_MAX_BYTES,
} from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { isW3cHeading, type CsvRows } from "./csv.ts";

type Pieces = AsyncIterable<readonly string[]> | Iterable<readonly string[]>;

/**
 * Joins lines while a value in quotes continues; a carriage return at the end of a line is removed. The record takes
 * the place of its first line and the others are blank, so that each line keeps its number. Lines that make no row
 * together, or whose quotes are open for too long, are records by themselves.
 */
export async function* joinedLines(pieces: Pieces, rows: CsvRows): AsyncGenerator<readonly string[]> {
  const joiner = new LineJoiner(rows);
  for await (const lines of pieces)
    for (const few of turnsOf(lines)) {
      yield* batches(joiner.take(few));
      if (few.length < lines.length) await setImmediate();
    }
  yield* batches(joiner.end());
}

/** Lines that are read in one turn of the event loop. */
function* turnsOf(lines: readonly string[]): Generator<readonly string[]> {
  let [from, characters] = [0, 0];
  for (const [at, line] of lines.entries()) {
    characters += line.length;
    if (characters < CSV_TURN_CHARACTERS) continue;
    yield lines.slice(from, at + 1);
    [from, characters] = [at + 1, 0];
  }
  if (from < lines.length) yield from === 0 ? lines : lines.slice(from);
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
    for (const line of lines) {
      made.push(...this.#line(line));
      while (this.#held.length >= CSV_JOINED_LINES_MAX || this.#characters > RECORD_MAX_BYTES)
        made.push(...this.#giveUp());
    }
    return made;
  }

  /** To be called after the last line. Quotes that are open behind a later line are open at the end as well. */
  end(): readonly string[] {
    return this.#alone();
  }

  /** Records that the line completes. */
  #line(line: string): readonly string[] {
    if (this.#reader === undefined && !this.#mayOpen(line)) return [ended(line)];
    const reader = (this.#reader ??= new CsvReader(this.#rows.options.form));
    const isFirst = this.#held.length === 0;
    const isBroken = reader.take(isFirst ? line : `\n${line}`).some(({ fault }) => fault !== undefined);
    if (isBroken) return isFirst ? this.#forget([ended(line)]) : [...this.#alone(), ...this.#line(line)];
    this.#held.push(line);
    this.#characters += line.length + 1;
    if (reader.isInQuotes) return [];
    const [, ...more] = this.#held;
    return this.#forget([ended(this.#held.join("\n")), ...more.map(() => "")]);
  }

  /** A comment and a line without quotes are rows by themselves. */
  #mayOpen(line: string): boolean {
    const { form, comment } = this.#rows.options;
    return form.quote !== "" && line.includes(form.quote) && !(comment !== undefined && line.startsWith(comment));
  }

  /**
   * The first line is a record by itself, and so is each behind it whose quotes are closed in it. Where they are not,
   * what follows is within quotes as it was before, so that no line is read again: a thousand open quotes cost as much
   * as one.
   */
  #giveUp(): readonly string[] {
    const made: string[] = [];
    do {
      const line = this.#held.shift() ?? "";
      this.#characters -= line.length + 1;
      made.push(ended(line));
    } while (this.#held.length > 0 && !this.#isOpenAlone(this.#held[0] ?? ""));
    if (this.#held.length === 0) return this.#forget(made);
    // Without the values of the lines that are gone.
    this.#reader = new CsvReader(this.#rows.options.form);
    this.#reader.take(this.#rows.options.form.quote);
    return made;
  }

  #isOpenAlone(line: string): boolean {
    if (!this.#mayOpen(line)) return false;
    const reader = new CsvReader(this.#rows.options.form);
    reader.take(line);
    return reader.isInQuotes;
  }

  /** The lines held are records by themselves: a row that begins with a later one ends as theirs does. */
  #alone(): readonly string[] {
    return this.#forget(this.#held.map(ended));
  }

  #forget(made: readonly string[]): readonly string[] {
    this.#reader = undefined;
    this.#held = [];
    this.#characters = 0;
    return made;
  }
}

function ended(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** A line, and the heading line that names its fields where the rule does not. */
export interface HeadedLine {
  readonly text: string;
  readonly heading: string | undefined;
}

/** The heading line of each raw text of one file's life: `first` until a W3C heading is among them. */
export function headingsOf(
  texts: readonly string[],
  { csv, first }: { readonly csv: CsvRows | undefined; readonly first: string | undefined },
): readonly (string | undefined)[] {
  let heading = first;
  return texts.map((text) => (heading = csv?.options.isW3c === true && isW3cHeading(text) ? firstLine(text) : heading));
}

/** A record may have several. */
function firstLine(text: string): string {
  return text.slice(0, text.search(LINE_END));
}

const LINE_END = /[\r\n]|$/;

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
    this.#isOver = options?.hasHeader !== true || options.isW3c;
  }

  /** `AppError("invalid")` for a heading line that is none, or not the one that `--fields` names. */
  take(lines: readonly string[]): readonly HeadedLine[] {
    return lines.map((line) => ({ text: this.#take(line), heading: this.#text }));
  }

  #take(line: string): string {
    const rows = this.#rows;
    if (rows === undefined) return line;
    if (rows.options.isW3c && isW3cHeading(line)) {
      this.#text = line;
      return "";
    }
    if (rows.isLeftOut(line, this.#isOver ? this.#names : [])) return "";
    if (this.#isOver) return line;
    this.#isOver = true;
    return this.#first(line, rows) ? "" : line;
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
