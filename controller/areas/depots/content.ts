import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { DEPOT_FILES_MAX } from "../../../common/limits.ts";
import { newStamp } from "../../../common/revisions.ts";
import { relativePath } from "../../../common/paths.ts";
import type { Runtime } from "../../runtime.ts";
import type { DepotFile } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { DepotStore, StoredVersion, VersionEntry } from "./store.ts";
import type { DepotDescription, DepotFileChange, DepotUpload } from "./types.ts";
import { looksExecutable, unpackUploads } from "./unpack.ts";

/**
 * Stores the content of a version under marks of `owner`. Adds each digest to `seen` as soon as the digest is marked.
 */
type Content = (owner: string, seen: string[]) => Promise<readonly DepotFile[]>;

interface VersionContentDependencies {
  readonly store: DepotStore;
  readonly runtime: Runtime;
}

/** Creates the content of versions from uploads, or from the files of another version. */
export class VersionContent {
  readonly #store: DepotStore;
  readonly #runtime: Runtime;

  constructor({ store, runtime }: VersionContentDependencies) {
    this.#store = store;
    this.#runtime = runtime;
  }

  uploaded(principal: Principal, uploads: readonly DepotUpload[]): Content {
    return (owner, seen) =>
      unpackUploads(uploads, async (bytes) => {
        const info = await this.#store.saveContent(principal.tenant, owner, bytes);
        seen.push(info.digest);
        return info;
      });
  }

  /** The files of `before` with one file modified, added or deleted. */
  changed(principal: Principal, change: DepotFileChange, before: readonly DepotFile[]): Content {
    return async (owner, seen) => {
      const files = new Map(before.map((file) => [file.path, file]));
      const path = relativePath(change.filepath);
      const old = files.get(path);
      refuseOddChange(change, path, old, files);
      if (change.type === "D") files.delete(path);
      else {
        const { content = "" } = change;
        const bytes = typeof content === "string" ? Buffer.from(content) : Buffer.from(content);
        const { digest, size } = await this.#store.saveContent(principal.tenant, owner, once(bytes));
        seen.push(digest);
        files.set(path, { path, digest, size, executable: old?.executable ?? looksExecutable(bytes) });
      }
      const kept = [...files.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
      for (const file of kept) seen.push(file.digest);
      await this.#store.markContent(principal.tenant, owner, kept);
      return kept;
    };
  }

  /**
   * Writes the content first and the record last. If the content cannot be written, its marks are removed. Returns
   * `undefined` if another writer was faster; the marks are removed then, too.
   */
  async fill(
    principal: Principal,
    description: DepotDescription,
    over: VersionEntry | undefined,
    content: Content,
  ): Promise<StoredVersion | undefined> {
    const owner = `depot/${description.name}/${description.version}/${ulidOf(this.#runtime.clock.nowMs(), this.#runtime.random.bytes(10))}`;
    const seen: string[] = [];
    const { tenant } = principal;
    let stored: StoredVersion;
    try {
      const files = await content(owner, seen);
      const manifest = await this.#store.saveManifest(tenant, owner, files);
      seen.push(manifest);
      stored = this.#stored(principal, description, { owner, manifest, files, over });
    } catch (error) {
      await this.#store.release(tenant, owner, seen);
      throw error;
    }
    if (await this.#store.put(tenant, stored, over?.revision ?? 0)) return stored;
    await this.#store.release(tenant, owner, seen);
    return undefined;
  }

  #stored(
    principal: Principal,
    description: DepotDescription,
    made: { owner: string; manifest: string; files: readonly DepotFile[]; over: VersionEntry | undefined },
  ): StoredVersion {
    return {
      name: description.name,
      version: description.version,
      owner: made.owner,
      manifest: made.manifest,
      filecount: made.files.length,
      size: made.files.reduce((sum, file) => sum + file.size, 0),
      remark: description.remark ?? made.over?.stored.remark ?? "",
      tags: description.tags ?? made.over?.stored.tags ?? [],
      command: description.command ?? made.over?.stored.command ?? "",
      createdMs: this.#runtime.clock.nowMs(),
      creator: principal.user,
      stamp: newStamp(principal.user, this.#runtime),
    };
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function refuseOddChange(
  change: DepotFileChange,
  path: string,
  old: DepotFile | undefined,
  files: ReadonlyMap<string, DepotFile>,
): void {
  const where = `${change.name} ${change.version}`;
  if (change.type === "A" && old)
    throw new AppError("conflict", `${where} has a file ${path} already; type M modifies it.`);
  if (change.type !== "A" && !old) throw new AppError("not_found", `${where} has no file ${path}.`);
  if (change.type === "A" && files.size >= DEPOT_FILES_MAX)
    throw new AppError("too_large", `A depot holds at most ${DEPOT_FILES_MAX} files.`);
  const clash = [...files.keys()].find((other) => other.startsWith(`${path}/`) || path.startsWith(`${other}/`));
  if (change.type === "A" && clash !== undefined)
    throw new AppError("invalid", `${path} and ${clash} cannot both be: one would be file and folder.`);
}
