import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../common/errors.ts";
import type { Random } from "../../common/time.ts";

/**
 * Writes a file as a whole: until the last piece is on the disk, the path has what it had before, or nothing. A draft
 * beside it is removed if a piece fails. Returns the number of bytes.
 */
export async function writeWhole(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
  random: Pick<Random, "next">,
): Promise<number> {
  const draft = join(dirname(path), `.${basename(path)}.${random.next().toString(36).slice(2)}.part`);
  const file = await open(draft, "wx").catch((error: unknown) => {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new AppError("invalid", `${path} cannot be written: ${code ?? message} in ${dirname(path)}`, {
      cause: error,
    });
  });
  try {
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
