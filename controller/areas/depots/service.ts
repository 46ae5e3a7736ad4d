import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import {
  DEPOT_COMMAND_MAX_CHARS,
  DEPOT_DIFF_MAX_BYTES,
  DEPOT_FILES_MAX,
  DEPOT_REMARK_MAX_CHARS,
  DEPOT_TEXT_MAX_BYTES,
  DEPOT_VERSIONS_MAX,
} from "../../../common/limits.ts";
import { fileName, relativePath } from "../../../common/paths.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { DepotFile, DepotToDeploy } from "../hosts/index.ts";
import type { Objects } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { recordFilter, type RecordFilter } from "../query/index.ts";
import { DEPOT_PATH } from "./classes.ts";
import { textOf, unifiedDiff } from "./difference.ts";
import { DepotStore, type StoredVersion, type VersionEntry } from "./store.ts";
import type {
  DepotChange,
  DepotDescription,
  DepotDifference,
  DepotFileChange,
  DepotRecord,
  Depots,
  DepotSummary,
  DepotUpload,
} from "./types.ts";
import { looksExecutable, unpackUploads } from "./unpack.ts";
import { depotVersion } from "./version.ts";

export interface DepotDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "catalog">;
}

/** Brings a version's content under the marks of `owner` and notes each digest in `seen` as soon as it bears one. */
type Content = (owner: string, seen: string[]) => Promise<readonly DepotFile[]>;

export class DepotService implements Depots {
  readonly #store: DepotStore;
  readonly #runtime: Runtime;
  readonly #objects: DepotDependencies["objects"];
  readonly #checks: ((change: DepotChange) => Promise<void>)[] = [];
  readonly #listeners: ((change: DepotChange) => Promise<void>)[] = [];

  constructor(dependencies: DepotDependencies) {
    this.#store = new DepotStore(dependencies.stores);
    this.#runtime = dependencies.runtime;
    this.#objects = dependencies.objects;
  }

  beforeRemove(check: (change: DepotChange) => Promise<void>): void {
    this.#checks.push(check);
  }

  onReplaced(listener: (change: DepotChange) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** A new version. `AppError("conflict")` when it exists, also when another upload of it was faster. */
  async create(
    principal: Principal,
    description: DepotDescription,
    uploads: readonly DepotUpload[],
  ): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const checked = checkedDescription(description);
    if (uploads.length === 0) throw new AppError("invalid", "A new depot version needs at least one uploadfile.");
    const existing = await this.#store.list(principal.tenant, checked.name);
    await this.#refuseOutsideRule(principal, checked.name, existing);
    if (existing.some(({ stored }) => stored.version === checked.version)) throw exists(checked);
    if (existing.length >= DEPOT_VERSIONS_MAX)
      throw new AppError("too_large", `A depot has at most ${DEPOT_VERSIONS_MAX} versions.`);
    const stored = await this.#fill(principal, checked, undefined, this.#uploaded(principal, uploads));
    if (stored === undefined) throw exists(checked);
    return this.get(principal, checked.name, checked.version);
  }

