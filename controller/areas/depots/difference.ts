import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { AppError } from "../../../common/errors.ts";
import { DEPOT_DIFF_MAX_BYTES, DEPOT_DIFF_MAX_EDITS, DEPOT_TEXT_MAX_BYTES } from "../../../common/limits.ts";
import type { DepotFile } from "../hosts/index.ts";
import type { DepotDifference } from "./types.ts";

type Read = (file: DepotFile) => Promise<Uint8Array>;

const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * The content as a text. `AppError("too_large")` beyond `DEPOT_TEXT_MAX_BYTES`, `AppError("invalid")` if it is no text.
 */
export async function shownText(file: DepotFile, read: Read): Promise<string> {
  const { path, size } = file;
  if (size > DEPOT_TEXT_MAX_BYTES)
    throw new AppError("too_large", `${path} has ${size} bytes; at most ${DEPOT_TEXT_MAX_BYTES} can be shown.`);
  const text = textOf(await read(file));
  if (text === undefined) throw new AppError("invalid", `${path} is a binary file and cannot be shown as text.`);
  return text;
}

/** The text; `undefined` for bytes that are not UTF-8 or contain NUL. */
function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Differences between the files of two versions, ascending by path. Texts are compared up to `DEPOT_DIFF_MAX_BYTES`.
 */
export async function differencesOf(
  from: ReadonlyMap<string, DepotFile>,
  to: ReadonlyMap<string, DepotFile>,
  read: Read,
): Promise<readonly DepotDifference[]> {
  const paths = [...new Set([...from.keys(), ...to.keys()])].sort();
  let bytesLeft = DEPOT_DIFF_MAX_BYTES;
  const differences: DepotDifference[] = [];
  for (const path of paths) {
    const [before, after] = [from.get(path), to.get(path)];
    if (before?.digest === after?.digest && before?.executable === after?.executable) continue;
    const change = before === undefined ? "added" : after === undefined ? "removed" : "modified";
    const bytes = (before?.size ?? 0) + (after?.size ?? 0);
    const isShown = bytes <= bytesLeft;
    if (isShown) bytesLeft -= bytes;
    const difference = isShown ? await textDifference(path, [before, after], read) : { binary: false };
    differences.push({ path, change, ...difference });
  }
  return differences;
}

async function textDifference(
  path: string,
  [before, after]: readonly [DepotFile | undefined, DepotFile | undefined],
  read: Read,
): Promise<Pick<DepotDifference, "binary" | "diff">> {
  const [old, now] = [await textIn(before, read), await textIn(after, read)];
  if (old === undefined || now === undefined) return { binary: true };
  const diff = unifiedDiff(path, old, now);
  return { binary: false, ...(diff === undefined ? {} : { diff }) };
}

async function textIn(file: DepotFile | undefined, read: Read): Promise<string | undefined> {
  return file === undefined ? "" : textOf(await read(file));
}

/**
 * `undefined` when the texts differ in more than `DEPOT_DIFF_MAX_EDITS` lines, because the search for the shortest edit
 * script is quadratic.
 */
function unifiedDiff(path: string, before: string, after: string): string | undefined {
  return createTwoFilesPatch(`a/${path}`, `b/${path}`, before, after, undefined, undefined, {
    maxEditLength: DEPOT_DIFF_MAX_EDITS,
    headerOptions: FILE_HEADERS_ONLY,
  });
}
