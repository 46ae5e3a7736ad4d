import { AppError } from "../../../common/errors.ts";
import { DEPOT_VERSIONS_MAX } from "../../../common/limits.ts";
import { fileName } from "../../../common/paths.ts";
import { newStamp, requireExpected, type Expected } from "../../../common/revisions.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { DepotToDeploy } from "../hosts/index.ts";
import type { Objects, TenantRoom } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { VersionContent } from "./content.ts";
import { differencesOf, shownText } from "./difference.ts";
import { DepotStore, type StoredVersion, type VersionEntry } from "./store.ts";
import type {
  DepotDescription,
  DepotDifference,
  DepotFileChange,
  DepotRecord,
  Depots,
  DepotSummary,
  DepotUpload,
} from "./types.ts";
import { DepotUsers } from "./users.ts";
import { VisibleDepots } from "./visible.ts";
import {
  changedMeanwhile,
  checkedDescription,
  chosen,
  exists,
  fileOf,
  named,
  summary,
  unknownDepot,
} from "./descriptions.ts";

export interface DepotDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "visible">;
  /** Absent: tenants have no quota. */
  readonly room?: TenantRoom;
}

interface DepotReplacement {
  readonly uploads: readonly DepotUpload[];
  readonly overwrite: boolean;
  readonly expected?: Expected | undefined;
}

interface DepotRemoval {
  /** Absent: all versions. */
  readonly version?: string | undefined;
  readonly expected?: Expected | undefined;
  /** True: also versions that are in use. */
  readonly force?: boolean | undefined;
}

export class DepotService implements Depots {
  readonly #store: DepotStore;
  readonly #runtime: Runtime;
  readonly #content: VersionContent;
  readonly #visible: VisibleDepots;
  readonly users = new DepotUsers();

  constructor(dependencies: DepotDependencies) {
    this.#store = new DepotStore(dependencies.stores, dependencies.room);
    this.#runtime = dependencies.runtime;
    this.#content = new VersionContent({ store: this.#store, runtime: dependencies.runtime });
    this.#visible = new VisibleDepots({ store: this.#store, objects: dependencies.objects });
  }

