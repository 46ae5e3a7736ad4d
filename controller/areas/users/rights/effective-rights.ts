import { AppError } from "../../../../common/errors.ts";
import { suggestion } from "../../../../common/text/nearest.ts";
import type { GroupService, Member } from "../../groups/index.ts";
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
} from "../../permissions/index.ts";
import type { EvidenceList } from "../../../store/evidence.ts";
import type { Rights, User } from "../types.ts";

/** Rights of a user to whom none were given directly. */
export const NO_RIGHTS: Rights = { grants: [], data: [] };
const NO_RIGHTS_AT_ALL: GivenRights = { grants: [], data: [], paths: [] };

export function isAdministrator(rights: Rights): boolean {
  return "role" in rights && rights.role === "administrator";
}

type Powers = Pick<Principal, "groups" | "grants" | "data" | "paths">;
type Empowered = Pick<User, "tenant" | "username" | "rights" | "groups">;
type OwningMember = Member & Required<Pick<Member, "own">>;

/** Rights of users: those given to them directly, and those they have as members of groups. */
export class EffectiveRights {
  readonly #groups: Pick<GroupService, "rightsOf" | "requireGroups"> | undefined;
  /** One member object for each cached user record, so that the rights of the same object are computed once. */
  readonly #members = new WeakMap<Empowered, OwningMember>();

  /** Absent: users have only the rights given to them directly. */
  constructor(groups: Pick<GroupService, "rightsOf" | "requireGroups"> | undefined) {
    this.#groups = groups;
  }

  /** The rights of the user. Undefined if the tenant does not exist any more. */
  async of(user: Empowered, evidence?: EvidenceList): Promise<Powers | undefined> {
    const member = this.memberOf(user);
    if (this.#groups === undefined) return { groups: user.groups, ...member.own };
    return this.#groups.rightsOf(user.tenant, member, evidence);
  }

  /**
   * Throws `AppError("denied")` unless the principal has all rights of the user. So a caller cannot gain rights by
   * creating, changing or deleting a user with more rights. The rights that every user has are not compared.
   */
  async requireAtLeast(principal: Principal, user: Empowered): Promise<void> {
    if (hasAll(principal)) return;
    const { powers, everyones } = await this.#compared(user);
    requireHolding(joined(principal, everyones, user.username), powers);
  }

  /**
   * Like `requireAtLeast`, for a user about to be created. Groups may name a user before it exists, so a new user can
   * have rights at once. A token with only a part of its user's rights cannot create a user with more rights than every
   * user has.
   */
  async requireMaking(principal: Principal, user: Empowered): Promise<void> {
    await this.requireAtLeast(principal, user);
    if (principal.byToken !== "part") return;
    const { powers, everyones } = await this.#compared(user);
    if (!holds(joined(everyones, everyones, user.username), powers)) requireNoPartToken(principal);
  }

  /** `AppError("invalid")` for added groups that do not exist. Groups in `before` are not checked. */
  async requireGroups(principal: Principal, before: readonly string[], groups: readonly string[]): Promise<void> {
    const added = groups.filter((group) => !before.includes(group));
    await this.#groups?.requireGroups(principal, added);
  }

  /** The rights of the user, and the rights that every user has. */
  async #compared(user: Empowered): Promise<{ readonly powers: Powers; readonly everyones: Powers }> {
    const { tenant } = user;
    const powers = await this.of(user);
    const everyones = await this.of({ tenant, username: "", rights: NO_RIGHTS, groups: [] });
    if (powers === undefined || everyones === undefined)
      throw new AppError("not_found", `There is no tenant ${tenant}.`);
    return { powers, everyones };
  }

  /**
   * The user in the form in which groups compute rights. The same record always gives the same object, so results can
   * be cached.
   */
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

/** `one` together with the rights that every user has, and the path of that user's home folder. */
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

/**
 * Throws `AppError("denied")` unless the principal may give these rights. It must have all of them, and must not be a
 * token with a part of its user's rights.
 */
export function requireRights(principal: Principal, rights: Rights): void {
  if (holds(NO_RIGHTS_AT_ALL, givenBy(rights))) return;
  requireNoPartToken(principal);
  requireHolding(principal, givenBy(rights));
}

/** Administrators have no limit of paths. Other rights that are given to a user directly open no paths. */
function givenBy(rights: Rights): GivenRights {
  return isAdministrator(rights) ? ROLES.administrator : { ...ownOf(rights), paths: [] };
}

/**
 * Throws `AppError("denied")` if the principal may not change the groups of the user, because groups give rights, too.
 */
export function requireGrouping(principal: Principal, user: Pick<User, "groups">, groups: readonly string[]): void {
  const isSame = groups.length === user.groups.length && groups.every((group) => user.groups.includes(group));
  if (isSame) return;
  requireNoPartToken(principal);
  if (hasAll(principal)) return;
  throw new AppError("denied", `${principal.user} may not change groups: that is for administrators.`);
}

/** Rules with writing reduced to reading. The same list gives the same result, so results cached by list are reused. */
const readingRules = new WeakMap<readonly DataRule[], readonly DataRule[]>();

/**
 * The principal limited to the scopes of a token. It keeps the part of its grants that the scopes include. Its row
 * rules allow writing only if the scopes include `objects:write`.
 */
export function confined(
  principal: Principal,
  { scopes, name }: { readonly scopes: readonly string[]; readonly name?: string | undefined },
): Principal {
  const grants = principal.grants.flatMap((grant) => scopes.flatMap((scope) => sharedGrant(grant, scope)));
  const isWhole = principal.grants.every((grant) => grants.includes(grant));
  const byToken = isWhole ? "whole" : "part";
  const narrowed: Principal = { ...principal, grants, byToken, ...(name !== undefined && { tokenName: name }) };
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

/**
 * Throws `AppError("denied")` for a read-only principal and for tokens. A stolen token must not end sessions, create
 * tokens or change the start page.
 */
export function requireOwnSignIn(principal: Principal, denied = "Sessions and tokens are not managed"): void {
  requireMayChange(principal);
  if (principal.byToken) throw new AppError("denied", `${denied} by a token: sign in.`);
}

/**
 * `AppError("invalid")` for a malformed or unknown scope, `AppError("denied")` for a scope that the principal does not
 * have.
 */
export function requireScopes(principal: Principal, scopes: readonly string[]): void {
  const wrong = scopes.find((scope) => !/^(\*|[a-z]+):(\*|read|write|run)$/.test(scope) || scope === "*:*");
  if (wrong !== undefined)
    throw new AppError("invalid", `${wrong} is no scope: these are like hosts:read, hosts:* or *:read.`);
  const idle = scopes.find((scope) => !PERMISSIONS.some((permission) => allows({ grants: [scope] }, permission)));
  if (idle !== undefined)
    throw new AppError("invalid", `There is no permission ${idle}${suggestion(idle, PERMISSIONS)}`);
  const foreign = scopes.find((scope) => !hasGrant(principal, scope));
  if (foreign !== undefined) throw new AppError("denied", `${principal.user} does not have ${foreign}.`);
}
