import { AppError, isAppError } from "../../../common/errors.ts";
import { GROUPS_PER_CHANGE_MAX, GROUPS_PER_TENANT_MAX } from "../../../common/limits.ts";
import { requireExpected, type Expected } from "../../../common/revisions.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { EvidenceList } from "../../store/evidence.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { ApiPermissions, type Changed } from "./api-permissions.ts";
import { EVERYONE_ID } from "./builtin.ts";
import { GroupChanges } from "./changes.ts";
import { Definitions, type Member, type MemberSight, type Rights } from "./definitions.ts";
import {
  checkCount,
  edited,
  freeId,
  groupIn,
  groupsNaming,
  removable,
  requireGroupNames,
  withoutUser,
  withUnseen,
} from "./edits.ts";
import { type KnownSources, usernameOf, warningsOf } from "./known.ts";
import { isNarrower } from "./narrowing.ts";
import { GroupStore } from "./store.ts";
import { type TenantChange, TenantDefinitions } from "./tenants.ts";
import type { Group, GroupEdit, NewGroup } from "./types.ts";

export interface GroupDependencies extends KnownSources {
  readonly runtime: Runtime;
  readonly stores: Stores;
  /** Answers a test for user names that the principal may see; absent: every principal sees all. */
  readonly seenNames?: (principal: Principal) => Promise<(username: string) => boolean>;
  /** Called after members of a group lost rights; answers the work that continues with the old rights. */
  readonly left?: (principal: Principal, narrowed: NarrowedGroup) => Promise<readonly string[]>;
}

export interface NarrowedGroup {
  /** Full name of the group, or name of the API permission. */
  readonly name: string;
  /** True if the member has fewer rights than before. */
  readonly isNarrower: (member: Member) => boolean;
}

/** Warnings of a change, for example of work that continues with rights its user has lost. */
interface Told {
  readonly warnings: readonly string[];
}

/** Groups of users, API permissions, and the rights that follow from them. */
export class GroupService {
  readonly api: ApiPermissions;
  readonly #runtime: Runtime;
  readonly #store: GroupStore;
  readonly #seenNames: GroupDependencies["seenNames"];
  readonly #left: GroupDependencies["left"];
  readonly #known: KnownSources;
  readonly #current: TenantDefinitions;
  readonly #changes: GroupChanges;

