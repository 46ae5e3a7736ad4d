import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { AppError } from "../../../common/errors.ts";
import { MANUAL_MAX_BYTES } from "../../../common/limits.ts";
import type { ManualIndex } from "../../../common/manual/search.ts";

/** The manual as the build made it. */
export interface Manual {
  /** Files by name, each with its compressed form. */
  readonly files: ReadonlyMap<string, ManualFile>;
  readonly index: ManualIndex;
  /** Page for what a search found, in which `RESULTS_MARK` and `QUERY_MARK` stand for it. */
  readonly searchPage: string;
}

export interface ManualFile {
  readonly text: Buffer;
  readonly packed: Buffer;
}

const PACKED = ".gz";
export const INDEX_FILE = "index.json";
const SEARCH_FILE = "find.html";

/** Reads the folder that the build made. Throws if a file is missing; `AppError("not_found")` without the folder. */
export async function readManual(folder: URL): Promise<Manual> {
  const names = await readdir(folder).catch(() => {
    throw new AppError("not_found", `The manual is not in ${fileURLToPath(folder)}: make it by npm run build.`);
  });
  const files = new Map<string, ManualFile>();
  let bytes = 0;
  for (const name of names.filter((one) => !one.endsWith(PACKED))) {
    const text = await readFile(new URL(name, folder));
    const packed = await readFile(new URL(name + PACKED, folder));
    bytes += text.length + packed.length;
    if (bytes > MANUAL_MAX_BYTES) throw new Error(`The manual has more than ${String(MANUAL_MAX_BYTES)} bytes.`);
    files.set(name, { text, packed });
  }
  const textOf = (name: string): string => {
    const file = files.get(name);
    if (file === undefined) throw new Error(`The manual has no ${name}.`);
    return file.text.toString();
  };
  const manual = { index: JSON.parse(textOf(INDEX_FILE)) as ManualIndex, searchPage: textOf(SEARCH_FILE) };
  files.delete(SEARCH_FILE);
  return { files, ...manual };
}
