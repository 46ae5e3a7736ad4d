import {
  FILE_INDEX_MAX_CHARACTERS,
  FILE_PASSAGE_BREAK_CHARACTERS,
  FILE_PASSAGE_MAX_WEIGHT,
  FILE_PASSAGE_OVERLAP_CHARACTERS,
  FILE_PASSAGE_WIDE_WEIGHT,
} from "../../../../../common/limits.ts";

/** A part of a text that is found as a whole. */
export interface Passage {
  /** Number of its first line, or of its page, from 1. */
  readonly position: number;
  readonly text: string;
}

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\ufeff]/g;
/** Places where a long line may be cut without cutting a word, an address or a number. */
const BREAK = /[\s\u3001\u3002\uff0c\uff1b\uff01\uff1f](?=[^\s]*$)/u;
const ASCII_END = 0x80;

/**
 * Cuts a text to passages of whole lines. A line that is longer than a passage is cut at a blank or a Chinese punctuation mark.
 * If it has none there, the next passage repeats the last `FILE_PASSAGE_OVERLAP_CHARACTERS`.
 */
export class PassageCutter {
  readonly passages: Passage[] = [];
  #lines: string[] = [];
  #weight = 0;
  #position = 0;
  #characters = 0;

  /** True if the text has `FILE_INDEX_MAX_CHARACTERS`. Further lines are left out. */
  get isFull(): boolean {
    return this.#characters >= FILE_INDEX_MAX_CHARACTERS;
  }

  addLine(line: string, position: number): void {
    if (this.isFull) return;
    const text = line.replace(CONTROL, " ").toWellFormed().trimEnd();
    if (text === "" && this.#lines.length === 0) return;
    const weight = weightOf(text) + 1;
    if (this.#weight + weight > FILE_PASSAGE_MAX_WEIGHT) this.flush();
    if (weight > FILE_PASSAGE_MAX_WEIGHT) return this.#addLong(text, position);
    if (this.#lines.length === 0) this.#position = position;
    this.#lines.push(text);
    this.#weight += weight;
  }

  /** Ends the current passage. */
  flush(): void {
    const text = this.#lines.join("\n").trimEnd();
    if (text !== "") this.#push(text, this.#position);
    this.#lines = [];
    this.#weight = 0;
  }

  #addLong(text: string, position: number): void {
    for (let from = 0; from < text.length && !this.isFull; ) {
      const { end, next } = cutOf(text, from);
      this.#push(text.slice(from, end), position);
      from = next;
    }
  }

  #push(text: string, position: number): void {
    if (text.trim() === "") return;
    this.#characters += text.length;
    this.passages.push({ position, text });
  }
}

/** The end of a passage that begins at `from`, and the beginning of the next one. */
function cutOf(text: string, from: number): { readonly end: number; readonly next: number } {
  let [end, weight] = [from, 0];
  while (end < text.length && weight < FILE_PASSAGE_MAX_WEIGHT) weight += weightAt(text, end++);
  if (end === text.length) return { end, next: end };
  const tail = text.slice(end - FILE_PASSAGE_BREAK_CHARACTERS, end);
  const at = BREAK.exec(tail)?.index;
  if (at !== undefined) {
    const whole = end - tail.length + at + 1;
    return { end: whole, next: whole };
  }
  return { end: wholeCharacter(text, end), next: wholeCharacter(text, end - FILE_PASSAGE_OVERLAP_CHARACTERS) };
}

/** The position, or the one before it if it lies inside of a surrogate pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

function weightOf(text: string): number {
  let weight = 0;
  for (let at = 0; at < text.length; at++) weight += weightAt(text, at);
  return weight;
}

function weightAt(text: string, at: number): number {
  return text.charCodeAt(at) < ASCII_END ? 1 : FILE_PASSAGE_WIDE_WEIGHT;
}
