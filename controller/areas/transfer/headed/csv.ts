import { AppError } from "../../../../common/errors.ts";
import { SHEET_ROW_MAX_CHARACTERS, SHEET_COLUMNS_MAX } from "../../../../common/limits.ts";
import type { HeadedCell, HeadedRow } from "./types.ts";

/**
 * Reads CSV (RFC 4180) that comes in pieces: a line ends with LF, CR LF or CR, a value in quotes may have all of them
 * and its quotes twice. A value of no characters is none; in quotes it is an empty text. Rows without a value are left
 * out. Holds one row.
 */
export class CsvReader {
  readonly #delimiter: string;
  readonly #stop: RegExp;
  #found: HeadedRow[] = [];
  /** A return at the end of a piece: a line feed may follow. */
  #held = "";
  #state: "start" | "plain" | "quoted" | "closed" = "start";
  #cells: (HeadedCell | undefined)[] = [];
  #text = "";
  #characters = 0;
  #number = 1;
  #line = 1;
  #firstLine = 1;
  #isBroken = false;

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
    this.#stop = new RegExp(`[\\u${delimiter.charCodeAt(0).toString(16).padStart(4, "0")}\\r\\n]`, "g");
  }

  take(piece: string): readonly HeadedRow[] {
    const text = this.#held + piece;
    this.#held = text.endsWith("\r") ? "\r" : "";
    return this.#read(text.slice(0, text.length - this.#held.length));
  }

  /** To be called when the text is over. */
  end(): readonly HeadedRow[] {
    const rows = [...this.#read(this.#held)];
    this.#held = "";
    if (this.#isBroken) return rows;
    if (this.#state === "quoted") this.#break("its quotes are not closed");
    else if (this.#state !== "start" || this.#cells.length > 0) {
      this.#endCell();
      this.#endRow();
    }
    return [...rows, ...this.#read("")];
  }

  #read(text: string): readonly HeadedRow[] {
    for (let at = 0; at < text.length && !this.#isBroken; ) at = this.#step(text, at);
    const found = this.#found;
    this.#found = [];
    return found;
  }

  /** Where the next step begins. */
  #step(text: string, at: number): number {
    switch (this.#state) {
      case "start":
        this.#state = text.charAt(at) === '"' ? "quoted" : "plain";
        return this.#state === "quoted" ? at + 1 : at;
      case "plain":
        return this.#plain(text, at);
      case "quoted":
        return this.#quoted(text, at);
      case "closed":
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
    const found = text.indexOf('"', at);
    const end = found === -1 ? text.length : found;
    const piece = text.slice(at, end);
    this.#add(piece);
    this.#line += piece.match(/\r\n|\r|\n/g)?.length ?? 0;
    if (found === -1) return end;
    this.#state = "closed";
    return end + 1;
  }

  #closed(text: string, at: number): number {
    const next = text.charAt(at);
    if (next === '"') {
      this.#add('"');
      this.#state = "quoted";
      return at + 1;
    }
    if (next === this.#delimiter || next === "\n" || next === "\r") return this.#separator(text, at);
    this.#break("text follows its closing quote; a quote inside of quotes is written twice");
    return at;
  }

  #separator(text: string, at: number): number {
    this.#endCell();
    if (text.charAt(at) === this.#delimiter) return at + 1;
    this.#line += 1;
    this.#endRow();
    return text.startsWith("\r\n", at) ? at + 2 : at + 1;
  }

  #add(piece: string): void {
    this.#text += piece;
    this.#characters += piece.length;
    if (this.#characters > SHEET_ROW_MAX_CHARACTERS)
      throw new AppError(
        "too_large",
        `row ${this.#number}: [Format] it has more than ${SHEET_ROW_MAX_CHARACTERS} characters; are quotes not closed?`,
        { details: { limit: "SHEET_ROW_MAX_CHARACTERS" } },
      );
  }

  #endCell(): void {
    const isEmpty = this.#text === "" && this.#state !== "closed";
    this.#cells.push(isEmpty ? undefined : { text: this.#text, kind: "text" });
    this.#text = "";
    this.#state = "start";
    if (this.#cells.length > SHEET_COLUMNS_MAX)
      throw new AppError("too_large", `row ${this.#number}: [Format] it has more than ${SHEET_COLUMNS_MAX} values.`, {
        details: { limit: "SHEET_COLUMNS_MAX" },
      });
  }

  #endRow(): void {
    if (this.#cells.some((cell) => cell !== undefined))
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