  /** Creates a version. `AppError("conflict")` when it exists, also when another upload of it was faster. */
  async create(
    principal: Principal,
    description: DepotDescription,
    uploads: readonly DepotUpload[],
    expected?: Expected,
  ): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const checked = checkedDescription(description);
    if (uploads.length === 0) throw new AppError("invalid", "A new depot version needs at least one uploadfile.");
    const existing = await this.#store.list(principal.tenant, checked.name);
    await this.#visible.requireChangeable(principal, checked.name, existing);
    const same = existing.find(({ stored }) => stored.version === checked.version);
    requireExpected(expected, named(checked), same?.stored);
    if (same !== undefined) throw exists(checked);
    if (existing.length >= DEPOT_VERSIONS_MAX)
      throw new AppError("too_large", `A depot has at most ${DEPOT_VERSIONS_MAX} versions.`);
    const stored = await this.#content.fill(principal, checked, undefined, this.#content.uploaded(principal, uploads));
    if (stored === undefined) throw await this.#lostRace(principal, { of: checked, expected }, exists(checked));
    return this.get(principal, checked.name, checked.version);
  }

  /**
   * Adds the version if it does not exist. Without uploads, its files stay. With uploads, replacing its files requires
   * `overwrite`.
   */
  async update(principal: Principal, description: DepotDescription, options: DepotReplacement): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const checked = checkedDescription(description);
    const versions = await this.#store.list(principal.tenant, checked.name);
    await this.#visible.requireChangeable(principal, checked.name, versions);
    const existing = await this.#store.get(principal.tenant, checked.name, checked.version);
    const { uploads, overwrite, expected } = options;
    requireExpected(expected, named(checked), existing?.stored);
    if (existing === undefined) return this.create(principal, checked, uploads, expected);
    if (uploads.length > 0 && !overwrite) throw exists(checked, "; overwrite=true replaces it");
    const isMade =
      uploads.length === 0
        ? await this.#describe(principal, checked, existing)
        : await this.#replace(principal, checked, existing, uploads);
    if (!isMade) throw await this.#lostRace(principal, { of: checked, expected }, changedMeanwhile(existing.stored));
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
    const next = checkedDescription({ ...change(summary(principal, versions, newest)), name, version });
    if (!(await this.#describe(principal, next, newest))) throw changedMeanwhile(newest.stored);
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

  /**
   * True if the controllers store a version of the depot. `AppError("not_found")` if they do and the principal may not
   * see it.
   */
  async isStored(principal: Principal, name: string): Promise<boolean> {
    requirePermission(principal, "depots:run");
    if ((await this.#visible.versions(principal, name)).length > 0) return true;
    if ((await this.#store.list(principal.tenant, fileName(name))).length > 0) throw unknownDepot(name, undefined);
    return false;
  }

  /**
   * Removes one version, or all of them; returns the number of removed versions. The revision of a depot is that of its
   * newest version. `AppError("conflict")` for a version that is in use, unless `force` is true.
   */
  async remove(principal: Principal, name: string, which: DepotRemoval = {}): Promise<number> {
    requirePermission(principal, "depots:write");
    const { version, expected, force = false } = which;
    const versions = await this.#visible.versions(principal, name);
    const doomed = version === undefined ? versions : [chosen(versions, name, version)];
    const newest = doomed.at(-1);
    if (newest === undefined) throw unknownDepot(name, version);
    requireExpected(expected, named(newest.stored), newest.stored);
    if (!force) for (const { stored } of doomed) await this.users.refuseDeletion({ ...stored, principal });
    for (const entry of doomed) {
      const digests = await this.#store.digests(principal.tenant, entry.stored);
      if (!(await this.#store.remove(principal.tenant, entry)))
        throw await this.#lostRace(principal, { of: entry.stored, expected }, changedMeanwhile(entry.stored));
      await this.#store.release(principal.tenant, entry.stored.owner, digests);
    }
    return doomed.length;
  }

  /** The content of a text file. */
  async readFile(principal: Principal, name: string, version: string | undefined, filepath: string): Promise<string> {
    requirePermission(principal, "depots:read");
    const entry = await this.#visible.version(principal, name, version);
    const file = fileOf(await this.#store.manifest(principal.tenant, entry.stored), filepath, entry.stored);
    return shownText(file, ({ digest }) => this.#store.content(principal.tenant, digest));
  }

  /** Makes `newVersion` from `version` with one file modified, added or deleted. */
  async changeFile(principal: Principal, change: DepotFileChange, expected?: Expected): Promise<DepotRecord> {
    requirePermission(principal, "depots:write");
    const source = await this.#visible.version(principal, change.name, change.version);
    requireExpected(expected, named(source.stored), source.stored);
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
    const content = this.#content.changed(principal, change, before);
    const stored = await this.#content.fill(principal, description, undefined, content);
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
      await this.#visible.files(principal, name, version),
      await this.#visible.files(principal, name, compareVersion),
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

  /** Replaces the files. False if another write came first. */
  async #replace(
    principal: Principal,
    description: DepotDescription,
    existing: VersionEntry,
    uploads: readonly DepotUpload[],
  ): Promise<boolean> {
    const old = await this.#store.digests(principal.tenant, existing.stored);
    const stored = await this.#content.fill(
      principal,
      description,
      existing,
      this.#content.uploaded(principal, uploads),
    );
    if (stored === undefined) return false;
    await this.#store.release(principal.tenant, existing.stored.owner, old);
    await this.#tellReplaced(principal, stored);
    return true;
  }

  /** Changes remark, tags and command; the files stay. False if another write came first. */
  async #describe(principal: Principal, description: DepotDescription, existing: VersionEntry): Promise<boolean> {
    const { stored } = existing;
    const next: StoredVersion = {
      ...stored,
      remark: description.remark ?? stored.remark,
      tags: description.tags ?? stored.tags,
      command: description.command ?? stored.command,
      stamp: newStamp(principal.user, this.#runtime),
    };
    if (!(await this.#store.put(principal.tenant, next, existing.revision))) return false;
    if (next.command !== stored.command) await this.#tellReplaced(principal, next);
    return true;
  }

  /** The error of a lost race: `stale` if the version is no longer as the caller expects it. */
  async #lostRace(
    { tenant }: Principal,
    { of, expected }: { readonly of: DepotDescription; readonly expected: Expected | undefined },
    otherwise: AppError,
  ): Promise<AppError> {
    if (expected === undefined) return otherwise;
    requireExpected(expected, named(of), (await this.#store.get(tenant, of.name, of.version))?.stored);
    return otherwise;
  }

  async #tellReplaced({ tenant }: Principal, { name, version }: StoredVersion): Promise<void> {
    await this.users.replaced({ tenant, name, version });
  }
}
