import { hasLongNumber, parseJson } from "../common/json.ts";
import { HTTP_JSON_BOUNDS, JsonDecoder, type JsonBounds } from "../common/json-decoder.ts";
import { HTTP_TURN_TEXT_MAX_CHARACTERS } from "../common/limits.ts";
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
  if (bounds === undefined && hold === undefined && fitsOneTurn(text)) return parseJson(text);
  const decoder = new JsonDecoder(text, bounds ?? HTTP_JSON_BOUNDS);
  for (;;) {
    const isDone = decoder.step();
    hold?.(decoder.takeWeight());
    if (isDone) return decoder.value;
    if (slices.isOverNow()) await slices.pause();
  }
}
