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
 * Joins lines while a value in quotes continues, and removes a carriage return at the end of a record. A joined record
 * replaces its first line; its other lines become blank, so each line keeps its number. Lines stay separate records if
 * they form no valid row together. They also do if the quotes stay open for `CSV_JOINED_LINES_MAX` lines or more than
 * `RECORD_MAX_BYTES` characters.
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

/** Splits lines into parts that are read in one turn of the event loop each. */
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
  /** Lines of a row whose quotes are still open. */
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

  /** Call after the last line. Lines whose quotes are still open become separate records. */
  end(): readonly string[] {
    return this.#alone();
  }

  /** Returns the records that this line completes. */
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

  /**
   * False for comments and lines without quotes: they are always separate records, unless quotes are open before them.
   */
  #mayOpen(line: string): boolean {
    const { form, comment } = this.#rows.options;
    return form.quote !== "" && line.includes(form.quote) && !(comment !== undefined && line.startsWith(comment));
  }

  /**
   * Called if quotes are open for too long. The first line becomes a separate record, and so do the following lines
   * until one opens quotes itself. That line begins the new row. The lines behind it are inside quotes as before, so
   * they are not read again: a thousand open quotes cost as much as one.
   */
  #giveUp(): readonly string[] {
    const made: string[] = [];
    do {
      const line = this.#held.shift() ?? "";
      this.#characters -= line.length + 1;
      made.push(ended(line));
    } while (this.#held.length > 0 && !this.#isOpenAlone(this.#held[0] ?? ""));
    if (this.#held.length === 0) return this.#forget(made);
    // A new reader inside quotes, without the values of the removed lines.
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

  /**
   * Makes each held line a separate record. A row that began with a later held line would end in the same way, so no
   * other join is tried.
   */
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

/** A line with its heading line. The heading names the fields if the rule does not. */
export interface HeadedLine {
  readonly text: string;
  readonly heading: string | undefined;
}

/**
 * The heading line for each raw text of one life of a file. It is `first` until a W3C heading line is among the texts.
 */
export function headingsOf(
  texts: readonly string[],
  { csv, first }: { readonly csv: CsvRows | undefined; readonly first: string | undefined },
): readonly (string | undefined)[] {
  let heading = first;
  return texts.map((text) => (heading = csv?.options.isW3c === true && isW3cHeading(text) ? firstLine(text) : heading));
}

/** The first line of a record that may have several. */
function firstLine(text: string): string {
  return text.slice(0, text.search(LINE_END));
}

const LINE_END = /[\r\n]|$/;

/** Finds the heading line of a file or call. Makes it blank, and also the lines that a csv rule leaves out. */
export class HeadingLine {
  readonly #rows: CsvRows | undefined;
  readonly #isWhole: boolean;
  #names: readonly string[];
  #text: string | undefined;
  #isOver: boolean;

  /**
   * `isWhole`: the lines are a whole file. If the rule has `--header` and `--fields`, its first line must name these
   * fields.
   */
  constructor(rows: CsvRows | undefined, { isWhole }: { readonly isWhole: boolean }) {
    const { names = [], options } = rows ?? {};
    this.#rows = options?.hasHeader === true || options?.comment !== undefined ? rows : undefined;
    this.#isWhole = isWhole;
    this.#names = names;
    this.#isOver = options?.hasHeader !== true || options.isW3c;
  }

  /**
   * `AppError("invalid")` if the first line is no heading line, or in a whole file not the one that `--fields` names.
   */
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

  /** Handles the first line of a rule with `--header`. Returns true if it is a heading line. */
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
