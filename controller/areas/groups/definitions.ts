import { ROLES, type DataRule, type Principal } from "../permissions/index.ts";
import { GROUP_SETS_KEPT_MAX } from "../../../common/limits.ts";
import { revisionOf } from "../../../common/revisions.ts";
import { ADMINISTRATORS_ID, EVERYONE_ID, FILLED_BY_THEMSELVES, GRANTS_BY_GROUP } from "./builtin.ts";
import { rulesOf } from "./compile.ts";
import type { Stored } from "./store.ts";
import type { ApiPermission, Group, GroupRecord, PathRecord } from "./types.ts";

/** The user whose rights are computed. */
export interface Member {
  /** User name: the last part of the full name in groups' members. Unique in a tenant. */
  readonly username: string;
  readonly isAdministrator: boolean;
  /** Full names or ids of groups in the user's record; unknown ones are ignored. */
  readonly groups?: readonly string[];
  /** Rights given to the user directly, without groups. */
  readonly own?: Pick<Principal, "grants" | "data">;
}

/** True if the viewer may see the member: groups are visible to all, users by their names. */
export type MemberSight = (member: string) => boolean;

export type Rights = Pick<Principal, "groups" | "grants" | "data" | "paths">;

const NOTHING: NonNullable<Member["own"]> = { grants: [], data: [] };

/** All groups and API permissions of a tenant, as read at one time, and the rights that follow from them. Immutable. */
export class Definitions {
  readonly stored: Stored;
  readonly #groups: ReadonlyMap<string, GroupRecord>;
  readonly #fullnames = new Map<string, string>();
  readonly #byFullname = new Map<string, GroupRecord>();
  /** Ids of the groups that have a member directly, by the member (`U/<user name>` or `G<group id>`). */
  readonly #holders: ReadonlyMap<string, readonly string[]>;
  readonly #rules = new Map<string, readonly DataRule[]>();
  /**
   * Compiled rights by the user's own rules, then by own grants and ids of groups: users with equal keys share them.
   */
  readonly #rights = new WeakMap<readonly DataRule[], Map<string, Rights>>();
  readonly #groupRights = new Map<string, Rights>();
  /** Cache for repeated calls of the same user. */
  readonly #memberRights = new WeakMap<Member, Rights>();

  constructor(stored: Stored) {
    this.stored = stored;
    this.#groups = new Map(stored.groups.map((group) => [group.id, group]));
    for (const group of stored.groups) this.#byFullname.set(this.fullname(group.id), group);
    this.#holders = holdersOf(stored.groups);
  }

  get(id: string): GroupRecord | undefined {
    return this.#groups.get(id);
  }

  named(fullname: string): GroupRecord | undefined {
    return this.#byFullname.get(fullname);
  }

  /** Full name of a group; empty for a deleted one. */
  fullname(id: string): string {
    const known = this.#fullnames.get(id);
    if (known !== undefined) return known;
    const group = this.#groups.get(id);
    const name = group ? `${this.fullname(group.parent)}/${group.name}` : "";
    this.#fullnames.set(id, name);
    return name;
  }

