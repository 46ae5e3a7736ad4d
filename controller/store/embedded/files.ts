import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { AppError, errorText } from "../../../common/errors.ts";

/** What is called so is being written; after a crash it is nobody's. */
export const PARTIAL = ".partial";

/** Makes names made, changed or removed in a folder durable. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A finished file under its name, durable; an older one is replaced in one step. */
export async function moveInto(partial: string, path: string): Promise<void> {
  await rename(partial, path);
  await syncFolder(dirname(path));
}

export async function removeFile(path: string): Promise<boolean> {
  try {
    await rm(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/** A disk that is full or broken, said as the seam says it. */
export async function diskErrors<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    throw new AppError("unknown_outcome", `The disk refused to write: ${errorText(error)}.`, { cause: error });
  }
}
