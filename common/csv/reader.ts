import { AppError } from "../errors.ts";

/** The notation of values. */
export interface CsvForm {
  /** Character between values. */
  readonly separator: string;
  /** Character around a value that may contain separators and line breaks. Empty: there is none. */
  readonly quote: string;
  /** Character before a quote within quotes. In RFC 4180 it is the quote itself. */
  readonly escape: string;
  /** True: blanks between a closing quote and the separator are ignored. Otherwise they are a fault. */
  readonly allowsBlanks?: boolean;
}

export const RFC_4180: CsvForm = { separator: ",", quote: '"', escape: '"' };

export interface CsvCell {
  readonly text: string;
  readonly isQuoted: boolean;
}

export interface CsvRow {
  /** Number of the row, from 1. */
  readonly number: number;
  /** The line in which the row begins, from 1. */
  readonly line: number;
  readonly cells: readonly CsvCell[];
  /** Reason why the row cannot be read. No row follows it. */
  readonly fault?: string;
}

/** Bounds of one row, each with the name of its limit. */
export interface CsvBounds {
  readonly characters: readonly [most: number, limit: string];
  readonly cells: readonly [most: number, limit: string];
}

/**
 * Reads CSV that arrives in pieces. A line ends with LF, CR LF or CR; a quoted value may contain all of them. Holds one
 * row. An empty line is a row with one empty value. Without `bounds` the caller must limit the text.
 */
export class CsvReader {
  readonly #form: CsvForm;
  readonly #bounds: CsvBounds | undefined;
  readonly #stop: RegExp;
  readonly #quotedStop: RegExp;
  #found: CsvRow[] = [];
  /** A CR at the end of a piece: an LF may follow. */
  #held = "";
  /** `padded`: after a closing quote and blanks. */
  #state: "start" | "plain" | "quoted" | "escaped" | "closed" | "padded" = "start";
  #cells: CsvCell[] = [];
  #text = "";
  #characters = 0;
  #number = 1;
  #line = 1;
  #firstLine = 1;
  #isBroken = false;

  constructor(form: CsvForm = RFC_4180, bounds?: CsvBounds) {
    this.#form = form;
    this.#bounds = bounds;
    this.#stop = new RegExp(`[${coded(form.separator)}\\r\\n]`, "g");
    this.#quotedStop = new RegExp(`[${coded(form.quote)}${coded(form.escape)}]`, "g");
  }

  /** True if the text so far ends within quotes. */
  get isInQuotes(): boolean {
    return this.#state === "quoted" || this.#state === "escaped";
  }

  take(piece: string): readonly CsvRow[] {
    const text = this.#held + piece;
    this.#held = text.endsWith("\r") ? "\r" : "";
    return this.#read(text.slice(0, text.length - this.#held.length));
  }

  /** Call it at the end of the text. */
  end(): readonly CsvRow[] {
    const rows = [...this.#read(this.#held)];
    this.#held = "";
    if (this.#isBroken) return rows;
    if (this.isInQuotes) this.#break("its quotes are not closed");
    else if (this.#state !== "start" || this.#cells.length > 0) {
      this.#endCell();
      this.#endRow();
    }
    return [...rows, ...this.#read("")];
  }

  #read(text: string): readonly CsvRow[] {
    for (let at = 0; at < text.length && !this.#isBroken; ) at = this.#step(text, at);
    const found = this.#found;
    this.#found = [];
    return found;
  }

  /** Returns the position at which the next step begins. */
  #step(text: string, at: number): number {
    switch (this.#state) {
      case "start":
        this.#state = text.charAt(at) === this.#form.quote ? "quoted" : "plain";
        return this.#state === "quoted" ? at + 1 : at;
      case "plain":
        return this.#plain(text, at);
      case "quoted":
        return this.#quoted(text, at);
      case "escaped":
        return this.#escaped(text, at);
      case "closed":
      case "padded":
        return this.#closed(text, at);
    }
  }

  #plain(text: string, at: number): number {
    this.#stop.lastIndex = at;
    const end = this.#stop.exec(text)?.index ?? text.length;
    this.#add(text.slice(at, end));
    return end < text.length ? this.#separator(text, end) : end;
  }

  #quoted(text: string, at: number): number {
    this.#quotedStop.lastIndex = at;
    const found = this.#quotedStop.exec(text)?.index;
    const piece = text.slice(at, found);
    this.#add(piece);
    this.#line += piece.match(/\r\n|\r|\n/g)?.length ?? 0;
    if (found === undefined) return text.length;
    const { quote } = this.#form;
    this.#state = text.charAt(found) === quote ? "closed" : "escaped";
    return found + 1;
  }

  /**
   * After an escape that is not the quote itself. Before any character except a quote or an escape, the escape is an
   * ordinary character.
   */
  #escaped(text: string, at: number): number {
    const { quote, escape } = this.#form;
    const next = text.charAt(at);
    this.#state = "quoted";
    const isMeant = next === quote || next === escape;
    this.#add(isMeant ? next : escape);
    return isMeant ? at + 1 : at;
  }

  #closed(text: string, at: number): number {
    const { quote, escape, separator, allowsBlanks = false } = this.#form;
    const next = text.charAt(at);
    if (next === quote && quote === escape && this.#state === "closed") {
      this.#add(quote);
      this.#state = "quoted";
      return at + 1;
    }
    if (next === separator || next === "\n" || next === "\r") return this.#separator(text, at);
    if (allowsBlanks && (next === " " || next === "\t")) {
      this.#state = "padded";
      return at + 1;
    }
    this.#break(`text follows its closing quote; a quote inside of quotes ${howQuotesStand(this.#form)}`);
    return at;
  }

  #separator(text: string, at: number): number {
    this.#endCell();
    if (text.charAt(at) === this.#form.separator) return at + 1;
    this.#line += 1;
    this.#endRow();
    return text.startsWith("\r\n", at) ? at + 2 : at + 1;
  }

  #add(piece: string): void {
    this.#text += piece;
    this.#characters += piece.length;
    const [most, limit] = this.#bounds?.characters ?? [];
    if (limit !== undefined && this.#characters > (most ?? 0))
      throw new AppError(
        "too_large",
        `row ${this.#number}: [Format] it has more than ${most} characters; are quotes not closed?`,
        { details: { limit } },
      );
  }

  #endCell(): void {
    this.#cells.push({ text: this.#text, isQuoted: this.#state === "closed" || this.#state === "padded" });
    this.#text = "";
    this.#state = "start";
    const [most, limit] = this.#bounds?.cells ?? [];
    if (limit !== undefined && this.#cells.length > (most ?? 0))
      throw new AppError("too_large", `row ${this.#number}: [Format] it has more than ${most} values.`, {
        details: { limit },
      });
  }

  #endRow(): void {
    this.#found.push({ number: this.#number, line: this.#firstLine, cells: this.#cells });
    this.#number += 1;
    this.#firstLine = this.#line;
    this.#cells = [];
    this.#characters = 0;
  }

  #break(reason: string): void {
    const fault = `value ${this.#cells.length + 1}: ${reason}`;
    this.#found.push({ number: this.#number, line: this.#firstLine, cells: [], fault });
    this.#isBroken = true;
  }
}

/** A character for a character class of a regular expression; empty for an empty text. */
function coded(character: string): string {
  return character === "" ? "" : `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function howQuotesStand({ quote, escape }: CsvForm): string {
  return quote === escape ? "is written twice" : `has ${escape} before it`;
}
