import { AppError } from "../../../common/errors.ts";
import { fileName } from "../../../common/paths.ts";
import type { DepotFile } from "../hosts/index.ts";
import type { Objects, VisibleRecords } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { DEPOT_PATH } from "./classes.ts";
import { chosen, summary, unknownDepot } from "./descriptions.ts";
import type { DepotStore, VersionEntry } from "./store.ts";
import { depotVersion } from "./version.ts";

interface Dependencies {
  readonly store: Pick<DepotStore, "list" | "manifest">;
  readonly objects: Pick<Objects, "visible">;
}

/** Finds versions of depots that a principal may see. All other depots do not exist for that principal. */
export class VisibleDepots {
  readonly #store: Dependencies["store"];
  readonly #objects: Dependencies["objects"];

  constructor({ store, objects }: Dependencies) {
    this.#store = store;
    this.#objects = objects;
  }

  filter(principal: Principal): Promise<VisibleRecords> {
    return this.#objects.visible.records(principal, `${principal.ospace}${DEPOT_PATH}`);
  }

  /** Versions of the depot; empty when it does not exist for the principal. */
  async versions(principal: Principal, name: string): Promise<readonly VersionEntry[]> {
    const versions = await this.#store.list(principal.tenant, fileName(name));
    if (versions.length === 0) return [];
    return (await this.filter(principal)).sees(summary(principal, versions, undefined)) ? versions : [];
  }

  /** The version, or the newest one. `AppError("not_found")` when it does not exist for the principal. */
  async version(principal: Principal, name: string, version: string | undefined): Promise<VersionEntry> {
    const versions = await this.versions(principal, name);
    if (versions.length === 0) throw unknownDepot(name, version);
    return chosen(versions, name, version === undefined ? undefined : depotVersion(version));
  }

  /** The files of a version, by path. Throws like `version`. */
  async files(principal: Principal, name: string, version: string): Promise<ReadonlyMap<string, DepotFile>> {
    const entry = await this.version(principal, name, version);
    const files = await this.#store.manifest(principal.tenant, entry.stored);
    return new Map(files.map((file) => [file.path, file]));
  }

  /** `AppError("denied")` if the depot has versions and the principal may not see them. */
  async requireChangeable(principal: Principal, name: string, versions: readonly VersionEntry[]): Promise<void> {
    if (versions.length === 0 || (await this.filter(principal)).sees(summary(principal, versions, undefined))) return;
    throw new AppError("denied", `The depot ${name} is not among the depots that this user may change.`);
  }
}
