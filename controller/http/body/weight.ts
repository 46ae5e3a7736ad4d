import { setImmediate } from "node:timers/promises";
import {
  HTTP_BODY_WEIGHED_PIECE_CHARACTERS,
  HTTP_JSON_ARRAY_BYTES,
  HTTP_JSON_ELEMENT_BYTES,
  HTTP_JSON_MEMBER_BYTES,
  HTTP_JSON_OBJECT_BYTES,
  HTTP_JSON_STRING_BYTES,
  HTTP_JSON_WORST_FACTOR,
  HTTP_SMALL_BODY_MAX_CHARACTERS,
  HTTP_TEXT_LINE_BYTES,
} from "../../../common/limits.ts";
import { looksLikeJson } from "../../../common/json.ts";
import type { CallMemory } from "./memory.ts";
import type { Fields } from "./fields.ts";

const QUOTE = 34;
const BACKSLASH = 92;

/** Memory for each character, by its code. */
type Weights = Uint8Array;

const JSON_WEIGHTS = weightsOf({
  "{": HTTP_JSON_OBJECT_BYTES,
  "[": HTTP_JSON_ARRAY_BYTES,
  ":": HTTP_JSON_MEMBER_BYTES,
  ",": HTTP_JSON_ELEMENT_BYTES,
  '"': HTTP_JSON_STRING_BYTES,
});
const LINE_WEIGHTS = weightsOf({ "\n": HTTP_TEXT_LINE_BYTES });

function weightsOf(bytes: Readonly<Record<string, number>>): Weights {
  const weights = new Uint8Array(128);
  for (const [sign, count] of Object.entries(bytes)) weights[sign.charCodeAt(0)] = count;
  return weights;
}

/**
 * Holds the memory for the values of a text before they are decoded. A small text counts as the worst JSON text if
 * there is room for that. A large one is examined in pieces, so that other calls can continue.
 */
export async function holdDecoded(memory: CallMemory, text: string): Promise<void> {
  const most = text.length * HTTP_JSON_WORST_FACTOR;
  if (text.length <= HTTP_SMALL_BODY_MAX_CHARACTERS && memory.fits(most)) return memory.hold(most);
  memory.hold(text.length);
  const isOnePiece = text.length <= HTTP_BODY_WEIGHED_PIECE_CHARACTERS;
  for (const bytes of weighed(text, looksLikeJson(text) ? JSON_WEIGHTS : LINE_WEIGHTS)) {
    memory.hold(bytes);
    if (!isOnePiece) await setImmediate();
  }
}

/** Holds the memory for fields that are JSON texts. They are decoded if a schema requires it. */
export async function holdFields(memory: CallMemory, fields: Fields): Promise<void> {
  for (const values of fields.values())
    for (const value of values) if (typeof value === "string" && looksLikeJson(value)) await holdDecoded(memory, value);
}

/** Memory for the values of a text, piece by piece. Characters inside the strings of a JSON text do not count. */
function* weighed(text: string, weights: Weights): Generator<number> {
  const hasStrings = weights === JSON_WEIGHTS;
  let quoted = false;
  for (let at = 0; at < text.length; ) {
    const end = Math.min(at + HTTP_BODY_WEIGHED_PIECE_CHARACTERS, text.length);
    let bytes = 0;
    for (; at < end; at++) {
      const code = text.charCodeAt(at);
      if (hasStrings && code === QUOTE) quoted = !quoted;
      else if (quoted && code === BACKSLASH) at++;
      if (!quoted && code < 128) bytes += weights[code] ?? 0;
    }
    yield bytes;
  }
}
