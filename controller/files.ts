import * as disk from "node:fs/promises";
import { dirname } from "node:path";
import type { Files, OpenFile } from "../common/files.ts";

/** The disk of this machine. */
export const nodeFiles: Files = disk;

/** Makes created, changed and removed names of a folder durable. */
export async function syncFolder(files: Files, folder: string): Promise<void> {
  const handle = await files.open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Makes a folder whose name is durable. An existing folder may come from a program that was killed before it could
 * sync. Unreadable parent folders are assumed to be durable.
 */
export async function makeFolder(files: Files, path: string): Promise<void> {
  await files.mkdir(path, { recursive: true, mode: 0o700 });
  for (let name = path; name !== dirname(name); name = dirname(name)) {
    try {
      await syncFolder(files, dirname(name));
    } catch (error) {
      if (!isCode(error, "EACCES") && !isCode(error, "EPERM")) throw error;
    }
  }
}

/** Returns false only if it is certain that nothing has that name. */
export async function isThere(files: Files, path: string): Promise<boolean> {
  try {
    await files.stat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** Returns true if the file existed. */
export async function removeFile(files: Files, path: string): Promise<boolean> {
  try {
    await files.rm(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

export async function writeWholly(file: OpenFile, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** Shorter than requested if the file ends before. */
export async function readWholly(file: OpenFile, position: number, length: number): Promise<Uint8Array> {
  // Not set to zero, because only bytes that were read are returned.
  const bytes = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

export function isMissing(error: unknown): boolean {
  return isCode(error, "ENOENT");
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