  /**
   * Adds the version when it is not there. Without uploads its files stay; with uploads replacing them needs
   * `overwrite`.
   */
  async update(
    principal: Principal,
    description: DepotDescription,
    options: { readonly uploads: readonly DepotUpload[]; readonly overwrite: boolean },
  ): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const checked = checkedDescription(description);
    await this.#refuseOutsideRule(principal, checked.name, await this.#store.list(principal.tenant, checked.name));
    const existing = await this.#store.get(principal.tenant, checked.name, checked.version);
    if (existing === undefined) return this.create(principal, checked, options.uploads);
    if (options.uploads.length === 0) await this.#describe(principal, checked, existing);
    else if (!options.overwrite) throw exists(checked, "; overwrite=true replaces it");
    else await this.#replace(principal, checked, existing, options.uploads);
    return this.get(principal, checked.name, checked.version);
  }

  /** Changes remark, tags or command of the newest version; false when there is no such depot. */
  async edit(
    principal: Principal,
    name: string,
    change: (now: DepotSummary) => Partial<DepotDescription>,
  ): Promise<boolean> {
    requirePermission(principal, "depots:write");
    const versions = await this.#store.list(principal.tenant, fileName(name));
    const newest = versions.at(-1);
    if (newest === undefined) return false;
    const { version } = newest.stored;
    await this.#describe(
      principal,
      checkedDescription({ ...change(summary(principal, versions, newest)), name, version }),
      newest,
    );
    return true;
  }

  /** Those there are for the principal, without what is hidden from it. */
  async list(principal: Principal): Promise<readonly DepotSummary[]> {
    requirePermission(principal, "depots:read");
    const { sees, shown } = await this.#filter(principal);
    return (await this.all(principal)).filter((depot) => sees(depot)).map(shown);
  }

  /** For the class of depots, over which the rules for rows and columns are laid where it is queried. */
  async all(principal: Principal): Promise<readonly DepotSummary[]> {
    requirePermission(principal, "depots:read");
    const byName = new Map<string, VersionEntry[]>();
    for (const entry of await this.#store.list(principal.tenant)) {
      const versions = byName.get(entry.stored.name);
      if (versions) versions.push(entry);
      else byName.set(entry.stored.name, [entry]);
    }
    const names = [...byName.keys()].sort();
    return names.map((name) => summary(principal, byName.get(name) ?? [], undefined));
  }

  async get(principal: Principal, name: string, version?: string): Promise<DepotRecord> {
    requirePermission(principal, "depots:read");
    const versions = await this.#visible(principal, name);
    const entry = chosen(versions, name, version);
    const files = await this.#store.manifest(principal.tenant, entry.stored);
    return (await this.#filter(principal)).shown({ ...summary(principal, versions, entry), files: [...files] });
  }

  async exists(principal: Principal, name: string, version?: string): Promise<boolean> {
    requirePermission(principal, "depots:read");
    const versions = await this.#visible(principal, name);
    return versions.some(({ stored }) => version === undefined || stored.version === version);
  }

  /** One version, or all of them; answers how many there were. */
  async remove(principal: Principal, name: string, version?: string): Promise<number> {
    requirePermission(principal, "depots:write");
    const versions = await this.#visible(principal, name);
    const doomed = version === undefined ? versions : [chosen(versions, name, version)];
    if (doomed.length === 0) throw unknownDepot(name, version);
    for (const { stored } of doomed) await this.#askChecks(principal, stored);
    for (const entry of doomed) {
      const digests = await this.#digests(principal.tenant, entry.stored);
      if (!(await this.#store.remove(principal.tenant, entry))) throw changedMeanwhile(entry.stored);
      await this.#store.release(principal.tenant, entry.stored.owner, digests);
    }
    return doomed.length;
  }

  /** The content of a text file. */
  async readFile(principal: Principal, name: string, version: string | undefined, filepath: string): Promise<string> {
    requirePermission(principal, "depots:read");
    const entry = await this.#findVisible(principal, name, version);
    const file = fileOf(await this.#store.manifest(principal.tenant, entry.stored), filepath, entry.stored);
    if (file.size > DEPOT_TEXT_MAX_BYTES) {
      throw new AppError(
        "too_large",
        `${file.path} has ${file.size} bytes; at most ${DEPOT_TEXT_MAX_BYTES} can be shown.`,
      );
    }
    const text = textOf(await this.#store.content(principal.tenant, file.digest));
    if (text === undefined) throw new AppError("invalid", `${file.path} is a binary file and cannot be shown as text.`);
    return text;
  }

  /** Makes `newVersion` from `version` with one file modified, added or deleted. */
  async changeFile(principal: Principal, change: DepotFileChange): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const source = await this.#findVisible(principal, change.name, change.version);
    const { remark, tags, command } = source.stored;
    const description = checkedDescription({
      name: change.name,
      version: change.newVersion,
      command,
      remark: change.remark ?? remark,
      tags: change.tags ?? tags,
    });
    if (await this.exists(principal, change.name, change.newVersion)) throw exists(description);
    const before = await this.#store.manifest(principal.tenant, source.stored);
    const stored = await this.#fill(principal, description, undefined, this.#changed(principal, change, before));
    if (stored === undefined) throw exists(description);
    return this.get(principal, description.name, description.version);
  }

  /** From `version` to `compareVersion`, by path. */
  async diff(
    principal: Principal,
    name: string,
    version: string,
    compareVersion: string,
  ): Promise<readonly DepotDifference[]> {
    requirePermission(principal, "depots:read");
    const [from, to] = [
      await this.#files(principal, name, version),
      await this.#files(principal, name, compareVersion),
    ];
    const paths = [...new Set([...from.keys(), ...to.keys()])].sort();
    const budget = { left: DEPOT_DIFF_MAX_BYTES };
    const differences: DepotDifference[] = [];
    for (const path of paths) {
      const [before, after] = [from.get(path), to.get(path)];
      if (before?.digest === after?.digest && before?.executable === after?.executable) continue;
      differences.push(await this.#difference(principal.tenant, path, { before, after, budget }));
    }
    return differences;
  }

  async toDeploy(principal: Principal, name: string, version?: string): Promise<DepotToDeploy> {
    requireOneOf(principal, ["depots:run", "policies:run", "policies:write"]);
    const { stored } = await this.#findVisible(principal, name, version);
    const files = await this.#store.manifest(principal.tenant, stored);
    return {
      name: stored.name,
      version: stored.version,
      files,
      ...(stored.command === "" ? {} : { command: stored.command }),
    };
  }

  /** Versions of the depot; none when it does not exist for the principal. */
  async #visible(principal: Principal, name: string): Promise<readonly VersionEntry[]> {
    const versions = await this.#store.list(principal.tenant, fileName(name));
    if (versions.length === 0) return [];
    return (await this.#filter(principal)).sees(summary(principal, versions, undefined)) ? versions : [];
  }

  async #findVisible(principal: Principal, name: string, version: string | undefined): Promise<VersionEntry> {
    const versions = await this.#visible(principal, name);
    if (versions.length === 0) throw unknownDepot(name, version);
    return chosen(versions, name, version === undefined ? undefined : depotVersion(version));
  }

  #filter(principal: Principal): Promise<RecordFilter> {
    return recordFilter(principal, this.#objects, `${principal.ospace}${DEPOT_PATH}`);
  }

  /** The caller must be able to see the version he adds to or replaces. */
  async #refuseOutsideRule(principal: Principal, name: string, versions: readonly VersionEntry[]): Promise<void> {
    if (versions.length === 0 || (await this.#filter(principal)).sees(summary(principal, versions, undefined))) return;
    throw new AppError("denied", `The depot ${name} is not among the depots that this user may change.`);
  }

  async #files(principal: Principal, name: string, version: string): Promise<ReadonlyMap<string, DepotFile>> {
    const entry = await this.#findVisible(principal, name, version);
    const files = await this.#store.manifest(principal.tenant, entry.stored);
    return new Map(files.map((file) => [file.path, file]));
  }

  #uploaded(principal: Principal, uploads: readonly DepotUpload[]): Content {
    return (owner, seen) =>
      unpackUploads(uploads, async (bytes) => {
        const info = await this.#store.saveContent(principal.tenant, owner, bytes);
        seen.push(info.digest);
        return info;
      });
  }

  #changed(principal: Principal, change: DepotFileChange, before: readonly DepotFile[]): Content {
    return async (owner, seen) => {
      const files = new Map(before.map((file) => [file.path, file]));
      const path = relativePath(change.filepath);
      const old = files.get(path);
      refuseOddChange(change, path, old, files);
      if (change.type === "D") files.delete(path);
      else {
        const bytes = Buffer.from(change.content ?? "", "utf8");
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
   * Writes content first and the record last; a failure before that removes its marks. Absent when another writer was
   * faster.
   */
  async #fill(
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
    };
  }

  async #replace(
    principal: Principal,
    description: DepotDescription,
    existing: VersionEntry,
    uploads: readonly DepotUpload[],
  ): Promise<void> {
    const old = await this.#digests(principal.tenant, existing.stored);
    const stored = await this.#fill(principal, description, existing, this.#uploaded(principal, uploads));
    if (stored === undefined) throw changedMeanwhile(existing.stored);
    await this.#store.release(principal.tenant, existing.stored.owner, old);
    await this.#tellReplaced(principal, stored);
  }

  /** Remark, tags and command over the same files. */
  async #describe(principal: Principal, description: DepotDescription, existing: VersionEntry): Promise<void> {
    const { stored } = existing;
    const next: StoredVersion = {
      ...stored,
      remark: description.remark ?? stored.remark,
      tags: description.tags ?? stored.tags,
      command: description.command ?? stored.command,
    };
    if (!(await this.#store.put(principal.tenant, next, existing.revision))) throw changedMeanwhile(stored);
    if (next.command !== stored.command) await this.#tellReplaced(principal, next);
  }

  async #difference(
    tenant: string,
    path: string,
    {
      before,
      after,
      budget,
    }: { before: DepotFile | undefined; after: DepotFile | undefined; budget: { left: number } },
  ): Promise<DepotDifference> {
    const change = before === undefined ? "added" : after === undefined ? "removed" : "modified";
    const size = (before?.size ?? 0) + (after?.size ?? 0);
    if (size > budget.left) return { path, change, binary: false };
    budget.left -= size;
    const [old, now] = [await this.#text(tenant, before), await this.#text(tenant, after)];
    if (old === undefined || now === undefined) return { path, change, binary: true };
    const diff = unifiedDiff(path, old, now);
    return { path, change, binary: false, ...(diff === undefined ? {} : { diff }) };
  }

  async #text(tenant: string, file: DepotFile | undefined): Promise<string | undefined> {
    return file === undefined ? "" : textOf(await this.#store.content(tenant, file.digest));
  }

  async #digests(tenant: string, stored: StoredVersion): Promise<readonly string[]> {
    const files = await this.#store.manifest(tenant, stored);
    return [stored.manifest, ...files.map((file) => file.digest)];
  }

  async #askChecks({ tenant }: Principal, { name, version }: StoredVersion): Promise<void> {
    for (const check of this.#checks) await check({ tenant, name, version });
  }

  async #tellReplaced({ tenant }: Principal, { name, version }: StoredVersion): Promise<void> {
    for (const listener of this.#listeners) await listener({ tenant, name, version });
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function checkedDescription(description: DepotDescription): DepotDescription {
  if ((description.command ?? "").length > DEPOT_COMMAND_MAX_CHARS) {
    throw new AppError("too_large", `A depot's command has at most ${DEPOT_COMMAND_MAX_CHARS} characters.`);
  }
  if ((description.remark ?? "").length > DEPOT_REMARK_MAX_CHARS) {
    throw new AppError("too_large", `A depot's remark has at most ${DEPOT_REMARK_MAX_CHARS} characters.`);
  }
  const tags = description.tags && { tags: [...new Set(description.tags)] };
  return { ...description, ...tags, name: fileName(description.name), version: depotVersion(description.version) };
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

function fileOf(files: readonly DepotFile[], filepath: string, stored: StoredVersion): DepotFile {
  const path = relativePath(filepath);
  const file = files.find((each) => each.path === path);
  if (file) return file;
  throw new AppError("not_found", `${stored.name} ${stored.version} has no file ${path}.`);
}

function chosen(versions: readonly VersionEntry[], name: string, version: string | undefined): VersionEntry {
  const entry = version === undefined ? versions.at(-1) : versions.find(({ stored }) => stored.version === version);
  if (entry === undefined) throw unknownDepot(name, version);
  return entry;
}

function summary(principal: Principal, versions: readonly VersionEntry[], one: VersionEntry | undefined): DepotSummary {
  const entry = one ?? versions.at(-1);
  if (entry === undefined) throw new AppError("internal", "A depot has no version.");
  const { name, version, remark, tags, command, filecount, size, createdMs, creator } = entry.stored;
  return {
    id: `depot:${name}`,
    class: `${principal.ospace}${DEPOT_PATH}`,
    name,
    version,
    remark,
    tags: [...tags],
    command,
    filecount,
    size,
    creator,
    versions: versions.map(({ stored }) => stored.version),
    status: "ok",
    created: createdMs,
  };
}

function exists({ name, version }: DepotDescription, hint = ""): AppError {
  return new AppError("conflict", `The depot ${name} has a version ${version} already${hint}.`);
}

function unknownDepot(name: string, version: string | undefined): AppError {
  return new AppError(
    "not_found",
    `There is no depot ${name}${version === undefined ? "" : ` with version ${version}`}.`,
  );
}

function changedMeanwhile({ name, version }: StoredVersion): AppError {
  return new AppError("conflict", `The depot ${name} ${version} was changed by somebody else meanwhile; try again.`);
}
