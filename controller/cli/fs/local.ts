import { randomBytes } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import {
  chmod,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  rmdir,
  unlink,
  type FileHandle,
} from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, errorText } from "../../../common/errors.ts";
import { FILE_SYNC_SETTLED_MS, FILE_SYNC_STATS_AT_ONCE } from "../../../common/limits.ts";
import { OWN_PREFIX } from "./excluded.ts";
import { sourceOf, versionOf } from "./local-source.ts";
import { pathRefusal } from "./remote.ts";
import type { Read, ScanOptions, Side, Source, Wanted, Written } from "./side.ts";
import { below, keyOf, Tree, type TreeEntry } from "./tree.ts";

export interface LocalOptions {
  readonly root: string;
  readonly nowMs: () => number;
  /** `process.platform` */
  readonly platform: string;
}

/** Never follows a link at the last name, and never waits for the writer of a pipe. */
const READ = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
/** Names that Windows gives another meaning, or changes. */
const WINDOWS_REFUSED = /[<>:"|?*]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;
/** A disk without hard links. */
const NO_LINKS: readonly string[] = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];

/** A folder of this machine. Symbolic links in it are not followed; the folder itself may be one. */
export class LocalFolder implements Side {
  readonly name: string;
  readonly #options: LocalOptions;

  constructor(options: LocalOptions) {
    this.#options = options;
    this.name = options.root;
  }

