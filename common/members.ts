import { AppError } from "./errors.ts";

/**
 * Access to members whose names come from users. `__proto__` is an ordinary name, and `constructor` is a member only if
 * it was set.
 */

export function setMember<T>(members: Record<string, T>, name: string, value: T): void {
  // An assignment would change the prototype, or have no effect.
  if (name === "__proto__")
    Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
  else members[name] = value;
}

/** The object's own member; `undefined` for an inherited one. */
export function memberOf<T>(members: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

/** `AppError("invalid")` if a change of `what` sets no member: it would do nothing. */
export function requireSomeMember(change: object, what: string): void {
  if (Object.values(change).some((value) => value !== undefined)) return;
  throw new AppError("invalid", `There is nothing to change: the call names no member of ${what}.`);
}
