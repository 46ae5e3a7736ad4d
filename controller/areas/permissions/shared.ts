import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import { isUnrestricted } from "./access.ts";
import type { DataRule, Principal } from "./types.ts";

/**
 * The rights that the caller and the author both have, for content that one user stored and another one runs.
 * `AppError("denied")` if they see or write objects by different rules and neither is unrestricted, because no list of
 * rules can express what both may do.
 */
export function sharedRights(caller: Principal, author: Principal): Principal {
  const paths = sharedPaths(caller.paths, author.paths);
  return {
    ...caller,
    grants: caller.grants.flatMap((one) => author.grants.flatMap((other) => sharedGrant(one, other))),
    data: sharedData(caller, author),
    ...(paths && { paths }),
  };
}

/** The narrower of the two grants if one includes the other, or the part they share; empty if they share nothing. */
export function sharedGrant(one: string, other: string): readonly string[] {
  const [area = "", verb = ""] = one.split(":");
  const [otherArea = "", otherVerb = ""] = other.split(":");
  const both = (a: string, b: string): string | undefined => (a === b || b === "*" ? a : a === "*" ? b : undefined);
  const [inArea, inVerb] = [both(area, otherArea), both(verb, otherVerb)];
  return inArea === undefined || inVerb === undefined ? [] : [`${inArea}:${inVerb}`];
}

function sharedPaths(one: Principal["paths"], other: Principal["paths"]): Principal["paths"] {
  if (one === undefined || other === undefined) return one ?? other;
  return [
    ...one.filter((path) => other.some((open) => isInside(open, path))),
    ...other.filter((path) => one.some((open) => isInside(open, path))),
  ];
}

function sharedData(caller: Principal, author: Principal): readonly DataRule[] {
  if (isUnrestricted(author, "/") || sameRules(caller.data, author.data)) return caller.data;
  if (isUnrestricted(caller, "/")) return author.data;
  const text = `${caller.user} and ${author.user} see and write objects by different rules: ${caller.user} has to save this before running it.`;
  throw new AppError("denied", text);
}

function sameRules(one: readonly DataRule[], other: readonly DataRule[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
