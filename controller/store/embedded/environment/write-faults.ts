import { statfsSync } from "node:fs";
import { constants } from "node:os";
import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { DISK_FULL_BELOW_BYTES } from "../../../../common/limits.ts";
import { storeDamaged } from "../../damage.ts";
import { diskFull, isFull } from "../blobs/files.ts";

/**
 * LMDB's error number for an environment that failed while writing its meta page. It stays in that state until it is
 * opened again.
 */
const PANIC = -30_795;
/** A missing page, a page of an unexpected kind, and a file that is not LMDB's. */
const DAMAGE: ReadonlySet<number> = new Set([-30_797, -30_796, -30_793]);
/** The file has a format that this version of LMDB does not know. */
const OTHER_VERSION = -30_794;

/** Translates an error of LMDB while writing or opening into one of the seam. Errors of the program stay unchanged. */
export function writeFault(error: unknown, folder: string): unknown {
  if (isAppError(error) || !(error instanceof Error && "code" in error && typeof error.code === "number")) return error;
  if (isFull(error) || (isCutShort(error.code) && isWithoutRoom(folder))) return diskFull(error);
  if (error.code === PANIC) {
    return new AppError(
      "unavailable",
      "The store's disk failed in the middle of a commit: the controller must be started again.",
      { cause: error },
    );
  }
  if (error.code === OTHER_VERSION) {
    const text = `The store in ${folder} was written by another version of LMDB: start the version of odp that wrote it.`;
    return new AppError("unsupported", text, { cause: error });
  }
  if (DAMAGE.has(error.code))
    return storeDamaged(
      `The store in ${folder} is damaged: ${errorText(error)}. Restore the data folder from a backup.`,
      error,
    );
  return new AppError("unknown_outcome", `The store could not write to its disk: ${errorText(error)}.`, {
    cause: error,
  });
}

/** The reason of a failed commit; the library provides it by a promise in the error. */
export async function commitReason(error: unknown): Promise<unknown> {
  if (!(error instanceof Error && "commitError" in error)) return error;
  try {
    return await error.commitError;
  } catch (reason) {
    return reason;
  }
}

/** A partial write on a full disk ends as an I/O error. */
function isCutShort(code: number): boolean {
  return code === constants.errno.EIO;
}

function isWithoutRoom(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < DISK_FULL_BELOW_BYTES;
}