  async scan({ isExcluded, known, signal }: ScanOptions): Promise<Tree> {
    await this.identity();
    const tree = new Tree();
    for (let folders: readonly string[] = [""]; folders.length > 0; ) {
      const found: string[] = [];
      for (const folder of folders) {
        signal.throwIfAborted();
        found.push(...(await this.#scanFolder(folder, { tree, isExcluded, known })));
      }
      folders = found;
    }
    return tree;
  }

  /** Tells a folder from another one that takes its place. `AppError("not_found")` if there is none. */
  async identity(): Promise<string> {
    const { root } = this.#options;
    const stats = await statOf(await realpath(root).catch(gone(undefined)));
    if (stats === undefined) throw new AppError("not_found", `There is no folder ${root}.`);
    if (!stats.isDirectory()) throw new AppError("invalid", `${root} is no folder: use odp fs cp for a file.`);
    return `${stats.dev}:${stats.ino}`;
  }

  async digest(entry: TreeEntry, signal: AbortSignal): Promise<Read> {
    const source = await this.open(entry);
    // Reading the pieces computes the digest.
    const pieces = source.pieces();
    try {
      while ((await pieces.next()).done !== true) signal.throwIfAborted();
    } finally {
      await pieces.return(undefined);
    }
    const read = source.read();
    if (read.version !== entry.version) throw changed(entry.path);
    return read;
  }

  refusal(path: string): string | undefined {
    const why = pathRefusal(path);
    if (why !== undefined || this.#options.platform !== "win32") return why;
    return path.split("/").some((name) => WINDOWS_REFUSED.test(name))
      ? "has a name that Windows does not have"
      : undefined;
  }

  async isCaseSensitive(): Promise<boolean> {
    const probe = `${OWN_PREFIX}case-${randomBytes(4).toString("hex")}`;
    const file = join(this.#options.root, probe);
    const handle = await open(file, "wx");
    await handle.close();
    try {
      return (await statOf(join(this.#options.root, probe.toUpperCase()))) === undefined;
    } finally {
      await unlink(file);
    }
  }

  async open({ path, size }: TreeEntry): Promise<Source> {
    const at = await this.#place(path);
    return sourceOf({ path, size, open: () => open(at, READ), isSettled: (stats) => this.#isSettled(stats) });
  }

  /** Writes a new file beside the old one, and puts it in its place when it is on the disk. */
  async write(path: string, source: Source, { wanted }: { readonly wanted: Wanted }): Promise<Written> {
    const at = await this.#place(path);
    const before = await this.#requireWanted(at, wanted);
    const draft = join(dirname(at), `${OWN_PREFIX}${randomBytes(8).toString("hex")}.tmp`);
    try {
      await written(draft, source);
      source.read();
      if ((await this.#place(path)) !== at) throw changed(path);
      if (before !== undefined) await chmod(draft, Number(before.mode & 0o777n));
      await this.#requireWanted(at, wanted);
      if (before === undefined && wanted !== "any") await placeNew(draft, at);
      else await rename(draft, at);
    } finally {
      await rm(draft, { force: true });
    }
    const stats = await lstat(at, { bigint: true });
    return { version: versionOf(stats), isSettled: this.#isSettled(stats) };
  }

  async makeFolder(path: string): Promise<void> {
    if (path === "") return void (await mkdir(this.#options.root, { recursive: true }));
    const at = await this.#place(path);
    await mkdir(at).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
      if (!(await lstat(at)).isDirectory()) throw changed(path);
    });
  }

  async remove({ path, version }: TreeEntry): Promise<void> {
    const at = await this.#place(path);
    await this.#requireWanted(at, { version });
    await unlink(at);
  }

  async removeFolder({ path }: TreeEntry): Promise<boolean> {
    try {
      await rmdir(await this.#place(path));
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOTEMPTY" || codeOf(error) === "EEXIST") return false;
      throw error;
    }
  }

  /** Adds the entries of a folder, and returns the folders in it. */
  async #scanFolder(
    folder: string,
    { tree, isExcluded, known }: Omit<ScanOptions, "signal"> & { readonly tree: Tree },
  ): Promise<readonly string[]> {
    const names = await this.#names(folder, tree);
    const found = await mapLimited(names, FILE_SYNC_STATS_AT_ONCE, async (name) => {
      const path = below(folder, name);
      if (isExcluded(keyOf(path))) return undefined;
      return { path, stats: await statOf(join(this.#options.root, path)) };
    });
    const folders: string[] = [];
    for (const one of found) {
      // An entry without stats was removed meanwhile.
      if (one?.stats === undefined) continue;
      const { path, stats } = one;
      const why = leavingOut(path, stats);
      if (why !== undefined) tree.leaveOut(path, why);
      else if (stats.isDirectory()) {
        tree.add({ path, kind: "folder", size: 0, version: "" });
        folders.push(path);
      } else {
        const version = versionOf(stats);
        const digest = known(keyOf(path), version);
        const found = digest === undefined ? {} : { digest, isSettled: true };
        tree.add({ path, kind: "file", size: Number(stats.size), version, ...found });
      }
    }
    return folders;
  }

  /** Names in a folder, without those that are no UTF-8, which are left out. */
  async #names(folder: string, tree: Tree): Promise<readonly string[]> {
    const names: string[] = [];
    for (const bytes of await this.#namesAsBytes(folder, tree)) {
      const name = bytes.toString("utf8");
      if (Buffer.from(name, "utf8").equals(bytes)) names.push(name);
      else tree.leaveOut(below(folder, name), "its name is no UTF-8");
    }
    return names.sort();
  }

  async #namesAsBytes(folder: string, tree: Tree): Promise<readonly Buffer[]> {
    try {
      return await readdir(join(this.#options.root, folder), { encoding: "buffer" });
    } catch (error) {
      if (folder === "") throw error;
      tree.leaveOut(folder, `it could not be read: ${errorText(error)}`);
      return [];
    }
  }

  /** Where an entry is. `AppError("stale")` if the folder of it is not where the scan found it, as behind a link. */
  async #place(path: string): Promise<string> {
    const why = this.refusal(path);
    if (why !== undefined) throw new AppError("invalid", `The path ${JSON.stringify(path)} ${why}.`);
    const root = await realpath(this.#options.root);
    const folder = join(root, dirname(path));
    const real = await realpath(folder).catch(gone(""));
    if (real.normalize("NFC") !== folder.normalize("NFC")) throw changed(dirname(path));
    return join(real, basename(path));
  }

  /** The stats of the file if it is as wanted; `undefined` if it is absent. */
  async #requireWanted(at: string, wanted: Wanted): Promise<BigIntStats | undefined> {
    const stats = await statOf(at);
    if (stats !== undefined && !stats.isFile()) {
      if (wanted !== "any") throw changed(at);
      throw new AppError(
        "invalid",
        `${at} is ${stats.isSymbolicLink() ? "a symbolic link" : "no file"}: it is not replaced.`,
      );
    }
    if (wanted !== "any" && wanted.version !== (stats && versionOf(stats))) throw changed(at);
    return stats;
  }

  #isSettled({ ctimeNs, mtimeNs }: BigIntStats): boolean {
    const changedMs = Number((ctimeNs > mtimeNs ? ctimeNs : mtimeNs) / 1_000_000n);
    return changedMs < this.#options.nowMs() - FILE_SYNC_SETTLED_MS;
  }
}

/** Puts a finished file where none may be. */
async function placeNew(draft: string, at: string): Promise<void> {
  try {
    await link(draft, at);
  } catch (error) {
    if (codeOf(error) === "EEXIST") throw changed(at);
    if (!NO_LINKS.includes(codeOf(error) ?? "")) throw error;
    await rename(draft, at);
  }
}

async function written(draft: string, source: Source): Promise<void> {
  const handle: FileHandle = await open(draft, "wx");
  try {
    for await (const piece of source.pieces()) await handle.writeFile(piece);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

function leavingOut(path: string, stats: BigIntStats): string | undefined {
  if (stats.isSymbolicLink()) return "is a symbolic link, which is not followed";
  if (!stats.isFile() && !stats.isDirectory()) return "is neither a file nor a folder";
  return pathRefusal(keyOf(path));
}

async function statOf(path: string | undefined): Promise<BigIntStats | undefined> {
  return path === undefined ? undefined : lstat(path, { bigint: true }).catch(gone(undefined));
}

/** The value for something that is not there; other errors are thrown. */
function gone<T>(value: T): (error: NodeJS.ErrnoException) => T {
  return (error) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return value;
    throw error;
  };
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

function changed(path: string): AppError {
  return new AppError("stale", `${path} was changed meanwhile.`);
}
