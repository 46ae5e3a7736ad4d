import { dirname } from "node:path";
import { AppError, errorText } from "../../../common/errors.ts";
import type { Files } from "../../../common/files.ts";
import { syncFolder } from "../../files.ts";

/** What is called so is being written; after a crash it is nobody's. */
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
    throw new AppError("unknown_outcome", `The disk refused to write: ${errorText(error)}.`, { cause: error });
  }
}