  view(group: GroupRecord): Group {
    const { id, name, readonly, writable, readexps, fields, tags } = group;
    return {
      ...{ id, name, readonly, writable, readexps, fields, tags },
      fullname: this.fullname(id),
      parent: this.fullname(group.parent),
      member: group.member.flatMap((member) => this.#memberView(member)),
      hasChildren: this.stored.groups.some(({ parent }) => parent === id),
      revision: revisionOf(group),
    };
  }

  apiView({ name, paths, groups, stamp }: PathRecord): ApiPermission {
    const names = groups.map((id) => this.fullname(id)).filter((fullname) => fullname !== "");
    return { name, paths, groups: names.sort(), revision: revisionOf({ stamp }) };
  }

  /** Ids of all groups of a user, direct ones and those that contain them. */
  groupsOf({ username, isAdministrator, groups = [] }: Member): ReadonlySet<string> {
    const found = new Set([EVERYONE_ID, ...(isAdministrator ? [ADMINISTRATORS_ID] : [])]);
    const named = groups.flatMap((name) => this.#groups.get(name)?.id ?? this.named(name)?.id ?? []);
    for (const id of named) if (!FILLED_BY_THEMSELVES.has(id)) found.add(id);
    for (const id of this.#holders.get(`U/${username}`) ?? []) found.add(id);
    return this.#withHolders(found);
  }

  /** These groups, and all groups that contain one of them as a member, directly or indirectly. */
  #withHolders(ids: Iterable<string>): ReadonlySet<string> {
    const found = new Set(ids);
    // A set may grow during iteration: added ids are visited later, each once. So cycles end.
    for (const id of found) for (const holder of this.#holders.get(`G${id}`) ?? []) found.add(holder);
    return found;
  }

  /** Ids of this group and of all groups that are its members, directly or indirectly. */
  below(id: string): ReadonlySet<string> {
    const found = new Set([id]);
    for (const one of found) {
      for (const member of this.#groups.get(one)?.member ?? []) if (member.startsWith("G")) found.add(member.slice(1));
    }
    return found;
  }

  /**
   * The rights of a user; the same object for the same `member`. Users with the same groups and own rights share
   * everything except their home folder.
   */
  rightsOf(member: Member): Rights {
    const known = this.#memberRights.get(member);
    if (known !== undefined) return known;
    const rights = this.#rightsOfMember(member);
    this.#memberRights.set(member, rights);
    return rights;
  }

  /** Rights that the group alone gives, without the groups that contain it. Answers the same object each time. */
  rightsOfGroup(id: string): Rights {
    const known = this.#groupRights.get(id);
    if (known !== undefined) return known;
    const rights = this.#rightsOfSet([id], NOTHING);
    this.#groupRights.set(id, rights);
    return rights;
  }

  /** Rights that a member has through the group and all groups that contain it. */
  rightsThrough(id: string): Rights {
    return this.#rightsOfSet([...this.#withHolders([id])].sort(), NOTHING);
  }

  /**
   * Full names of at most `max` users in the group or in its member groups. Includes only users whom the viewer may
   * see.
   */
  usersIn(id: string, max: number, sees: MemberSight): readonly string[] {
    const found = new Set<string>();
    for (const group of this.below(id)) {
      for (const member of this.#groups.get(group)?.member ?? []) {
        if (found.size >= max) return [...found];
        if (member.startsWith("U") && sees(member)) found.add(member.slice(1));
      }
    }
    return [...found];
  }

  #rightsOfMember(member: Member): Rights {
    const own = member.own ?? NOTHING;
    const ids = [...this.groupsOf(member)].sort();
    const bySet = this.#rights.get(own.data) ?? new Map<string, Rights>();
    this.#rights.set(own.data, bySet);
    // The home folder belongs to one user, so it is added below. Administrators have no limit of paths.
    const key = JSON.stringify([ids, own.grants]);
    let rights = bySet.get(key);
    if (rights === undefined) {
      if (bySet.size >= GROUP_SETS_KEPT_MAX) bySet.clear();
      bySet.set(key, (rights = this.#rightsOfSet(ids, own)));
    }
    if (rights.paths === undefined) return rights;
    return { ...rights, paths: [...rights.paths, `/home/${member.username}`] };
  }

  #rightsOfSet(ids: readonly string[], own: NonNullable<Member["own"]>): Rights {
    const groups = ids.map((id) => this.fullname(id));
    if (ids.includes(ADMINISTRATORS_ID)) return { groups, ...ROLES.administrator };
    const rules = ids.flatMap((id) => this.#rulesOfGroup(id));
    const paths = this.stored.paths.filter((one) => one.groups.some((id) => ids.includes(id)));
    const grants = new Set([...own.grants, ...ids.flatMap((id) => GRANTS_BY_GROUP.get(id) ?? []), ...grantsBy(rules)]);
    // The open paths limit these two grants.
    if (ids.includes(EVERYONE_ID)) grants.add("files:read").add("scripts:read");
    return {
      groups,
      grants: [...grants],
      data: rules.length === 0 ? own.data : [...own.data, ...rules],
      paths: [...new Set(paths.flatMap((one) => one.paths))],
    };
  }

  #rulesOfGroup(id: string): readonly DataRule[] {
    const group = this.#groups.get(id);
    let rules = this.#rules.get(id);
    if (rules === undefined) this.#rules.set(id, (rules = group ? rulesOf(id, group) : []));
    return rules;
  }

  #memberView(member: string): readonly string[] {
    if (member.startsWith("U")) return [member];
    const fullname = this.fullname(member.slice(1));
    return fullname === "" ? [] : [`G${fullname}`];
  }
}

/** Grants that follow from rules: users who may read or write objects may call the endpoints for it. */
function grantsBy(rules: readonly DataRule[]): readonly string[] {
  const opening = rules.filter(({ access }) => access !== "none");
  const writing = opening.some(({ access }) => access === "write");
  return [...(opening.length > 0 ? ["objects:read"] : []), ...(writing ? ["objects:write"] : [])];
}

function holdersOf(groups: readonly GroupRecord[]): ReadonlyMap<string, readonly string[]> {
  const holders = new Map<string, string[]>();
  for (const { id, member } of groups) {
    for (const one of member) {
      const key = one.startsWith("U") ? `U${one.slice(one.lastIndexOf("/"))}` : one;
      const known = holders.get(key);
      if (known) known.push(id);
      else holders.set(key, [id]);
    }
  }
  return holders;
}
