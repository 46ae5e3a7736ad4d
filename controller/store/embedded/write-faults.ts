import { statfsSync } from "node:fs";
import { constants } from "node:os";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { DISK_FULL_BELOW_BYTES } from "../../../common/limits.ts";
import { storeDamaged } from "../damage.ts";
import { diskFull, isFull } from "./files.ts";

/**
 * LMDB's own number for an environment that failed while it wrote its meta page: all it does until it is opened again.
 */
const PANIC = -30_795;
/** A page that is not there, one of another kind than expected, no file of LMDB at all. */
const DAMAGE: ReadonlySet<number> = new Set([-30_797, -30_796, -30_793]);
/** The file has a form that this version of LMDB does not know. */
const OTHER_VERSION = -30_794;

/** What LMDB threw while it wrote or opened, as the seam says it; an error of the program itself as it is. */
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

/** The reason of a failed commit: the library gives it by a promise beside the error. */
export async function commitReason(error: unknown): Promise<unknown> {
  if (!(error instanceof Error && "commitError" in error)) return error;
  try {
    return await error.commitError;
  } catch (reason) {
    return reason;
  }
}

/** A write of which only a part found room ends as an error of input and output. */
function isCutShort(code: number): boolean {
  return code === constants.errno.EIO;
}

function isWithoutRoom(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize < DISK_FULL_BELOW_BYTES;
}
