import { createHash } from "node:crypto";
import { constants, existsSync, readFileSync, readlinkSync } from "node:fs";
import { chmod, copyFile, mkdir, readdir, rename, rm, symlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Depot } from "../../../proto/gen/agent/v1/agent.ts";
import { AppError } from "../../../common/errors.ts";
import { DEPOT_FILES_MAX, DEPOT_MAX_BYTES } from "../../../common/limits.ts";
import { KeyedQueue } from "../../../common/keyed-queue.ts";
import { absolutePath, fileName, relativePath } from "../../../common/paths.ts";
import type { Random } from "../../../common/time.ts";
import { nodeFiles, syncFolder, syncTree, writeAtomically } from "../../disk/files.ts";
import type { ContentCache } from "./cache.ts";
import { putInPlace, takeAway } from "./remote.ts";

/** Stored in the folder of each built version: its files, and where they were copied. */
interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly remotePath: string;
  readonly files: readonly { readonly path: string; readonly digest: string }[];
}

/**
 * A depot that is in place. `keep` makes that final, and removes the files that the version before had put elsewhere.
 * `revert` restores the version before, and removes the files that only the new one has. Without a version before, the
 * depot is no longer in place.
 */
export interface Placed {
  readonly folder: string;
  keep(): Promise<void>;
  revert(): Promise<void>;
}

interface PlacedFiles {
  readonly depot: Depot;
  readonly manifest: Manifest;
}

const CURRENT = "current";
const MANIFEST = ".manifest.json";

/**
 * Keeps the depots on this host. Each version is built in a folder of its own, `<folder>/<name>/<version>-<digest>/`.
 * The link `current` is then replaced, so a reader sees either the whole old version or the whole new one. With a
 * remote path, the files are also copied there, each by a rename, and those of the version before are removed. Other
 * files at the remote path are not changed.
 */
export class DepotFolders {
  readonly #folder: string;
  readonly #cache: ContentCache;
  readonly #random: Random;
  readonly #turns = new KeyedQueue();
  #queue: Promise<unknown> = Promise.resolve();

  constructor(folder: string, cache: ContentCache, random: Random) {
    this.#folder = folder;
    this.#random = random;
    this.#cache = cache;
  }

