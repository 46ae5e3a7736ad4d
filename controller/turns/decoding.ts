import { hasLongNumber, parseJson } from "../../common/json.ts";
import { HTTP_JSON_BOUNDS, isLargeJson, JsonDecoder, type JsonBounds } from "../../common/json-decoder.ts";
import { HTTP_TURN_TEXT_MAX_CHARACTERS } from "../../common/limits.ts";
import { characterEnd } from "../../common/text/cut.ts";
import type { Value } from "../../common/value.ts";
import type { ThreadSlices } from "./slices.ts";

export interface DecodeOptions {
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
  /** Absent: the bounds for texts received over HTTP. */
  readonly bounds?: JsonBounds;
  /** Called with the size in bytes of the decoded values as they are created. An error from it ends the decoding. */
  readonly hold?: (bytes: number) => void;
}

/** Returns true if `parseJson` decodes the text fast enough for one turn of the event loop. */
export function fitsOneTurn(text: string): boolean {
  return text.length <= HTTP_TURN_TEXT_MAX_CHARACTERS && !hasLongNumber(text);
}

/**
 * Decodes a JSON text of any size in slices. Same values and errors as `parseJson`; also throws `AppError("too_large")`
 * if a bound is exceeded.
 */
export async function decodeJson(text: string, { slices, bounds, hold }: DecodeOptions): Promise<unknown> {
  if (hold === undefined && fitsOneTurn(text)) return parseJson(text, bounds);
  const decoder = new JsonDecoder(text, bounds ?? HTTP_JSON_BOUNDS);
  for (;;) {
    const isDone = decoder.step();
    hold?.(decoder.takeWeight());
    if (isDone) return decoder.value;
    if (slices.isOverNow()) await slices.pause();
  }
}

/** Number of list items or members of a large object between two checks of the clock. */
const ITEMS_PER_LOOK = 32;
/** Number of texts joined at once. */
const JOINED_ITEMS = 1_024;

type Slicing = DecodeOptions["slices"];

/** Encodes a value as JSON. Long texts, lists and large objects are written in slices. */
export async function encodeJson(value: Value, slices: Slicing): Promise<string> {
  if (typeof value === "string") return encodeText(value, slices);
  if (Array.isArray(value)) return encodeList(value as readonly Value[], slices);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return encodeMembers(value as Readonly<Record<string, Value>>, slices);
}

/** Returns true if `JSON.stringify` would take long, judged by the size without walking through the value. */
export function isLongJson(value: unknown): value is Value {
  if (typeof value === "string") return value.length > HTTP_TURN_TEXT_MAX_CHARACTERS;
  return isLargeJson(value) || (Array.isArray(value) && value.length > ITEMS_PER_LOOK);
}

async function encodeText(text: string, slices: Slicing): Promise<string> {
  if (!isLongJson(text)) return JSON.stringify(text);
  const parts: string[] = [];
  for (const piece of textPieces(text)) {
    parts.push(JSON.stringify(piece).slice(1, -1));
    if (slices.isOverNow()) await slices.pause();
  }
  return `"${parts.join("")}"`;
}

/** The pieces of a long text; no piece ends inside a character. */
export function* textPieces(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const to = characterEnd(text, from + HTTP_TURN_TEXT_MAX_CHARACTERS);
    yield text.slice(from, to);
    from = to;
  }
}

async function encodeList(list: readonly Value[], slices: Slicing): Promise<string> {
  const texts = new JoinedTexts();
  for (const [at, item] of list.entries()) {
    texts.add(isLongJson(item) ? await encodeJson(item, slices) : JSON.stringify(item ?? null));
    if (at % ITEMS_PER_LOOK === 0 && slices.isOverNow()) await slices.pause();
  }
  return `[${texts.joined()}]`;
}

async function encodeMembers(members: Readonly<Record<string, Value>>, slices: Slicing): Promise<string> {
  const texts = new JoinedTexts();
  for (const [at, name] of Object.keys(members).entries()) {
    const member = members[name];
    if (at % ITEMS_PER_LOOK === ITEMS_PER_LOOK - 1 && slices.isOverNow()) await slices.pause();
    if (member === undefined) continue;
    texts.add(
      `${JSON.stringify(name)}:${isLongJson(member) ? await encodeJson(member, slices) : JSON.stringify(member)}`,
    );
  }
  return `{${texts.joined()}}`;
}

/** Joins texts with commas as they arrive, because joining many at once takes long. */
class JoinedTexts {
  readonly #parts: string[] = [];
  #last: string[] = [];

  add(text: string): void {
    this.#last.push(text);
    if (this.#last.length < JOINED_ITEMS) return;
    this.#parts.push(this.#last.join());
    this.#last = [];
  }

  joined(): string {
    return [...this.#parts, ...(this.#last.length === 0 ? [] : [this.#last.join()])].join();
  }
}
