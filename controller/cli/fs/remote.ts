import { createHash } from "node:crypto";
import type { Static } from "typebox";
import type { FileRecord } from "../../../common/api/files.ts";
import type { Download, OdpClient } from "../../../common/client/index.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { FILE_SYNC_AT_ONCE, FILE_SYNC_TRANSFER_MS } from "../../../common/limits.ts";
import { relativePath } from "../../../common/paths.ts";
import type { Read, ScanOptions, Side, Source, Wanted, Written } from "./side.ts";
import { below, keyOf, Tree, type TreeEntry } from "./tree.ts";

export type FileClient = Pick<OdpClient, "call" | "answer" | "download">;
export type Listed = Static<typeof FileRecord>;

export interface RemoteOptions {
  readonly client: FileClient;
  /** Clean path below the root of the file space; empty for the root itself. */
  readonly root: string;
  /** True for the system's space. */
  readonly isSystem: boolean;
}

/** A folder of the file space of the controller. */
export class RemoteFolder implements Side {
  readonly name: string;
  readonly #client: FileClient;
  readonly #root: string;
  readonly #space: { readonly issys?: true };

  constructor({ client, root, isSystem }: RemoteOptions) {
    this.#client = client;
    this.#root = root;
    this.#space = isSystem ? { issys: true } : {};
    this.name = `odp:/${root}`;
  }

  async scan({ isExcluded, signal }: ScanOptions): Promise<Tree> {
    const tree = new Tree();
    let folders: readonly string[] = [""];
    while (folders.length > 0) {
      const found = await mapLimited(folders, FILE_SYNC_AT_ONCE, (folder) =>
        this.#scanFolder(folder, { tree, isExcluded, signal }),
      );
      folders = found.flat();
    }
    return tree;
  }

