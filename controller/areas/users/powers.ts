import { AppError } from "../../../common/errors.ts";
import { meant } from "../../../common/text/nearest.ts";
import type { GroupService, Member } from "../groups/index.ts";
import {
  allows,
  type GivenRights,
  hasGrant,
  holds,
  PERMISSIONS,
  requireHolding,
  requireMayChange,
  requireNoPartToken,
  ROLES,
  sharedGrant,
  type DataRule,
  type Principal,
} from "../permissions/index.ts";
import type { Rights, User } from "./types.ts";

/** What a user has who was given nothing. */
export const NO_RIGHTS: Rights = { grants: [], data: [] };
const NO_RIGHTS_AT_ALL: GivenRights = { grants: [], data: [], paths: [] };

export function isAdministrator(rights: Rights): boolean {
  return "role" in rights && rights.role === "administrator";
}

type Powers = Pick<Principal, "groups" | "grants" | "data" | "paths">;
type Empowered = Pick<User, "tenant" | "username" | "rights" | "groups">;
type OwningMember = Member & Required<Pick<Member, "own">>;

/** What users may do: by what they were given themselves, and as members of groups. */
export class UserPowers {
  readonly #groups: Pick<GroupService, "rightsOf" | "requireGroups"> | undefined;
  /** The same for a record that is kept, for which the rights are then found at once. */
  readonly #members = new WeakMap<Empowered, OwningMember>();

  /** Absent: only what they were given themselves. */
  constructor(groups: Pick<GroupService, "rightsOf" | "requireGroups"> | undefined) {
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
    const { powers, everyones } = await this.#compared(user);
    requireHolding(joined(principal, everyones, user.username), powers);
  }

  /**
   * As `requireAtLeast`, for a user who is about to be made: groups may name a user before there is one. A token with a
   * part of its user's rights makes none who has more than everybody.
   */
  async requireMaking(principal: Principal, user: Empowered): Promise<void> {
    await this.requireAtLeast(principal, user);
    if (principal.byToken !== "part") return;
    const { powers, everyones } = await this.#compared(user);
    if (!holds(joined(everyones, everyones, user.username), powers)) requireNoPartToken(principal);
  }

  /** Refuses groups that are not there with `AppError("invalid")`. Those that the user has already may stay. */
  async requireGroups(principal: Principal, before: readonly string[], groups: readonly string[]): Promise<void> {
    const added = groups.filter((group) => !before.includes(group));
    await this.#groups?.requireGroups(principal, added);
  }

  /** What the user has, and what everybody has. */
  async #compared(user: Empowered): Promise<{ readonly powers: Powers; readonly everyones: Powers }> {
    const { tenant } = user;
    const powers = await this.of(user);
    const everyones = await this.of({ tenant, username: "", rights: NO_RIGHTS, groups: [] });
    if (powers === undefined || everyones === undefined)
      throw new AppError("not_found", `There is no tenant ${tenant}.`);
    return { powers, everyones };
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

/** With what everybody has, and the home folder of that user. */
function joined<T extends GivenRights>(one: T, everyones: GivenRights, username: string): T {
  const grants = [...one.grants, ...everyones.grants];
  const data = [...one.data, ...everyones.data];
  if (one.paths === undefined) return { ...one, grants, data };
  return { ...one, grants, data, paths: [...one.paths, ...(everyones.paths ?? []), `/home/${username}`] };
}

function ownOf(rights: Rights): Pick<Principal, "grants" | "data"> {
  return "role" in rights ? ROLES[rights.role] : rights;
}

function hasAll(principal: Principal): boolean {
  return holds(principal, ROLES.administrator);
}

/** Throws `AppError("denied")` unless the principal may give these rights: has all of them, and not a part by a token. */
export function requireRights(principal: Principal, rights: Rights): void {
  if (holds(NO_RIGHTS_AT_ALL, givenBy(rights))) return;
  requireNoPartToken(principal);
  requireHolding(principal, givenBy(rights));
}

/** Administrators are not narrowed by paths; other rights of one's own open none. */
function givenBy(rights: Rights): GivenRights {
  return isAdministrator(rights) ? ROLES.administrator : { ...ownOf(rights), paths: [] };
}

/** Groups give rights as well. */
export function requireGrouping(principal: Principal, user: Pick<User, "groups">, groups: readonly string[]): void {
  const isSame = groups.length === user.groups.length && groups.every((group) => user.groups.includes(group));
  if (isSame) return;
  requireNoPartToken(principal);
  if (hasAll(principal)) return;
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
  const idle = scopes.find((scope) => !PERMISSIONS.some((permission) => allows({ grants: [scope] }, permission)));
  if (idle !== undefined) throw new AppError("invalid", `There is no permission ${idle}${meant(idle, PERMISSIONS)}`);
  const foreign = scopes.find((scope) => !hasGrant(principal, scope));
  if (foreign !== undefined) throw new AppError("denied", `${principal.user} does not have ${foreign}.`);
}
