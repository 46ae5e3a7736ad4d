import { constants, type Stats } from "node:fs";
import { lstat, mkdir, open, readlink, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../common/errors.ts";
import { PATH_LINKS_MAX } from "../../common/limits.ts";

/** Result of resolving a path. */
interface Resolved {
  /** The path without links. */
  readonly path: string;
  /** Owners of the links on the path, except root and the user of this program. */
  readonly owners: ReadonlySet<number>;
}

/**
 * For files in folders of other users: no link is followed, and no pipe is waited for. Flags that the system does not
 * have are left out.
 */
export const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens a path for reading that other users can change. It follows links like Linux with `protected_symlinks`: each
 * link must belong to root, to the user of this program, or to the owner of the opened file. `AppError("denied")` for
 * another link. The opened file is checked too, so a folder that is replaced by a link meanwhile is also denied. On
 * Windows nothing is checked.
 */
export function openTrusted(path: string): Promise<FileHandle> {
  return openChecked(path, OPEN_FLAGS);
}

/** Resolves a path through trusted links. `AppError("denied")` for another link. */
export async function trustedTarget(path: string): Promise<{ path: string; found: Stats }> {
  const { path: target, owners } = await resolve(path);
  const found = await lstat(target);
  checkOwners(path, owners, found);
  return { path: target, found };
}

/**
 * An open folder that was checked. On Linux, its entries are those of this folder even if another one takes its name.
 */
export class TrustedFolder implements AsyncDisposable {
  /** Its path without links, at the time when it was opened. */
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

  /** Opens a folder. The folder and those above it are created if they are missing. */
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

  /** A path to an entry of this folder. The caller must not follow a link of that name. */
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

/** The path that the system has opened. If the system does not tell, the current target of the path. */
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

/** Owner and target of a link; undefined for any other file. */
async function linkAt(path: string): Promise<{ owner: number; target: string } | undefined> {
  const found = await lstat(path);
  if (!found.isSymbolicLink()) return undefined;
  const target = await readlink(path);
  const again = await lstat(path);
  // Without this check, owner and target could belong to two different links.
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
