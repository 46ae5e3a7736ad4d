import { AppError } from "../../../common/errors.ts";
import { DEPOT_TEXT_MAX_BYTES, DEPOT_VERSIONS_MAX } from "../../../common/limits.ts";
import { fileName } from "../../../common/paths.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { DepotFile, DepotToDeploy } from "../hosts/index.ts";
import type { Objects, TenantRoom } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { VersionContent } from "./content.ts";
import { differencesOf, textOf } from "./difference.ts";
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
import { VisibleDepots } from "./visible.ts";
import { changedMeanwhile, checkedDescription, chosen, exists, fileOf, summary, unknownDepot } from "./descriptions.ts";

export interface DepotDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "visible">;
  /** Absent: tenants have no quota. */
  readonly room?: TenantRoom;
}

export class DepotService implements Depots {
  readonly #store: DepotStore;
  readonly #content: VersionContent;
  readonly #visible: VisibleDepots;
  readonly #checks: ((change: DepotChange) => Promise<void>)[] = [];
  readonly #listeners: ((change: DepotChange) => Promise<void>)[] = [];

  constructor(dependencies: DepotDependencies) {
    this.#store = new DepotStore(dependencies.stores, dependencies.room);
    this.#content = new VersionContent({ store: this.#store, runtime: dependencies.runtime });
    this.#visible = new VisibleDepots({ store: this.#store, objects: dependencies.objects });
  }

  beforeRemove(check: (change: DepotChange) => Promise<void>): void {
    this.#checks.push(check);
  }

  onReplaced(listener: (change: DepotChange) => Promise<void>): void {
    this.#listeners.push(listener);
  }

  /** Creates a version. `AppError("conflict")` when it exists, also when another upload of it was faster. */
  async create(
    principal: Principal,
    description: DepotDescription,
    uploads: readonly DepotUpload[],
  ): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const checked = checkedDescription(description);
    if (uploads.length === 0) throw new AppError("invalid", "A new depot version needs at least one uploadfile.");
    const existing = await this.#store.list(principal.tenant, checked.name);
    await this.#visible.requireChangeable(principal, checked.name, existing);
    if (existing.some(({ stored }) => stored.version === checked.version)) throw exists(checked);
    if (existing.length >= DEPOT_VERSIONS_MAX)
      throw new AppError("too_large", `A depot has at most ${DEPOT_VERSIONS_MAX} versions.`);
    const stored = await this.#content.fill(principal, checked, undefined, this.#content.uploaded(principal, uploads));
    if (stored === undefined) throw exists(checked);
    return this.get(principal, checked.name, checked.version);
  }

  /**
   * Adds the version if it does not exist. Without uploads, its files stay. With uploads, replacing its files requires
   * `overwrite`.
   */
  async update(
    principal: Principal,
    description: DepotDescription,
    options: { readonly uploads: readonly DepotUpload[]; readonly overwrite: boolean },
  ): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const checked = checkedDescription(description);
    const versions = await this.#store.list(principal.tenant, checked.name);
    await this.#visible.requireChangeable(principal, checked.name, versions);
    const existing = await this.#store.get(principal.tenant, checked.name, checked.version);
    if (existing === undefined) return this.create(principal, checked, options.uploads);
    if (options.uploads.length === 0) await this.#describe(principal, checked, existing);
    else if (!options.overwrite) throw exists(checked, "; overwrite=true replaces it");
    else await this.#replace(principal, checked, existing, options.uploads);
    return this.get(principal, checked.name, checked.version);
  }

  /** Changes remark, tags or command of the newest version. Returns false if there is no such depot. */
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

  /** Depots that the principal may see, without columns that are hidden from it. */
  async list(principal: Principal): Promise<readonly DepotSummary[]> {
    requirePermission(principal, "depots:read");
    const { sees, shown } = await this.#visible.filter(principal);
    return (await this.all(principal)).filter((depot) => sees(depot)).map(shown);
  }

  /** All depots, for their class. The query area applies the rules for rows and columns. */
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
    const versions = await this.#visible.versions(principal, name);
    const entry = chosen(versions, name, version);
    const files = await this.#store.manifest(principal.tenant, entry.stored);
    return (await this.#visible.filter(principal)).shown({ ...summary(principal, versions, entry), files: [...files] });
  }

  async exists(principal: Principal, name: string, version?: string): Promise<boolean> {
    requirePermission(principal, "depots:read");
    const versions = await this.#visible.versions(principal, name);
    return versions.some(({ stored }) => version === undefined || stored.version === version);
  }

  /** Removes one version, or all of them; returns the number of removed versions. */
  async remove(principal: Principal, name: string, version?: string): Promise<number> {
    requirePermission(principal, "depots:write");
    const versions = await this.#visible.versions(principal, name);
    const doomed = version === undefined ? versions : [chosen(versions, name, version)];
    if (doomed.length === 0) throw unknownDepot(name, version);
    for (const { stored } of doomed) await this.#askChecks(principal, stored);
    for (const entry of doomed) {
      const digests = await this.#store.digests(principal.tenant, entry.stored);
      if (!(await this.#store.remove(principal.tenant, entry))) throw changedMeanwhile(entry.stored);
      await this.#store.release(principal.tenant, entry.stored.owner, digests);
    }
    return doomed.length;
  }

  /** The content of a text file. */
  async readFile(principal: Principal, name: string, version: string | undefined, filepath: string): Promise<string> {
    requirePermission(principal, "depots:read");
    const entry = await this.#visible.version(principal, name, version);
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
    const source = await this.#visible.version(principal, change.name, change.version);
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
    const stored = await this.#content.fill(
      principal,
      description,
      undefined,
      this.#content.changed(principal, change, before),
    );
    if (stored === undefined) throw exists(description);
    return this.get(principal, description.name, description.version);
  }

  /** Differences from `version` to `compareVersion`, by path. */
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
    return differencesOf(from, to, ({ digest }) => this.#store.content(principal.tenant, digest));
  }

  async toDeploy(principal: Principal, name: string, version?: string): Promise<DepotToDeploy> {
    requireOneOf(principal, ["depots:run", "policies:run", "policies:write"]);
    const { stored } = await this.#visible.version(principal, name, version);
    const files = await this.#store.manifest(principal.tenant, stored);
    return {
      name: stored.name,
      version: stored.version,
      files,
      ...(stored.command === "" ? {} : { command: stored.command }),
    };
  }

  async #files(principal: Principal, name: string, version: string): Promise<ReadonlyMap<string, DepotFile>> {
    const entry = await this.#visible.version(principal, name, version);
    const files = await this.#store.manifest(principal.tenant, entry.stored);
    return new Map(files.map((file) => [file.path, file]));
  }

  async #replace(
    principal: Principal,
    description: DepotDescription,
    existing: VersionEntry,
    uploads: readonly DepotUpload[],
  ): Promise<void> {
    const old = await this.#store.digests(principal.tenant, existing.stored);
    const stored = await this.#content.fill(
      principal,
      description,
      existing,
      this.#content.uploaded(principal, uploads),
    );
    if (stored === undefined) throw changedMeanwhile(existing.stored);
    await this.#store.release(principal.tenant, existing.stored.owner, old);
    await this.#tellReplaced(principal, stored);
  }

  /** Changes remark, tags and command; the files stay. */
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

  async #askChecks({ tenant }: Principal, { name, version }: StoredVersion): Promise<void> {
    for (const check of this.#checks) await check({ tenant, name, version });
  }

  async #tellReplaced({ tenant }: Principal, { name, version }: StoredVersion): Promise<void> {
    for (const listener of this.#listeners) await listener({ tenant, name, version });
  }
}
