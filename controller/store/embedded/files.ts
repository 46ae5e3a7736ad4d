import { constants } from "node:os";
import { dirname } from "node:path";
import { AppError, errorText } from "../../../common/errors.ts";
import type { Files } from "../../../common/files.ts";
import { syncFolder } from "../../files.ts";

const FULL = ["ENOSPC", "EDQUOT"] as const;

/** The suffix of a file while it is written; after a crash it has no owner. */
export const PARTIAL = ".partial";

/** A finished file under its name, durable; an older one is replaced in one step. */
export async function moveInto(files: Files, partial: string, path: string): Promise<void> {
  await files.rename(partial, path);
  await syncFolder(files, dirname(path));
}

/** A disk that is full or broken, said as the seam says it. */
export async function diskErrors<T>(write: Promise<T>): Promise<T> {
  try {
    return await write;
  } catch (error) {
    if (!(error instanceof Error && "syscall" in error)) throw error;
    if (isFull(error)) throw diskFull(error);
    throw new AppError("unknown_outcome", `The disk refused to write: ${errorText(error)}.`, { cause: error });
  }
}

/** Node names the system's errors, LMDB numbers them. */
export function isFull(error: unknown): boolean {
  if (!(error instanceof Error && "code" in error)) return false;
  return FULL.some((name) => error.code === name || error.code === constants.errno[name]);
}

/** Nothing was changed: what was written so far is referred to by nothing. */
export function diskFull(cause: unknown): AppError {
  return new AppError(
    "unavailable",
    "The store's disk is full: it is read as before and written again when there is room.",
    { cause },
  );
}
