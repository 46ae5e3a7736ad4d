import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { DEPOT_DIFF_MAX_EDITS } from "../../../common/limits.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The text, or `undefined` for what is no UTF-8 or has NUL in it. */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * `undefined` when the two differ in more than `DEPOT_DIFF_MAX_EDITS` lines: the search for the shortest script is
 * quadratic.
 */
export function unifiedDiff(path: string, before: string, after: string): string | undefined {
  return createTwoFilesPatch(`a/${path}`, `b/${path}`, before, after, undefined, undefined, {
    maxEditLength: DEPOT_DIFF_MAX_EDITS,
    headerOptions: FILE_HEADERS_ONLY,
  });
}
