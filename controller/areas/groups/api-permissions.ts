import { requireExpected, revisionOf, type Expected, type Revised } from "../../../common/revisions.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { GroupChanges } from "./changes.ts";
import type { Definitions } from "./definitions.ts";
import { groupIn } from "./edits.ts";
import { apiPaths, newApiPermission, pathsIn, requireRoomFor } from "./paths.ts";
import type { TenantDefinitions } from "./tenants.ts";
import type { ApiPermission, PathRecord } from "./types.ts";

/** The name of a changed group or API permission, with all definitions before and after the change. */
export interface Changed {
  readonly name: string;
  readonly before: Definitions;
  readonly after: Definitions;
}

interface Dependencies {
  readonly current: Pick<TenantDefinitions, "of">;
  readonly changes: GroupChanges;
  /** Answers the work that continues with rights that its user has lost by the change. */
  readonly told: (principal: Principal, change: Changed) => Promise<readonly string[]>;
}

/** API permissions: which paths of scripts and files are open, and to which groups. */
export class ApiPermissions {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** The API permissions, sorted by name. */
  async list(principal: Principal): Promise<readonly ApiPermission[]> {
    requirePermission(principal, "perms:read");
    const definitions = await this.#with.current.of(principal.tenant).read();
    return definitions.stored.paths.map((one) => definitions.apiView(one)).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async find(principal: Principal, name: string): Promise<ApiPermission> {
    requirePermission(principal, "perms:read");
    const definitions = await this.#with.current.of(principal.tenant).read();
    return definitions.apiView(pathsIn(definitions, name));
  }

  /** Creates an API permission without groups. `AppError("conflict")` if the name is taken. */
  async create(principal: Principal, name: string, paths: readonly string[], expected?: Expected): Promise<Revised> {
    requirePermission(principal, "perms:write");
    const record = newApiPermission(name, paths);
    return this.#with.changes.byCaller(principal, (definitions) => {
      const now = definitions.stored.paths.find((one) => one.name === name);
      requireExpected(expected, `The API permission ${name}`, now);
      requireRoomFor(definitions, name);
      return { change: { paths: [record] }, answer: (after) => revisedIn(after, name, []) };
    });
  }

  /** Replaces the paths of an API permission. Warns of work that continues although its paths are now closed. */
  async setPaths(principal: Principal, name: string, paths: readonly string[], expected?: Expected): Promise<Revised> {
    requirePermission(principal, "perms:write");
    const wanted = apiPaths(paths);
    const change = await this.#change(principal, { name, expected }, (record) => ({ ...record, paths: wanted }));
    return revisedIn(change.after, name, await this.#with.told(principal, change));
  }

  /** Opens the paths of an API permission to these groups, in addition to the groups that have it. */
  async addGroups(
    principal: Principal,
    name: string,
    groups: readonly string[],
    expected?: Expected,
  ): Promise<Revised> {
    requirePermission(principal, "perms:write");
    const { after } = await this.#change(principal, { name, expected }, (record, definitions) => {
      const ids = groups.map((group) => groupIn(definitions, group).id);
      return { ...record, groups: [...new Set([...record.groups, ...ids])] };
    });
    return revisedIn(after, name, []);
  }

  /** Takes an API permission from groups that have it. Warns of work that continues with its paths. */
  async removeGroups(
    principal: Principal,
    name: string,
    groups: readonly string[],
    expected?: Expected,
  ): Promise<Revised> {
    requirePermission(principal, "perms:write");
    const change = await this.#change(principal, { name, expected }, (record, definitions) => {
      const ids = new Set(groups.map((group) => groupIn(definitions, group).id));
      return { ...record, groups: record.groups.filter((id) => !ids.has(id)) };
    });
    return revisedIn(change.after, name, await this.#with.told(principal, change));
  }

  /** Removes an API permission. Answers the work that continues with its paths. */
  async remove(principal: Principal, name: string, expected?: Expected): Promise<readonly string[]> {
    requirePermission(principal, "perms:write");
    const change = await this.#with.changes.byCaller(principal, (before) => {
      requireExpected(expected, `The API permission ${name}`, pathsIn(before, name));
      return { change: { gonePaths: [name] }, answer: (after) => ({ name, before, after }) };
    });
    return this.#with.told(principal, change);
  }

  #change(
    principal: Principal,
    { name, expected }: { readonly name: string; readonly expected: Expected | undefined },
    edit: (record: PathRecord, definitions: Definitions) => PathRecord,
  ): Promise<Changed> {
    return this.#with.changes.byCaller(principal, (before) => {
      const now = pathsIn(before, name);
      requireExpected(expected, `The API permission ${name}`, now);
      const record = edit(now, before);
      return { change: { paths: [record] }, answer: (after) => ({ name, before, after }) };
    });
  }
}

function revisedIn(after: Definitions, name: string, warnings: readonly string[]): Revised {
  return { revision: revisionOf(pathsIn(after, name)), warnings };
}
