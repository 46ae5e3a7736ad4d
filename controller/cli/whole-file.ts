import { open, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../common/errors.ts";
import type { Random } from "../../common/time.ts";

/**
 * Writes a file as a whole: until the last piece is on the disk, the path has what it had before, or nothing. A draft
 * beside it is removed if a piece fails. A link stays, and so do the permissions of a file. Returns the number of bytes.
 * `AppError("invalid")` for what is there and no file, such as a folder or a device.
 */
export async function writeWhole(
  given: string,
  pieces: AsyncIterable<Uint8Array>,
  random: Pick<Random, "next">,
): Promise<number> {
  const { path, mode } = await placeOf(given);
  const draft = join(dirname(path), `.${basename(path)}.${random.next().toString(36).slice(2)}.part`);
  const file = await open(draft, "wx", mode).catch((error: unknown) => {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new AppError("invalid", `${path} cannot be written: ${code ?? message} in ${dirname(path)}`, {
      cause: error,
    });
  });
  try {
    if (mode !== undefined) await file.chmod(mode);
    let bytes = 0;
    try {
      for await (const piece of pieces) {
        await file.writeFile(piece);
        bytes += piece.length;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
    return bytes;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** The file behind links, and its permissions; without them if there is none yet. */
async function placeOf(given: string): Promise<{ readonly path: string; readonly mode?: number }> {
  if (given === "") throw new AppError("invalid", "The path of the file is empty.");
  try {
    const path = await realpath(given);
    const found = await stat(path);
    if (!found.isFile()) throw new AppError("invalid", `${given} is no file, so it cannot be replaced by one.`);
    return { path, mode: found.mode & 0o777 };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return { path: given };
  }
}
