import { constants } from "node:fs";
import { copyFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import type { Random } from "../../../common/time.ts";
import { nodeFiles, syncTree } from "../../disk/files.ts";
import { TrustedFolder } from "../../disk/trusted-path.ts";

/** A copy under a temporary name in the folder of its target. */
interface StagedCopy {
  readonly path: string;
  readonly name: string;
}

const NAME_BYTES = 12;

/**
 * Copies files of `from` into a folder that may belong to another user. Each file is replaced by a rename. Nothing that
 * a user puts into the folder, before or during the copy, redirects a file to a place outside: temporary names are
 * random and always created new, and the handle of each folder stays open while it is used.
 */
export async function putInPlace(
  from: string,
  remotePath: string,
  { paths, random }: { paths: readonly string[]; random: Random },
): Promise<void> {
  await using root = await TrustedFolder.make(remotePath);
  const copies: StagedCopy[] = [];
  try {
    for (const path of paths) {
      await using folder = await folderOf(root, { remotePath, path, make: true });
      const name = `.${Buffer.from(random.bytes(NAME_BYTES)).toString("hex")}.odp-new`;
      copies.push({ path, name });
      await copyFile(join(from, path), folder.entry(name), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
    }
    // The bytes are synced before the rename, so after a power cut the old file or the new one is there.
    await syncTree(
      nodeFiles,
      root.path,
      copies.map(({ path, name }) => join(root.path, dirname(path), name)),
    );
    for (const { path, name } of copies) {
      await using folder = await folderOf(root, { remotePath, path });
      await rename(folder.entry(name), folder.entry(basename(path)));
    }
  } catch (error) {
    await takeAway(
      remotePath,
      copies.map(({ path, name }) => join(dirname(path), name)),
    ).catch(() => undefined);
    throw error;
  }
  await syncTree(
    nodeFiles,
    root.path,
    paths.map((path) => join(root.path, path)),
  );
}

/**
 * Deletes files of a folder. A missing file or folder is no error. A link is deleted, and not its target. A link to a
 * folder outside is refused with `AppError("invalid")`.
 */
export async function takeAway(remotePath: string, paths: readonly string[]): Promise<void> {
  try {
    await using root = await TrustedFolder.open(remotePath);
    for (const path of paths) await takeOne(root, { remotePath, path });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

async function takeOne(root: TrustedFolder, place: Place): Promise<void> {
  try {
    await using folder = await folderOf(root, place);
    await rm(folder.entry(basename(place.path)), { force: true });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

interface Place {
  readonly remotePath: string;
  readonly path: string;
  readonly make?: boolean;
}

/** Opens the folder of a file. `AppError("invalid")` when it is outside the root. */
async function folderOf(root: TrustedFolder, { remotePath, path, make = false }: Place): Promise<TrustedFolder> {
  const folder = await (make ? TrustedFolder.make : TrustedFolder.open)(join(root.path, dirname(path)));
  if (isInside(root.path, folder.path)) return folder;
  await folder[Symbol.asyncDispose]();
  throw new AppError("invalid", `${path} leads outside ${remotePath}.`);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
