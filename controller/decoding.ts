import { hasLongNumber, parseJson } from "../common/json.ts";
import { HTTP_JSON_BOUNDS, JsonDecoder, type JsonBounds } from "../common/json-decoder.ts";
import { HTTP_TURN_TEXT_MAX_CHARACTERS } from "../common/limits.ts";
import type { Value } from "../common/value.ts";
import type { ThreadSlices } from "./slices.ts";

export interface DecodeOptions {
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
  /** Those of texts that come by HTTP when absent. */
  readonly bounds?: JsonBounds;
  /** Called with the bytes that the decoded values take, as they are made; what it throws ends the decoding. */
  readonly hold?: (bytes: number) => void;
}

/** True for a text that `parseJson` decodes soon enough for one turn of the event loop. */
export function fitsOneTurn(text: string): boolean {
  return text.length <= HTTP_TURN_TEXT_MAX_CHARACTERS && !hasLongNumber(text);
}

/**
 * The value of a JSON text of any size, made in slices. The same values and errors as those of `parseJson`, and
 * `AppError("too_large")` beyond a bound.
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

/** Items of a list between two looks at the clock. */
const ITEMS_PER_LOOK = 32;

/** The JSON text of a value. Long lists at its top or in its members are written in slices. */
export async function encodeJson(value: Value, slices: DecodeOptions["slices"]): Promise<string> {
  if (Array.isArray(value)) return `[${(await itemTexts(value as readonly Value[], slices)).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members: string[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const text = Array.isArray(member)
      ? `[${(await itemTexts(member as readonly Value[], slices)).join()}]`
      : JSON.stringify(member);
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join()}}`;
}

async function itemTexts(list: readonly Value[], slices: DecodeOptions["slices"]): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const [at, item] of list.entries()) {
    texts.push(JSON.stringify(item ?? null));
    if (at % ITEMS_PER_LOOK === 0 && slices.isOverNow()) await slices.pause();
  }
  return texts;
}
