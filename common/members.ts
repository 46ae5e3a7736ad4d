/**
 * Members of objects whose names come from users. `__proto__` is a name like any other there, and `constructor` is no
 * member unless it was set.
 */

export function setMember<T>(members: Record<string, T>, name: string, value: T): void {
  // An assignment would change, or leave, the prototype.
  if (name === "__proto__")
    Object.defineProperty(members, name, { value, enumerable: true, configurable: true, writable: true });
  else members[name] = value;
}

/** The object's own member; undefined for what it has from its prototype. */
export function memberOf<T>(members: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}
