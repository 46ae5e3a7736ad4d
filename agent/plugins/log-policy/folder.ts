import { lstat, opendir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { errorText, isAppError } from "../../../common/errors.ts";
import { LOG_FOLDERS_MAX, LOG_WALK_ENTRIES_MAX, PATH_DEPTH_MAX } from "../../../common/limits.ts";
import { trustedTarget } from "../../disk/trusted-path.ts";

/** Endings of compressed files. They are not followed as text. */
const PACKED = /\.(gz|bz2|xz|zst|zip|lz4|Z)$/;

/** A message that says why a folder cannot be read; undefined when it can. */
export async function folderProblem(root: string): Promise<string | undefined> {
  try {
    await (await opendir(root)).close();
    return undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT") return `The folder ${root} is not there.`;
    return code === "EACCES" || code === "EPERM"
      ? `The folder ${root} may not be read.`
      : `The folder ${root} cannot be read: ${errorText(error)}`;
  }
}

/**
 * Content of a folder and of the folders below it. Paths are relative to it, with slashes. Folders beyond
 * `LOG_FOLDERS_MAX` or `PATH_DEPTH_MAX` are left out.
 */
export interface Walk {
  readonly files: readonly string[];
  /** Compressed files. */
  readonly packed: readonly string[];
  readonly folders: readonly string[];
  /** More than `LOG_WALK_ENTRIES_MAX` entries are there. The rest is left out. */
  readonly cut: boolean;
}

export async function walk(root: string): Promise<Walk> {
  const files: string[] = [];
  const packed: string[] = [];
  const folders = [""];
  let entries = 0;
  for (let index = 0; index < folders.length; index++) {
    const folder = folders[index] ?? "";
    for (const entry of await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])) {
      if (++entries > LOG_WALK_ENTRIES_MAX) return { files, packed, folders, cut: true };
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      const deep = path.split("/").length > PATH_DEPTH_MAX;
      if (entry.isDirectory() && folders.length < LOG_FOLDERS_MAX && !deep) folders.push(path);
      else if (entry.isFile() || entry.isSymbolicLink()) (PACKED.test(entry.name) ? packed : files).push(path);
    }
  }
  return { files, packed, folders, cut: false };
}

export interface FileLook {
  readonly path: string;
  readonly id: string;
  readonly size: number;
  readonly mtimeMs: number;
  /** Identity of the symbolic link at the path; absent when there is none. It changes when the link is replaced. */
  readonly link?: string;
}

/**
 * Looks at a file. Undefined when there is no regular file, or when its link is not trusted. In the second case
 * `refused` is called with the reason.
 */
export async function look(
  root: string,
  path: string,
  refused?: (reason: string) => void,
): Promise<FileLook | undefined> {
  try {
    const named = await lstat(join(root, path));
    const found = named.isSymbolicLink() ? (await trustedTarget(join(root, path))).found : named;
    if (!found.isFile()) return undefined;
    const link = named.isSymbolicLink() ? { link: `${named.ino}:${named.ctimeMs}` } : {};
    return { path, id: `${found.dev}:${found.ino}`, size: found.size, mtimeMs: found.mtimeMs, ...link };
  } catch (error) {
    if (isAppError(error, "denied")) refused?.(error.message);
    return undefined;
  }
}

export async function isLink(root: string, path: string): Promise<boolean> {
  return (await lstat(join(root, path)).catch(() => undefined))?.isSymbolicLink() === true;
}

export async function lookAll(
  root: string,
  paths: readonly string[],
  refused?: (reason: string) => void,
): Promise<FileLook[]> {
  const looks: FileLook[] = [];
  for (const path of paths) {
    const at = await look(root, path, refused);
    if (at) looks.push(at);
  }
  return looks;
}
