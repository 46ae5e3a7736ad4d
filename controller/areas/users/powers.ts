import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import type { GroupService, Member } from "../groups/index.ts";
import {
  allows,
  isUnrestricted,
  requireMayChange,
  ROLES,
  sharedGrant,
  type DataRule,
  type Principal,
} from "../permissions/index.ts";
import type { Rights, User } from "./types.ts";

/** What a user has who was given nothing. */
export const NO_RIGHTS: Rights = { grants: [], data: [] };

export function isAdministrator(rights: Rights): boolean {
  return "role" in rights && rights.role === "administrator";
}

type Powers = Pick<Principal, "groups" | "grants" | "data" | "paths">;
type Empowered = Pick<User, "tenant" | "username" | "rights" | "groups">;
type OwningMember = Member & Required<Pick<Member, "own">>;

/** What users may do: by what they were given themselves, and as members of groups. */
export class UserPowers {
  readonly #groups: Pick<GroupService, "rightsOf"> | undefined;
  /** The same for a record that is kept, for which the rights are then found at once. */
  readonly #members = new WeakMap<Empowered, OwningMember>();

  /** Absent: only what they were given themselves. */
  constructor(groups: Pick<GroupService, "rightsOf"> | undefined) {
    this.#groups = groups;
  }

  /** Undefined where the tenant is not there any more. */
  async of(user: Empowered): Promise<Powers | undefined> {
    const member = this.memberOf(user);
    if (this.#groups === undefined) return { groups: user.groups, ...member.own };
    return this.#groups.rightsOf(user.tenant, member);
  }

  /**
   * Throws `AppError("denied")` unless the principal has all that the user has: a user is made, changed or deleted only
   * by one who can do at least as much, so that changing users is no way to rights of one's own. What every user has
   * counts for nothing.
   */
  async requireAtLeast(principal: Principal, user: Empowered): Promise<void> {
    if (hasAll(principal)) return;
    const { tenant, username } = user;
    const powers = await this.of(user);
    const everyones = await this.of({ tenant, username: "", rights: NO_RIGHTS, groups: [] });
    if (powers === undefined || everyones === undefined)
      throw new AppError("not_found", `There is no tenant ${tenant}.`);
    const paths = principal.paths && [...principal.paths, ...(everyones.paths ?? []), `/home/${username}`];
    const grants = [...principal.grants, ...everyones.grants];
    requireAllOf(
      { ...principal, grants, data: [...principal.data, ...everyones.data], ...(paths && { paths }) },
      powers,
    );
  }

  /** As groups ask for his rights; the same for a record that is kept. */
  memberOf(user: Empowered): OwningMember {
    let member = this.#members.get(user);
    if (member === undefined) {
      const own = ownOf(user.rights);
      const { username, groups } = user;
      member = { username, isAdministrator: own === ROLES.administrator, groups, own };
      this.#members.set(user, member);
    }
    return member;
  }
}

function ownOf(rights: Rights): Pick<Principal, "grants" | "data"> {
  return "role" in rights ? ROLES[rights.role] : rights;
}

function hasAll(principal: Principal): boolean {
  const hasGrants = ROLES.administrator.grants.every((grant) => principal.grants.includes(grant));
  return hasGrants && principal.paths === undefined && isUnrestricted(principal, "/");
}

/** Throws `AppError("denied")` unless the principal has all that these rights give. */
export function requireRights(principal: Principal, rights: Rights): void {
  if (!hasAll(principal)) requireAllOf(principal, { ...ownOf(rights), paths: [] });
}

function requireAllOf(principal: Principal, { grants, data, paths }: Omit<Powers, "groups">): void {
  const held = new Set(principal.data.map((rule) => JSON.stringify(rule)));
  const open = principal.paths;
  const hasPaths = open === undefined || (paths?.every((path) => open.some((one) => isInside(one, path))) ?? false);
  // Rules of groups add up, so whoever has them too has as much. A user's own ones narrow each other.
  const hasData = data.every((rule) => rule.group !== undefined && held.has(JSON.stringify(rule)));
  if (hasPaths && hasData && grants.every((grant) => covers(principal, grant))) return;
  throw new AppError("denied", `${principal.user} may not give or change rights beyond the own ones.`);
}

/** Groups give rights as well. */
export function requireGrouping(principal: Principal, user: Pick<User, "groups">, groups: readonly string[]): void {
  const isSame = groups.length === user.groups.length && groups.every((group) => user.groups.includes(group));
  if (isSame || hasAll(principal)) return;
  throw new AppError("denied", `${principal.user} may not change groups: that is for administrators.`);
}

/** As read from them; the same list for the same rules, so that what is made of a list is made once. */
const readingRules = new WeakMap<readonly DataRule[], readonly DataRule[]>();

/**
 * What a token of these scopes may: of the grants those that both have, and objects are written only where that was
 * granted.
 */
export function confined(principal: Principal, scopes: readonly string[]): Principal {
  const grants = principal.grants.flatMap((grant) => scopes.flatMap((scope) => sharedGrant(grant, scope)));
  const isWhole = principal.grants.every((grant) => grants.includes(grant));
  const narrowed: Principal = { ...principal, grants, byToken: isWhole ? "whole" : "part" };
  return allows(narrowed, "objects:write") ? narrowed : { ...narrowed, data: asReading(principal.data) };
}

function asReading(data: readonly DataRule[]): readonly DataRule[] {
  let rules = readingRules.get(data);
  if (rules === undefined) {
    rules = data.map((rule) => (rule.access === "write" ? { ...rule, access: "read" } : rule));
    readingRules.set(data, rules);
  }
  return rules;
}

/** A token that got into wrong hands ends no session, makes no other token and leads nobody elsewhere. */
export function requireOwnSignIn(principal: Principal, denied = "Sessions and tokens are not managed"): void {
  requireMayChange(principal);
  if (principal.byToken) throw new AppError("denied", `${denied} by a token: sign in.`);
}

/** Throws unless each scope is a grant that the principal has. */
export function requireScopes(principal: Principal, scopes: readonly string[]): void {
  const wrong = scopes.find((scope) => !/^(\*|[a-z]+):(\*|read|write|run)$/.test(scope) || scope === "*:*");
  if (wrong !== undefined)
    throw new AppError("invalid", `${wrong} is no scope: these are like hosts:read, hosts:* or *:read.`);
  const foreign = scopes.find((scope) => !covers(principal, scope));
  if (foreign !== undefined) throw new AppError("denied", `${principal.user} does not have ${foreign}.`);
}

function covers(principal: Principal, grant: string): boolean {
  const [area = "", verb = ""] = grant.split(":");
  const verbs = verb === "*" ? ["read", "write", "run"] : [verb];
  return (
    principal.grants.includes(grant) ||
    principal.grants.includes(`${area}:*`) ||
    verbs.every((one) => principal.grants.includes(`*:${one}`) || principal.grants.includes(`${area}:${one}`))
  );
}
