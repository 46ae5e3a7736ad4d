import { AppError } from "../../../common/errors.ts";
import { allows, requireMayChange, ROLES, type DataRule, type Principal } from "../permissions/index.ts";
import type { Rights, User } from "./types.ts";

/** What a user has who was given nothing. */
export const NO_RIGHTS: Rights = { grants: [], data: [] };

export function isAdministrator(rights: Rights): boolean {
  return "role" in rights && rights.role === "administrator";
}

function hasAll(principal: Principal): boolean {
  return ROLES.administrator.grants.every((grant) => principal.grants.includes(grant));
}

/**
 * Throws `AppError("denied")` unless the principal has all that these rights give: a user is made, changed or deleted
 * only by one who can do at least as much, so that changing users is no way to rights of one's own.
 */
export function requireAtLeast(principal: Principal, rights: Rights): void {
  if (hasAll(principal)) return;
  if ("role" in rights || rights.data.length > 0 || !rights.grants.every((grant) => covers(principal, grant)))
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
  const grants = principal.grants.flatMap((grant) => scopes.flatMap((scope) => common(grant, scope)));
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

/** A token that got into wrong hands ends no session and makes no other token. */
export function requireOwnSignIn(principal: Principal): void {
  requireMayChange(principal);
  if (principal.byToken) throw new AppError("denied", "Sessions and tokens are not managed by a token: sign in.");
}

function common(one: string, other: string): readonly string[] {
  const [area = "", verb = ""] = one.split(":");
  const [otherArea = "", otherVerb = ""] = other.split(":");
  const both = (a: string, b: string): string | undefined => (a === b || b === "*" ? a : a === "*" ? b : undefined);
  const [inArea, inVerb] = [both(area, otherArea), both(verb, otherVerb)];
  return inArea === undefined || inVerb === undefined ? [] : [`${inArea}:${inVerb}`];
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
