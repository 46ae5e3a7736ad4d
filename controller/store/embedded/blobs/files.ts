import { constants } from "node:os";
import { dirname } from "node:path";
import { AppError, errorText } from "../../../../common/errors.ts";
import type { Files } from "../../../../common/files.ts";
import { syncFolder } from "../../../files.ts";

const FULL = ["ENOSPC", "EDQUOT"] as const;

/** Suffix of a file while it is written. After a crash such a file has no owner. */
export const PARTIAL = ".partial";

/** Gives a finished file its final name durably. An older file is replaced atomically. */
export async function moveInto(files: Files, partial: string, path: string): Promise<void> {
  await files.rename(partial, path);
  await syncFolder(files, dirname(path));
}

/** Translates errors of a full or broken disk into those of the seam. */
export async function diskErrors<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    if (isFull(error)) throw diskFull(error);
    throw new AppError("unknown_outcome", `The disk refused to write: ${errorText(error)}.`, { cause: error });
  }
}

/** Node gives system errors by name, LMDB by number. */
export function isFull(error: unknown): boolean {
  if (!(error instanceof Error && "code" in error)) return false;
  return FULL.some((name) => error.code === name || error.code === constants.errno[name]);
}

/** Error for a full disk. Nothing was changed: nothing refers to the part written so far. */
export function diskFull(cause: unknown): AppError {
  return new AppError(
    "unavailable",
    "The store's disk is full: it is read as before and written again when there is room.",
    { cause },
  );
}
