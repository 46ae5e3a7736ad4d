import { AppError } from "../../../../common/errors.ts";
import { FILE_VERSION_NAME_MAX_BYTES, FILE_VERSIONS_PAGE_MAX } from "../../../../common/limits.ts";
import { fileName } from "../../../../common/paths.ts";
import { unknownName } from "../../../../common/text/nearest.ts";
import type { Stores } from "../../../store/engine.ts";
import { requirePermission, type DataRule, type Principal } from "../../permissions/index.ts";
import type { AskedWork, Carrying } from "../carrying.ts";
import type { FileEntry } from "../entries.ts";
import { LocalFiles, requireKeyspace } from "../local/local-files.ts";
import { placeBelowRoot, type FileName, type Place } from "../names.ts";
import { openPlace } from "../open-places.ts";
import type { HidingGuard } from "../hiding.ts";
import type { FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";
import type { KeptTreeProgress } from "../work-journal.ts";
import { KeptEntries } from "./kept-entries.ts";
import { KeptTrees, snapshotKey, versionKey, type StoredTree } from "./records.ts";
import { TreeRights } from "./rights.ts";

/** A version as callers see it. */
export interface FileVersion {
  readonly name: string;
  /** User who kept it. */
  readonly user: string;
  readonly timeMs: number;
  /** Files and folders, the root included. Absent if rules hide some entries or columns from the caller. */
  readonly entries?: number;
  /** Bytes of all contents. Absent like `entries`. */
  readonly bytes?: number;
}

interface Dependencies {
  readonly stores: Stores;
  readonly store: FileStore;
  readonly hiding: HidingGuard;
  readonly carrying: Carrying;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

/** Versions of file trees, and snapshots of them for `/local`. */
export class FileVersions {
  readonly local: LocalFiles;
  readonly #with: Dependencies;
  readonly #trees: KeptTrees;
  readonly #entries: KeptEntries;
  readonly #rights: TreeRights;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
    this.#trees = new KeptTrees(dependencies.stores);
    this.#entries = new KeptEntries(dependencies.stores);
    this.#rights = new TreeRights({ ...dependencies, trees: this.#trees, entries: this.#entries });
    this.local = new LocalFiles({ ...dependencies, trees: this.#trees, entries: this.#entries });
  }

  /**
   * Keeps the file or folder with everything below it as a version. A version of that name is replaced as a whole.
   * Returns the number of files whose content differs from that version, files on one side only included.
   * `AppError("denied")` unless the principal sees all of every entry.
   */
  async push(principal: Principal, name: FileName, version: string): Promise<number> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    return this.#keep(principal, place, { key: versionKey(place, versionName(version)), name: version });
  }

  /** Keeps the file or folder as the snapshot that `/local` serves. It replaces the snapshots of paths below it. */
  async snapshot(principal: Principal, name: FileName): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    await this.#keep(principal, place, { key: snapshotKey(place) });
  }

  /**
   * Makes the file or folder equal to the version, and removes what the version lacks. Returns the number of files
   * whose content differed. `AppError("not_found")` for an unknown version, `denied` unless the principal may write
   * every entry.
   */
  async pull(principal: Principal, name: FileName, version: string): Promise<number> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const { key, visibility } = await this.#version(principal, place, version);
    return this.#carry(principal, visibility, { kind: "restore", place, kept: { key, name: version } });
  }

  /** Versions of a path in the order of their names, page by page, behind the name `after`. */
  async list(
    principal: Principal,
    name: FileName,
    { after, limit }: { readonly after?: string | undefined; readonly limit: number },
  ): Promise<{ readonly versions: readonly FileVersion[]; readonly next?: string }> {
    requirePermission(principal, "files:read");
    const place = openPlace(principal, placeBelowRoot(name));
    const page = { limit: Math.min(limit, FILE_VERSIONS_PAGE_MAX), ...(after !== undefined && { after }) };
    const { trees, next } = await this.#trees.versions(principal.tenant, place, page);
    const visibility = await this.#with.visibilityOf(principal);
    const versions: FileVersion[] = [];
    for (const tree of trees)
      if (await this.#isShown(principal, tree, visibility)) versions.push(shown(tree, visibility));
    if (versions.length === 0 && next === undefined && after === undefined) await this.#seen(principal, place);
    return { versions, ...(next !== undefined && { next }) };
  }

  /** Deletes a version. Its contents stay as long as files or other versions have them. */
  async remove(principal: Principal, name: FileName, version: string): Promise<void> {
    requirePermission(principal, "files:write");
    const place = openPlace(principal, placeBelowRoot(name));
    const { key, visibility } = await this.#version(principal, place, version);
    await this.#carry(principal, visibility, { kind: "release", place, kept: { key, name: version } });
  }

  /** Removes the snapshot of exactly this path. */
  async removeSnapshot(principal: Principal, keyspace: string, name: FileName): Promise<void> {
    requirePermission(principal, "files:write");
    requireKeyspace(principal, keyspace);
    const place = openPlace(principal, placeBelowRoot(name));
    const key = snapshotKey(place);
    const tree = await this.#trees.get(principal.tenant, key);
    const visibility = await this.#with.visibilityOf(principal);
    if (!tree || !(await this.#isShown(principal, tree, visibility)))
      throw new AppError("not_found", `There is no snapshot of ${place.fullname}.`);
    await this.#carry(principal, visibility, { kind: "release", place, kept: { key } });
  }

  async #keep(principal: Principal, place: Place, kept: { key: string; name?: string }): Promise<number> {
    await this.#seen(principal, place);
    const visibility = await this.#with.visibilityOf(principal);
    await this.#rights.requireSeeing({ principal, visibility }, place);
    return this.#carry(principal, visibility, { kind: "keep", place, kept });
  }

  /** Runs the work, if the principal may do it. Returns the number of changed files. */
  async #carry(
    principal: Principal,
    visibility: FileVisibility,
    asked: AskedWork & { readonly kept: KeptTreeProgress },
  ): Promise<number> {
    const { carrying } = this.#with;
    const work = carrying.newWork(principal, visibility, asked);
    const { kind, hidesNothing } = work;
    await this.#rights.require({ principal, visibility, hidesNothing }, { ...asked.kept, kind, root: asked.place });
    return (await carrying.carry(work)).changed ?? 0;
  }

  /** `AppError("not_found")` if there is no such version that the principal may see. */
  async #version(principal: Principal, place: Place, name: string) {
    const { tenant } = principal;
    const key = versionKey(place, versionName(name));
    const tree = await this.#trees.get(tenant, key);
    const visibility = await this.#with.visibilityOf(principal);
    if (tree && (await this.#isShown(principal, tree, visibility))) return { key, visibility };
    const isRuled = visibility.rules !== undefined;
    const { trees } = await this.#trees.versions(tenant, place, { limit: FILE_VERSIONS_PAGE_MAX });
    const among = isRuled ? [] : trees.flatMap((one) => one.name ?? []);
    throw unknownName(`There is no version ${name} of ${place.fullname}.`, { name, among });
  }

  /** True if the principal may see the root of the kept tree. */
  async #isShown(principal: Principal, tree: StoredTree, visibility: FileVisibility): Promise<boolean> {
    if (visibility.rules === undefined) return true;
    const root = await this.#entries.root(principal, tree);
    return root !== undefined && visibility.shown(root) !== undefined;
  }

  async #seen(principal: Principal, place: Place): Promise<FileEntry> {
    const entry = await this.#with.store.find(principal, place);
    const seen = entry && (await this.#with.visibilityOf(principal)).shown(entry);
    if (!seen) throw new AppError("not_found", `There is no file or folder ${place.fullname}.`);
    return seen;
  }
}

function shown({ name = "", user, timeMs, entries, bytes }: StoredTree, { rules }: FileVisibility): FileVersion {
  return { name, user, timeMs, ...((rules === undefined || rules.some(opensAll)) && { entries, bytes }) };
}

/** True if the rule alone shows all columns of every entry. */
function opensAll({ access, where, hidden = [], shown: only, anywhere = [], rowsOnly }: DataRule): boolean {
  const isNarrowed = where !== undefined || hidden.length > 0 || only !== undefined || anywhere.length > 0 || rowsOnly;
  return access !== "none" && !isNarrowed;
}

/** `AppError("invalid")` for a name that is no plain name, as of a file, or is too long. */
function versionName(name: string): string {
  if (Buffer.byteLength(name) > FILE_VERSION_NAME_MAX_BYTES)
    throw new AppError("invalid", `The name of a version has at most ${FILE_VERSION_NAME_MAX_BYTES} bytes.`);
  return fileName(name);
}
