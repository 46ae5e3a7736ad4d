import { open, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { AppError } from "../../../common/errors.ts";
import { PARTS, refusalText, type Reading } from "./parts.ts";
import type { Redaction } from "./redaction.ts";
import { tarOf, type ArchiveFile } from "./tar.ts";

export interface BundleOptions extends Reading {
  readonly redaction: Redaction;
  readonly nowMs: number;
  /** Files that are made here, by name. */
  readonly own: Readonly<Record<string, unknown>>;
}

/**
 * Writes an archive of what helps to understand a controller, without secrets, as far as the rights of the user allow.
 * `missing.json` in it names the parts that could not be read. `AppError("conflict")` if the file exists.
 */
export async function writeBundle(path: string, options: BundleOptions): Promise<Readonly<Record<string, string>>> {
  const handle = await open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "EEXIST") throw new AppError("conflict", `${path} exists: nothing was written.`);
    throw error;
  });
  let isWhole = false;
  try {
    const { files, missing } = await collected(options);
    await handle.writeFile(await promisify(gzip)(tarOf(files, options.nowMs)));
    isWhole = true;
    return missing;
  } finally {
    await handle.close();
    if (!isWhole) await rm(path, { force: true });
  }
}

async function collected({ redaction, own, client, signal }: BundleOptions) {
  const files: ArchiveFile[] = [];
  const missing: Record<string, string> = {};
  const add = (name: string, value: unknown): void => {
    const clean = redaction.value(value);
    files.push({ name, text: typeof clean === "string" ? clean : `${JSON.stringify(clean, undefined, 2)}\n` });
  };
  for (const [name, value] of Object.entries(own)) add(name, value);
  for (const { name, read } of PARTS) {
    try {
      add(name, await read({ client, signal }));
    } catch (error) {
      if (signal.aborted) throw error;
      missing[name] = redaction.text(refusalText(error));
    }
  }
  add("missing.json", missing);
  return { files, missing };
}