  /**
   * The folder with the current version of a depot, or `remotePath` if it is given. Undefined when the depot is not on
   * this host.
   */
  folder(name: string, remotePath = ""): string | undefined {
    const current = this.#current(name);
    if (current === undefined) return undefined;
    return remotePath === "" ? join(this.#home(name), CURRENT) : absolutePath(remotePath);
  }

  /** True if the depot is in place. With a version or a remote path, only that version or that place counts. */
  has(name: string, { version, remotePath }: { version: string; remotePath: string }): boolean {
    const current = this.#current(name);
    if (current === undefined) return false;
    const manifest = this.#readManifest(name, current);
    const isVersion = version === "" || manifest.version === version;
    return isVersion && (remotePath === "" || manifest.remotePath === absolutePath(remotePath));
  }

  /**
   * Runs `work` when no other work on this depot is under way. A version that is placed may still be reverted, so nothing
   * else may rely on it or replace it before. Rejects at once if the signal fires while it waits.
   */
  alone<T>(name: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#turns.run([fileName(name)], work, signal);
  }

  /**
   * Resolves with the folder when this version of the depot is in place. If it is not yet, it is placed, and `run` is
   * called with its folder. If `run` fails, the version before is restored. A depot that a deployment put at a remote
   * path stays there.
   */
  ensure(depot: Depot, run: (folder: string) => Promise<void>, signal: AbortSignal): Promise<string> {
    return this.alone(depot.name, () => this.#ensure(depot, run, signal), signal);
  }

  async #ensure(depot: Depot, run: (folder: string) => Promise<void>, signal: AbortSignal): Promise<string> {
    const current = this.#current(depot.name);
    const before = current === undefined ? undefined : this.#readManifest(depot.name, current);
    const wanted = depot.remotePath === "" && before ? { ...depot, remotePath: before.remotePath } : depot;
    const folder = depot.remotePath === "" ? join(this.#home(depot.name), CURRENT) : absolutePath(depot.remotePath);
    if (current === versionFolder(this.#manifest(wanted))) return folder;
    const placed = await this.place(wanted, signal);
    try {
      await run(placed.folder);
    } catch (error) {
      await placed.revert();
      throw error;
    }
    await placed.keep();
    return folder;
  }

  /** Puts a version in place. Call it in `alone`, which must end after `keep` or `revert`. */
  place(depot: Depot, signal: AbortSignal): Promise<Placed> {
    return this.#exclusively(() => this.#place(depot, signal));
  }

  /** Removes a depot from this host. With a version or a remote path, only if `has` is true for them. */
  remove(name: string, which: { version: string; remotePath: string }): Promise<void> {
    return this.#exclusively(async () => {
      const current = this.#current(name);
      if (current === undefined || !this.has(name, which)) return;
      await withdraw(this.#readManifest(name, current), undefined);
      await rm(join(this.#home(name), CURRENT), { force: true });
      await rm(this.#home(name), { recursive: true, force: true });
      await this.#sweep();
    });
  }

  async #place(depot: Depot, signal: AbortSignal): Promise<Placed> {
    const manifest = this.#manifest(depot);
    const before = this.#current(depot.name);
    const built = versionFolder(manifest);
    if (!existsSync(join(this.#home(depot.name), built))) await this.#build({ depot, manifest }, built, signal);
    const former = before === undefined ? undefined : this.#readManifest(depot.name, before);
    const revert = async () => {
      await this.#revert(depot.name, built, before);
      if (before !== built) await withdraw(manifest, former);
    };
    await this.#switch(depot.name, built);
    try {
      if (manifest.remotePath !== "") await this.#putThere(join(this.#home(depot.name), built), manifest);
    } catch (error) {
      await revert().catch(() => undefined);
      throw error;
    }
    return {
      folder: manifest.remotePath === "" ? join(this.#home(depot.name), CURRENT) : manifest.remotePath,
      keep: () =>
        this.#exclusively(async () => {
          if (former) await withdraw(former, manifest);
          await this.#prune(depot.name, [built, before]);
        }),
      revert: () => this.#exclusively(revert),
    };
  }

  async #build({ depot, manifest }: PlacedFiles, name: string, signal: AbortSignal): Promise<void> {
    const building = join(this.#home(depot.name), `.new-${name}`);
    await rm(building, { recursive: true, force: true });
    await mkdir(building, { recursive: true, mode: 0o755 });
    try {
      for (const file of depot.files) {
        const path = join(building, relativePath(file.path));
        const content = await this.#cache.get(file, signal);
        await mkdir(dirname(path), { recursive: true });
        await copyFile(content, path, constants.COPYFILE_FICLONE);
        await chmod(path, file.executable ? 0o755 : 0o644);
      }
      await syncTree(
        nodeFiles,
        building,
        depot.files.map(({ path }) => join(building, relativePath(path))),
      );
      await writeAtomically(nodeFiles, join(building, MANIFEST), Buffer.from(JSON.stringify(manifest)));
      await rename(building, join(this.#home(depot.name), name));
      for (const names of [this.#home(depot.name), this.#folder, dirname(this.#folder)])
        await syncFolder(nodeFiles, names);
    } catch (error) {
      await rm(building, { recursive: true, force: true });
      throw error;
    }
  }

  async #switch(name: string, built: string): Promise<void> {
    const link = join(this.#home(name), CURRENT);
    await rm(`${link}.new`, { force: true });
    await symlink(built, `${link}.new`);
    await rename(`${link}.new`, link);
    await syncFolder(nodeFiles, this.#home(name));
  }

  #putThere(from: string, { remotePath, files }: Manifest): Promise<void> {
    return putInPlace(from, remotePath, { paths: files.map(({ path }) => path), random: this.#random });
  }

  async #revert(name: string, built: string, before: string | undefined): Promise<void> {
    if (before === built) return;
    if (before === undefined) {
      await rm(join(this.#home(name), CURRENT), { force: true });
    } else {
      await this.#switch(name, before);
      const manifest = this.#readManifest(name, before);
      if (manifest.remotePath !== "") await this.#putThere(join(this.#home(name), before), manifest);
    }
    await this.#prune(name, [before]);
  }

  /** Deletes all versions except the current one and those in `keep`. */
  async #prune(name: string, keep: readonly (string | undefined)[]): Promise<void> {
    const kept = new Set([CURRENT, this.#current(name), ...keep]);
    for (const entry of await readdir(this.#home(name))) {
      if (!kept.has(entry)) await rm(join(this.#home(name), entry), { recursive: true, force: true });
    }
    await this.#sweep();
  }

  async #sweep(): Promise<void> {
    const digests = new Set<string>();
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const versions = await readdir(join(this.#folder, name)).catch(() => []);
      for (const version of versions.filter((entry) => entry !== CURRENT && !entry.startsWith("."))) {
        for (const { digest } of this.#readManifest(name, version).files) digests.add(digest);
      }
    }
    await this.#cache.keepOnly(digests);
  }

  #manifest(depot: Depot): Manifest {
    const bytes = depot.files.reduce((sum, { size }) => sum + size, 0);
    if (depot.files.length > DEPOT_FILES_MAX)
      throw new AppError("too_large", `A depot has at most ${DEPOT_FILES_MAX} files.`);
    if (bytes > DEPOT_MAX_BYTES) throw new AppError("too_large", `A depot has at most ${DEPOT_MAX_BYTES} bytes.`);
    const files = depot.files.map(({ path, digest }) => ({ path: relativePath(path), digest }));
    if (new Set(files.map(({ path }) => path)).size < files.length)
      throw new AppError("invalid", `${depot.name} names a file twice.`);
    const remotePath = depot.remotePath === "" ? "" : absolutePath(depot.remotePath);
    return { name: fileName(depot.name), version: fileName(depot.version), remotePath, files };
  }

  #home(name: string): string {
    return join(this.#folder, fileName(name));
  }

  #current(name: string): string | undefined {
    try {
      return basename(readlinkSync(join(this.#home(name), CURRENT)));
    } catch {
      return undefined;
    }
  }

  #readManifest(name: string, version: string): Manifest {
    const manifest: Manifest = JSON.parse(readFileSync(join(this.#home(name), version, MANIFEST), "utf8"));
    return manifest;
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(work, work);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }
}

/** Removes the files of a version from its remote path, except those that the other version has at the same place. */
async function withdraw({ remotePath, files }: Manifest, except: Manifest | undefined): Promise<void> {
  if (remotePath === "") return;
  const kept = new Set(except?.remotePath === remotePath ? except.files.map(({ path }) => path) : []);
  await takeAway(
    remotePath,
    files.map(({ path }) => path).filter((path) => !kept.has(path)),
  );
}

function versionFolder(manifest: Manifest): string {
  return `${manifest.version}-${createHash("sha256").update(JSON.stringify(manifest)).digest("hex").slice(0, 12)}`;
}