  /** The entries of a folder as the controller lists them, sorted by name. */
  async list(path: string, signal: AbortSignal): Promise<readonly Listed[]> {
    const query = { type: "dir", ...this.#space };
    const at = this.#at(path);
    const message =
      at === ""
        ? await this.#client.call("getFs", { query }, { signal })
        : await this.#client.call("getFsByPath", { path: { path: at }, query }, { signal });
    if (!Array.isArray(message)) throw new AppError("internal", "The controller answered no list of a folder.");
    return (message as readonly Listed[]).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  digest({ path }: TreeEntry): Promise<Read> {
    return Promise.reject(new AppError("denied", `The controller tells no digest of ${path}.`));
  }

  refusal(path: string): string | undefined {
    return pathRefusal(this.#at(path));
  }

  isCaseSensitive(): Promise<boolean> {
    return Promise.resolve(true);
  }

  open(entry: TreeEntry, signal: AbortSignal): Promise<Source> {
    const begin = () =>
      this.#client.download(
        "getFsByPath",
        { path: { path: this.#at(entry.path) }, query: { type: "download", ...this.#space } },
        { signal },
      );
    return Promise.resolve(downloaded(entry, begin));
  }

  async write(
    path: string,
    source: Pick<Source, "whole" | "pieces">,
    { wanted, signal }: { readonly wanted: Wanted; readonly signal: AbortSignal },
  ): Promise<Written> {
    const content = source.whole ?? source.pieces();
    const { revision } = await this.#client.answer(
      "putFsByPath",
      { path: { path: this.#at(path) }, body: { ...this.#space, uploadfile: [{ name: "content", content }] } },
      { ...conditionOf(wanted), signal, timeoutMs: FILE_SYNC_TRANSFER_MS },
    );
    if (revision === undefined) throw new AppError("internal", "The controller answered no revision.");
    return { version: revision, isSettled: true };
  }

  async makeFolder(path: string, signal: AbortSignal): Promise<void> {
    const at = this.#at(path);
    if (at === "") return;
    await this.#client.call("putFsByPath", { path: { path: at }, body: { ...this.#space, type: "dir" } }, { signal });
  }

  async remove({ path, version }: TreeEntry, signal: AbortSignal): Promise<void> {
    await this.#remove(path, { wanted: { version }, signal });
  }

  /** `AppError("unsupported")` for a folder. */
  async removeFile(path: string, signal: AbortSignal): Promise<void> {
    await this.#client.call("deleteFsByPath", this.#named(path), { ifMatch: "*", signal });
  }

  async removeTree(path: string, signal: AbortSignal): Promise<void> {
    await this.#remove(path, { wanted: "any", signal });
  }

  async removeFolder({ path }: TreeEntry, signal: AbortSignal): Promise<boolean> {
    if ((await this.list(path, signal)).length > 0) return false;
    await this.#remove(path, { wanted: "any", signal });
    return true;
  }

  async #remove(
    path: string,
    { wanted, signal }: { readonly wanted: Wanted; readonly signal: AbortSignal },
  ): Promise<void> {
    await this.#client.call("deleteFsByPath", this.#named(path), { ...conditionOf(wanted), signal });
  }

  #named(path: string) {
    const isSystem = this.#space.issys === true;
    return { path: { path: this.#at(path) }, ...(isSystem && { query: { issys: true } }) };
  }

  /** Adds the entries of a folder, and returns the folders in it. */
  async #scanFolder(
    folder: string,
    { tree, isExcluded, signal }: Pick<ScanOptions, "isExcluded" | "signal"> & { readonly tree: Tree },
  ): Promise<readonly string[]> {
    const folders: string[] = [];
    for (const record of await this.#listed(folder, { tree, signal })) {
      const path = this.#pathOf(folder, record);
      if (path === undefined)
        tree.leaveOut(below(folder, record.name), "the controller told a name that is no name of a file");
      else if (isExcluded(keyOf(path))) continue;
      else if (record.isdir) {
        tree.add({ path, kind: "folder", size: 0, version: record.revision });
        folders.push(path);
      } else if (record.digest === undefined) tree.leaveOut(path, "rules hide its content");
      else tree.add({ path, kind: "file", size: record.size, version: record.revision, digest: record.digest });
    }
    return folders;
  }

  async #listed(
    folder: string,
    { tree, signal }: { readonly tree: Tree; readonly signal: AbortSignal },
  ): Promise<readonly Listed[]> {
    try {
      return await this.list(folder, signal);
    } catch (error) {
      if (folder === "" || !isAppError(error, "not_found", "invalid", "denied")) throw error;
      tree.leaveOut(folder, "it could not be listed; it may have been removed meanwhile");
      return [];
    }
  }

  /** The path of an entry below the root; `undefined` if it is not a name in that folder. */
  #pathOf(folder: string, { fullname, name }: Listed): string | undefined {
    const path = below(folder, name);
    const isInFolder = !name.includes("/") && fullname === `/${this.#at(path)}`;
    return isInFolder && pathRefusal(path) === undefined ? path : undefined;
  }

  #at(path: string): string {
    return path === "" ? this.#root : below(this.#root, path);
  }
}

/** The reason why a path leaves its folder, or is no path; `undefined` for a clean one. */
export function pathRefusal(path: string): string | undefined {
  try {
    return relativePath(path) === path ? undefined : "is not in its shortest form";
  } catch (error) {
    if (isAppError(error, "invalid")) return String(error.details?.["reason"] ?? error.message);
    throw error;
  }
}

/** `AppError("unavailable")` from `read` if the bytes are not those that the controller listed under that revision. */
function downloaded(entry: TreeEntry, begin: () => Promise<Download>): Source {
  const hash = createHash("sha256");
  let version = "";
  let isWhole = false;
  return {
    async *pieces() {
      const download = await begin();
      version = revisionIn(download.etag);
      for await (const piece of download) {
        hash.update(piece);
        yield piece;
      }
      isWhole = true;
    },
    digestOfAll: () => (isWhole ? hash.copy().digest("hex") : undefined),
    read() {
      const digest = hash.copy().digest("hex");
      if (version === entry.version && digest !== entry.digest)
        throw new AppError("unavailable", `${entry.path} arrived damaged.`);
      return { digest, version, isSettled: true };
    },
  };
}

function conditionOf(wanted: Wanted): { readonly ifMatch?: string; readonly ifNoneMatch?: "*" } {
  if (wanted === "any") return {};
  return wanted.version === undefined ? { ifNoneMatch: "*" } : { ifMatch: wanted.version };
}

function revisionIn(etag: string | undefined): string {
  const [, revision] = /^(?:W\/)?"(.*)"$/.exec(etag ?? "") ?? [];
  if (revision === undefined) throw new AppError("internal", "The controller answered no revision.");
  return revision;
}
