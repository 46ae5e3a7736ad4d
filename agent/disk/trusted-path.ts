import { constants, type Stats } from "node:fs";
import { lstat, mkdir, open, readlink, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../common/errors.ts";
import { PATH_LINKS_MAX } from "../../common/limits.ts";

/** Where a path leads. */
interface Resolved {
  /** Without links. */
  readonly path: string;
  /** Owner of links that were made neither by root nor by this program's user. */
  readonly owners: ReadonlySet<number>;
}

/** Absent on systems that have none of it. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens for reading what a path of other users leads to, as Linux does with `protected_symlinks`: a link is followed
 * when it belongs to root, to the user of this program, or to the owner of what it leads to. `AppError("denied")` for
 * another, also when a folder is swapped for one meanwhile: what was opened is checked, not only what was to be.
 */
export function openTrusted(path: string): Promise<FileHandle> {
  return openChecked(path, OPEN_FLAGS);
}

/** Where a path leads by links that are to be followed, else `AppError("denied")`. */
export async function trustedTarget(path: string): Promise<{ path: string; found: Stats }> {
  const { path: target, owners } = await resolve(path);
  const found = await lstat(target);
  checkOwners(path, owners, found);
  return { path: target, found };
}

/** A folder that stays the one that was checked, also when another takes its name. */
export class TrustedFolder implements AsyncDisposable {
  /** Without links, as it was when it was opened. */
  readonly path: string;
  readonly #handle: FileHandle;

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  static async open(path: string): Promise<TrustedFolder> {
    const { path: target } = await trustedTarget(path);
    return new TrustedFolder(target, await openChecked(path, OPEN_FLAGS | (constants.O_DIRECTORY ?? 0)));
  }

  /** Makes what is missing of it. */
  static async make(path: string): Promise<TrustedFolder> {
    try {
      return await TrustedFolder.open(path);
    } catch (error) {
      if (!isCode(error, "ENOENT") || dirname(path) === path) throw error;
    }
    await using above = await TrustedFolder.make(dirname(path));
    await mkdir(above.entry(basename(path))).catch((error: unknown) => {
      if (!isCode(error, "EEXIST")) throw error;
    });
    return TrustedFolder.open(path);
  }

  /** A path to an entry of this very folder; a link of that name is for the caller not to follow. */
  entry(name: string): string {
    return process.platform === "linux" ? `/proc/self/fd/${this.#handle.fd}/${name}` : join(this.path, name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

async function openChecked(path: string, flags: number): Promise<FileHandle> {
  if (process.platform === "win32") return open(path, "r");
  const { path: target, owners } = await resolve(path);
  const handle = await open(target, flags);
  try {
    checkOwners(path, owners, await handle.stat());
    if ((await pathOf(handle, path)) !== target) throw new AppError("denied", `${path} was moved while it was opened.`);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** The path that the system opened; where it does not tell, the target of the path by now. */
async function pathOf(handle: FileHandle, path: string): Promise<string> {
  return process.platform === "linux" ? readlink(`/proc/self/fd/${handle.fd}`) : (await resolve(path)).path;
}

async function resolve(path: string): Promise<Resolved> {
  const rest = path.split("/");
  const owners = new Set<number>();
  let at = "/";
  for (let links = 0, name = rest.shift(); name !== undefined; name = rest.shift()) {
    if (name === "" || name === ".") continue;
    const next = name === ".." ? dirname(at) : join(at, name);
    const link = name === ".." ? undefined : await linkAt(next);
    if (!link) {
      at = next;
      continue;
    }
    if (++links > PATH_LINKS_MAX) throw new AppError("denied", `${path} has too many links.`);
    if (!isTrusted(link.owner)) owners.add(link.owner);
    rest.unshift(...link.target.split("/"));
    if (link.target.startsWith("/")) at = "/";
  }
  return { path: at, owners };
}

/** Undefined for what is no link. */
async function linkAt(path: string): Promise<{ owner: number; target: string } | undefined> {
  const found = await lstat(path);
  if (!found.isSymbolicLink()) return undefined;
  const target = await readlink(path);
  const again = await lstat(path);
  // Otherwise the owner could be that of another link than the target.
  if (again.ino !== found.ino || again.ctimeMs !== found.ctimeMs)
    throw new AppError("denied", `${path} changes while it is looked at.`);
  return { owner: found.uid, target };
}

function isTrusted(owner: number): boolean {
  return owner === 0 || owner === process.getuid?.();
}

function checkOwners(path: string, owners: ReadonlySet<number>, { uid }: Stats): void {
  for (const owner of owners) {
    if (owner !== uid)
      throw new AppError(
        "denied",
        `${path} is not followed: a link of the user ${owner} leads to what belongs to the user ${uid}.`,
      );
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
