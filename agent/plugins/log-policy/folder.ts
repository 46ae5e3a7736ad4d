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
    return problemOf(root, error);
  }
}

function problemOf(folder: string, error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOENT") return `The folder ${folder} is not there.`;
  return code === "EACCES" || code === "EPERM"
    ? `The folder ${folder} may not be read.`
    : `The folder ${folder} cannot be read: ${errorText(error)}`;
}

/** Why the files of a folder are not followed. Undefined for a folder that was removed while others were read. */
function unreadable(folder: string, error: unknown): string | undefined {
  if (!["ENOENT", "ENOTDIR"].includes(String(codeOf(error))))
    return `${problemOf(folder, error)} Its files are not followed.`;
  return isMisnamed(folder, error)
    ? `The name of the folder ${folder} is not UTF-8. Its files are not followed.`
    : undefined;
}

/** True if the name is not UTF-8. It is then listed with U+FFFD, a name that is not there. */
function isMisnamed(path: string, error: unknown): boolean {
  return codeOf(error) === "ENOENT" && path.includes("\uFFFD");
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

/** Content of a folder and of the folders below it. Paths are relative to it, with slashes. */
export interface Walk {
  readonly files: readonly string[];
  /** Compressed files. */
  readonly packed: readonly string[];
  readonly folders: readonly string[];
  /** Messages about what is left out: at most one for each limit, and one for folders that cannot be read. */
  readonly leftOut: readonly string[];
}

export async function walk(root: string): Promise<Walk> {
  const files: string[] = [];
  const packed: string[] = [];
  const folders = [""];
  const leftOut = new Map<string, string>();
  let entries = 0;
  for (let index = 0; index < folders.length; index++) {
    const folder = folders[index] ?? "";
    const listed = await readdir(join(root, folder), { withFileTypes: true }).catch((error: unknown) => {
      // The state of the policy tells of the root itself.
      const reason = folder === "" ? undefined : unreadable(join(root, folder), error);
      if (reason !== undefined && !leftOut.has("unreadable")) leftOut.set("unreadable", reason);
      return [];
    });
    for (const entry of listed) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (++entries > LOG_WALK_ENTRIES_MAX) {
        leftOut.set("entries", `${root} has more than ${LOG_WALK_ENTRIES_MAX} entries; the rest is not followed.`);
        return { files, packed, folders, leftOut: [...leftOut.values()] };
      }
      const limit = entry.isDirectory() ? limitOf(path, folders.length) : undefined;
      if (limit !== undefined && !leftOut.has(limit))
        leftOut.set(limit, `${root} has ${LIMIT_TEXTS[limit]}; ${path} and others are not followed.`);
      if (entry.isDirectory() && limit === undefined) folders.push(path);
      else if (entry.isFile() || entry.isSymbolicLink()) (PACKED.test(entry.name) ? packed : files).push(path);
    }
  }
  return { files, packed, folders, leftOut: [...leftOut.values()] };
}

type FolderLimit = "folders" | "depth";

const LIMIT_TEXTS: Readonly<Record<FolderLimit, string>> = {
  folders: `more than ${LOG_FOLDERS_MAX} folders`,
  depth: `folders at a depth of more than ${PATH_DEPTH_MAX}`,
};

/** The limit that a folder is beyond; undefined when it is within all. */
function limitOf(path: string, count: number): FolderLimit | undefined {
  if (path.split("/").length > PATH_DEPTH_MAX) return "depth";
  return count < LOG_FOLDERS_MAX ? undefined : "folders";
}

export interface FileLook {
  readonly path: string;
  readonly id: string;
  readonly size: number;
  readonly mtimeMs: number;
  /** Time of its creation; absent or zero if it is not known. */
  readonly birthMs?: number;
  /** Identity of the symbolic link at the path; absent when there is none. It changes when the link is replaced. */
  readonly link?: string;
}

/**
 * Looks at a file. Undefined when there is no regular file, or when its link is not trusted or its name is not UTF-8. In
 * the last two cases `refused` is called with the reason.
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
    const { dev, ino, size, mtimeMs, birthtimeMs: birthMs } = found;
    return { path, id: `${dev}:${ino}`, size, mtimeMs, birthMs, ...link };
  } catch (error) {
    if (isAppError(error, "denied")) refused?.(error.message);
    if (isMisnamed(path, error))
      refused?.(`The name of the file ${join(root, path)} is not UTF-8. It is not followed.`);
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
