import { requireHolding, type Principal } from "../permissions/index.ts";
import type { Definitions } from "./definitions.ts";
import type { StoredChange } from "./store.ts";

/** A change of groups or API permissions, with all definitions before and after it. */
export interface GivenChange {
  readonly change: StoredChange;
  readonly before: Definitions;
  readonly after: Definitions;
}

/**
 * Throws `AppError("denied")` unless the principal has all rights of the changed groups and API permissions, before and
 * after the change. The rights of a group include those of the groups that contain it, because its members are their
 * members. If a group is renamed or moved, the groups below it by name are checked, too. Users name their groups by
 * full name, and the full names of these groups change as well.
 */
export function requireHoldingAll(principal: Principal, { change, before, after }: GivenChange): void {
  const { groups = [], goneGroups = [], paths = [], gonePaths = [] } = change;
  const ids = new Set([...goneGroups, ...groups.map(({ id }) => id)]);
  const names = new Set([...gonePaths, ...paths.map(({ name }) => name)]);
  for (const definitions of [before, after]) {
    for (const id of ids) requireGroup(principal, definitions, { id, isRenamed: isRenamed(id, before, after) });
    for (const record of definitions.stored.paths) {
      const given = { grants: [], data: [], paths: record.paths };
      if (names.has(record.name)) requireHolding(principal, given, `the API permission ${record.name}`);
    }
  }
}

function requireGroup(
  principal: Principal,
  definitions: Definitions,
  { id, isRenamed }: { readonly id: string; readonly isRenamed: boolean },
): void {
  const fullname = definitions.fullname(id);
  if (fullname === "") return;
  requireHolding(principal, definitions.rightsThrough(id), `the group ${fullname}`);
  if (!isRenamed) return;
  for (const child of definitions.stored.groups)
    if (child.parent === id) requireGroup(principal, definitions, { id: child.id, isRenamed });
}

function isRenamed(id: string, before: Definitions, after: Definitions): boolean {
  const [was, is] = [before.get(id), after.get(id)];
  return was !== undefined && is !== undefined && (was.name !== is.name || was.parent !== is.parent);
}
