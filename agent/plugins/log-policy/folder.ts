import { createHash } from "node:crypto";
import { open, readdir, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { LOG_FOLDERS_MAX, LOG_WALK_ENTRIES_MAX, PATH_DEPTH_MAX } from "../../../common/limits.ts";

/** Text that is not text any more; a rotated file was read before it was packed. */
const PACKED = /\.(gz|bz2|xz|zst|zip|lz4|Z)$/;

/** What is below a folder: files by their path relative to it, with slashes. */
export interface Walk {
  readonly files: readonly string[];
  readonly folders: readonly string[];
  /** A bound was reached and more is there. */
  readonly cut: boolean;
}

export async function walk(root: string): Promise<Walk> {
  const files: string[] = [];
  const folders = [""];
  let entries = 0;
  for (let index = 0; index < folders.length; index++) {
    const folder = folders[index] ?? "";
    for (const entry of await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])) {
      if (++entries > LOG_WALK_ENTRIES_MAX) return { files, folders, cut: true };
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const deep = path.split("/").length > PATH_DEPTH_MAX;
      if (entry.isDirectory() && folders.length < LOG_FOLDERS_MAX && !deep) folders.push(path);
      else if ((entry.isFile() || entry.isSymbolicLink()) && !PACKED.test(entry.name)) files.push(path);
    }
  }
  return { files, folders, cut: false };
}

export interface FileLook {
  readonly path: string;
  readonly id: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Undefined when it is not there or no regular file. */
export async function look(root: string, path: string): Promise<FileLook | undefined> {
  try {
    const found = await stat(join(root, path));
    return found.isFile() ? { path, id: `${found.dev}:${found.ino}`, size: found.size, mtimeMs: found.mtimeMs } : undefined;
  } catch {
    return undefined;
  }
}

/** Tells files apart that were given the same inode one after the other. */
export interface Head {
  readonly hash: string;
  readonly bytes: number;
}

export async function headOf(file: FileHandle, bytes: number): Promise<Head> {
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = bytes === 0 ? { bytesRead: 0 } : await file.read(buffer, 0, bytes, 0);
  return { hash: createHash("sha256").update(buffer.subarray(0, bytesRead)).digest("hex").slice(0, 16), bytes: bytesRead };
}

/** Whether the file at `path` begins with that head; false when it cannot be read. */
export async function beginsWith(path: string, head: Head): Promise<boolean> {
  if (head.bytes === 0) return true;
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch {
    return false;
  }
  try {
    const found = await headOf(file, head.bytes);
    return found.hash === head.hash && found.bytes === head.bytes;
  } finally {
    await file.close();
  }
}
