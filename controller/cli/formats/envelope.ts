import { valueIn } from "../../../common/client/answers.ts";
import { AppError } from "../../../common/errors.ts";
import { CLI_ROW_MAX_CHARACTERS } from "../../../common/limits.ts";

const START = /^\s*\{\s*"status"\s*:\s*"ok"\s*,\s*"message"\s*:\s*\[/;
/** Characters in which the start of an envelope is found. */
const START_MAX_CHARACTERS = 256;

/** End of an answer: all but its rows. */
export interface EnvelopeEnd {
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly warnings?: readonly string[];
}

/**
 * Reads the rows of an envelope as its pieces arrive, and holds one row at a time. `rows` yields some at a time; `end` is
 * known after all of them. `AppError("unavailable")` if the answer is no envelope with a list, or broke off.
 */
export class EnvelopeRows {
  #text = "";
  /** Position up to which `#text` was read. */
  #at = 0;
  /** Begin of the current row in `#text`; -1 between rows. */
  #begin = -1;
  #depth = 0;
  #isInString = false;
  #isOver = false;
  end: EnvelopeEnd = {};

  async *rows(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<readonly unknown[]> {
    const decoder = new TextDecoder();
    let isBegun = false;
    for await (const piece of pieces) {
      this.#text += decoder.decode(piece, { stream: true });
      isBegun ||= this.#hasBegun();
      if (!isBegun) continue;
      const rows = [...this.#take()];
      if (this.#text.length > CLI_ROW_MAX_CHARACTERS)
        throw new AppError("too_large", `A row has more than ${CLI_ROW_MAX_CHARACTERS} characters.`);
      if (rows.length > 0) yield rows;
    }
    if (!this.#isOver) throw brokenOff();
    this.end = parsed(`{"status":"ok"${this.#text}`) as EnvelopeEnd;
  }

  #hasBegun(): boolean {
    const [start] = START.exec(this.#text) ?? [];
    if (start === undefined && this.#text.length > START_MAX_CHARACTERS) throw brokenOff();
    this.#text = this.#text.slice(start?.length ?? 0);
    return start !== undefined;
  }

  /** Takes the rows that are whole. */
  *#take(): Generator<unknown> {
    let taken = 0;
    for (; this.#at < this.#text.length && !this.#isOver; this.#at++) {
      const sign = this.#text.charCodeAt(this.#at);
      if (this.#isInString) {
        if (sign === BACKSLASH) this.#at++;
        else if (sign === QUOTE) this.#isInString = false;
        continue;
      }
      if (sign === QUOTE) this.#isInString = true;
      if (this.#depth === 0 && (sign === COMMA || sign === CLOSING_BRACKET)) {
        if (this.#begin !== -1) yield parsed(this.#text.slice(this.#begin, this.#at));
        [this.#begin, taken] = [-1, this.#at + 1];
        this.#isOver = sign === CLOSING_BRACKET;
        continue;
      }
      if (this.#begin === -1 && sign > BLANK) this.#begin = this.#at;
      if (sign === OPENING_BRACE || sign === OPENING_BRACKET) this.#depth++;
      else if (sign === CLOSING_BRACE || sign === CLOSING_BRACKET) this.#depth--;
    }
    this.#text = this.#text.slice(taken);
    this.#at -= taken;
    if (this.#begin !== -1) this.#begin -= taken;
  }
}

const [BLANK, QUOTE, COMMA, BACKSLASH] = [0x20, 0x22, 0x2c, 0x5c];
const [OPENING_BRACKET, CLOSING_BRACKET, OPENING_BRACE, CLOSING_BRACE] = [0x5b, 0x5d, 0x7b, 0x7d];

function parsed(text: string): unknown {
  try {
    return valueIn(text);
  } catch (error) {
    throw brokenOff(error);
  }
}

function brokenOff(cause?: unknown): AppError {
  return new AppError("unavailable", "The answer broke off before its end.", { cause });
}
