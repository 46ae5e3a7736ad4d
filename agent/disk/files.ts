import * as disk from "node:fs/promises";
import { dirname } from "node:path";
import { FILE_SYNCS_AT_ONCE } from "../../common/limits.ts";
import type { Files, OpenFile } from "../../common/files.ts";

/** The disk of this machine. */
export const nodeFiles: Files = disk;

/** Makes the names in a folder durable. Does nothing if the system does not let the agent open the folder. */
export async function syncFolder(files: Files, path: string): Promise<void> {
  let folder;
  try {
    folder = await files.open(path, "r");
  } catch (error) {
    if (isCode(error, "EISDIR") || isCode(error, "EPERM") || isCode(error, "EACCES")) return;
    throw error;
  }
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Makes a folder, and makes its name and the names of all folders above it durable. An existing folder is synced too:
 * the program that made it may have been killed before its sync.
 */
export async function makeFolder(files: Files, path: string): Promise<void> {
  await files.mkdir(path, { recursive: true, mode: 0o700 });
  for (let name = path; name !== dirname(name); name = dirname(name)) await syncFolder(files, dirname(name));
}

/** Makes files durable, and the names in all folders from theirs up to `top`. `top` must be above each file. */
export async function syncTree(files: Files, top: string, paths: readonly string[]): Promise<void> {
  for (let from = 0; from < paths.length; from += FILE_SYNCS_AT_ONCE) {
    await Promise.all(paths.slice(from, from + FILE_SYNCS_AT_ONCE).map((path) => syncFile(files, path)));
  }
  const folders = new Set<string>();
  for (const path of paths)
    for (let above = dirname(path); above.length >= top.length; above = dirname(above)) folders.add(above);
  for (const folder of folders) await syncFolder(files, folder);
}

async function syncFile(files: Files, path: string): Promise<void> {
  const file = await files.open(path, "r+");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Replaces the content of a file. The file always has the whole old or the whole new content. The new content is
 * durable when the promise resolves. Mode 0600.
 */
export async function writeAtomically(files: Files, path: string, content: Uint8Array): Promise<void> {
  const unfinished = `${path}.new`;
  // An unfinished file is never overwritten. After a power cut, it may be a second name of the current file.
  await files.rm(unfinished, { force: true });
  const file = await files.open(unfinished, "wx", 0o600);
  try {
    await writeWholly(file, content, 0);
    await file.sync();
  } catch (error) {
    await files.rm(unfinished, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  await files.rename(unfinished, path);
  await syncFolder(files, dirname(path));
}

export async function writeWholly(file: OpenFile, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Undefined when there is no such file. */
export async function readWhole(files: Files, path: string): Promise<Buffer | undefined> {
  try {
    const bytes = await files.readFile(path);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export function isDiskFull(error: unknown): boolean {
  return isCode(error, "ENOSPC") || isCode(error, "EDQUOT");
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