  constructor({ runtime, stores, seenNames, left, ...known }: GroupDependencies) {
    this.#runtime = runtime;
    this.#known = known;
    this.#left = left;
    this.#seenNames = seenNames;
    const store = (this.#store = new GroupStore(stores));
    const current = (this.#current = new TenantDefinitions({ store, runtime }));
    const changes = (this.#changes = new GroupChanges({ store, current, runtime }));
    this.api = new ApiPermissions({ current, changes, told: (principal, change) => this.#toldLeft(principal, change) });
  }

  /**
   * The rights of a user, for the sign-in of every call. The definitions are at most `SIGN_IN_CACHE_MS` old. Undefined
   * if the tenant does not exist any more.
   */
  async rightsOf(tenant: string, member: Member, evidence?: EvidenceList): Promise<Rights | undefined> {
    try {
      return (await this.#current.of(tenant).read(evidence)).rightsOf(member);
    } catch (error) {
      if (!isAppError(error, "not_found")) throw error;
      await this.leave(tenant);
      return undefined;
    }
  }

  /** Rights of the built-in group that every user belongs to. At most as old as those of `rightsOf`. */
  async rightsOfEveryone(tenant: string): Promise<Rights> {
    return (await this.#current.of(tenant).read()).rightsOfGroup(EVERYONE_ID);
  }

  /**
   * The groups below `parent`, sorted by full name, with the members that the principal may see. If `parent` is absent,
   * empty or `/`: the groups without a parent.
   */
  async list(principal: Principal, parent = ""): Promise<readonly Group[]> {
    const sees = await this.seenMembers(principal);
    const definitions = await this.#current.of(principal.tenant).read();
    const above = parent === "" || parent === "/" ? "" : groupIn(definitions, parent).id;
    const found = definitions.stored.groups.filter((group) => group.parent === above);
    const views = found.map((group) => withSeen(definitions.view(group), sees));
    return views.sort((a, b) => (a.fullname < b.fullname ? -1 : 1));
  }

  /** Finds a group by id or full name, with the members that the principal may see. */
  async find(principal: Principal, id: string): Promise<Group> {
    const sees = await this.seenMembers(principal);
    const definitions = await this.#current.of(principal.tenant).read();
    return withSeen(definitions.view(definitions.get(id) ?? groupIn(definitions, id)), sees);
  }

  /** Answers a test for members that the principal may see. */
  async seenMembers(principal: Principal): Promise<MemberSight> {
    requirePermission(principal, "perms:read");
    return this.#visibility(principal);
  }

  /**
   * Creates a group and answers it, with a warning for each class that does not exist yet. `AppError("conflict")` if
   * the name is taken, `AppError("invalid")` for users and columns that do not exist.
   */
  async create(principal: Principal, group: NewGroup, expected?: Expected): Promise<Group & Told> {
    requirePermission(principal, "perms:write");
    const warnings = await warningsOf(principal, group, { ...this.#known, members: [] });
    const made = await this.#changes.byCaller(principal, (definitions) => {
      checkCount(definitions.stored.groups, GROUPS_PER_TENANT_MAX, "GROUPS_PER_TENANT_MAX");
      requireExpected(expected, `The group ${group.name}`, definitions.named(fullnameOf(group)));
      const record = edited(definitions, freeId(definitions, this.#runtime), { ...group });
      return { change: { groups: [record] }, answer: (after) => viewIn(after, record.id) };
    });
    return { ...made, warnings };
  }

  /**
   * Changes a group. Absent members of the edit stay unchanged. Users of the group whom the principal may not see stay
   * in it. `AppError("not_found")` if the group does not exist; otherwise the errors of `create`.
   */
  async update(principal: Principal, edit: GroupEdit, expected?: Expected): Promise<Group & Told> {
    requirePermission(principal, "perms:write");
    const sees = await this.#visibility(principal);
    const now = await this.#current.of(principal.tenant).read();
    const members = (now.get(idOf(now, edit))?.member ?? []).filter(sees);
    const warnings = await warningsOf(principal, edit, { ...this.#known, members });
    const { group, ...change } = await this.#changes.byCaller(principal, (before) => {
      const id = idOf(before, edit);
      requireExpected(expected, `The group ${before.fullname(id)}`, before.get(id));
      const record = edited(before, id, withUnseen(before.get(id), edit, sees));
      const answer = (after: Definitions) => ({
        group: withSeen(viewIn(after, id), sees),
        before,
        after,
      });
      return { change: { groups: [record] }, answer };
    });
    const left = await this.#toldLeft(principal, { name: group.fullname, ...change });
    return { ...group, warnings: [...warnings, ...left] };
  }

  /**
   * Removes a group; its members lose the rights it gives. Answers the work that continues with these rights. Built-in
   * groups, and groups with groups below them, cannot be removed.
   */
  async remove(principal: Principal, id: string, expected?: Expected): Promise<readonly string[]> {
    requirePermission(principal, "perms:write");
    const change = await this.#changes.byCaller(principal, (before) => {
      const group = removable(before, id);
      requireExpected(expected, `The group ${before.fullname(group.id)}`, group);
      const answer = (after: Definitions) => ({ name: before.fullname(group.id), before, after });
      return { change: { goneGroups: [group.id] }, answer };
    });
    return this.#toldLeft(principal, change);
  }

  /** `AppError("invalid")` if a group of a user's `grpset` is neither id nor full name of a stored group. */
  async requireGroups(principal: Principal, names: readonly string[]): Promise<void> {
    requirePermission(principal, "users:write");
    if (names.length > 0) requireGroupNames(new Definitions(await this.#store.load(principal.tenant)), names);
  }

  /** Removes the user from all groups, so that a new user of the same name gets none of the old rights. */
  async forget(tenant: string, username: string): Promise<void> {
    let isLeft = true;
    while (isLeft) {
      isLeft = await this.#changes.byPlatform(tenant, ({ stored }) => {
        const naming = groupsNaming(stored.groups, username);
        const groups = naming.slice(0, GROUPS_PER_CHANGE_MAX).map((group) => withoutUser(group, username));
        return { change: { groups }, answer: () => naming.length > groups.length };
      });
    }
  }

  /**
   * Makes every controller drop its cached data of the tenant: compiled rights and signed-in users. This controller
   * does so before it answers, the others when their watch reports the refresh.
   */
  async refresh(principal: Principal): Promise<void> {
    requirePermission(principal, "perms:write");
    const { tenant } = principal;
    await this.#changes.byPlatform(tenant, () => ({ change: { refresh: true }, answer: () => undefined }));
    this.#current.refresh(tenant);
  }

  /** All definitions of the caller's tenant, at most `SIGN_IN_CACHE_MS` old. */
  async definitions(principal: Principal): Promise<Definitions> {
    requirePermission(principal, "perms:read");
    return this.#current.of(principal.tenant).read();
  }

  /** Calls the listener when rights in a tenant may have changed or must be read again, on any controller. */
  onChange(listener: (change: TenantChange) => void): void {
    this.#current.onChange(listener);
  }

  /** Drops the cached data of a tenant that is deleted. */
  leave(tenant: string): Promise<void> {
    return this.#current.leave(tenant);
  }

  close(): Promise<void> {
    return this.#current.close();
  }

  async #visibility(principal: Principal): Promise<MemberSight> {
    const seen = await this.#seenNames?.(principal);
    if (seen === undefined) return () => true;
    return (member) => !member.startsWith("U") || seen(usernameOf(member));
  }

  async #toldLeft(principal: Principal, { name, before, after }: Changed): Promise<readonly string[]> {
    const isLess = (member: Member): boolean => isNarrower(before.rightsOf(member), after.rightsOf(member));
    return (await this.#left?.(principal, { name, isNarrower: isLess })) ?? [];
  }
}

function withSeen(group: Group, sees: MemberSight): Group {
  return { ...group, member: group.member.filter(sees) };
}

/** The stored group, with the stamp of its change. */
function viewIn(definitions: Definitions, id: string): Group {
  return definitions.view(definitions.get(id)!);
}

function fullnameOf({ name, parent = "" }: NewGroup): string {
  return `${parent === "/" ? "" : parent}/${name}`;
}

function idOf(definitions: Definitions, { id, name, parent = "" }: GroupEdit): string {
  if (id !== undefined && id !== "") return (definitions.get(id) ?? groupIn(definitions, id)).id;
  if (name === undefined) throw new AppError("invalid", "Which group: id, or name and parent, is missing.");
  return groupIn(definitions, fullnameOf({ name, parent })).id;
}
