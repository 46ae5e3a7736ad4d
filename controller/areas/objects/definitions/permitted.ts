import { requirePermission } from "../../permissions/index.ts";
import type { SystemClass } from "./system-class.ts";
import type { ClassGuard } from "../types.ts";

/** The class with a guard that checks `ClassGuard.permission` before each change by MQL. */
export function permitted(definition: SystemClass): SystemClass {
  return { ...definition, guard: permittedGuard(definition.path, definition.guard) };
}

function permittedGuard(path: string, guard: ClassGuard): ClassGuard {
  const { permission } = guard;
  if (!guard.insert && !guard.update && !guard.remove) return guard;
  if (permission === undefined)
    throw new Error(`The system class ${path} lets MQL change its objects and names no permission for it.`);
  const { insert, update, remove, limit, reading } = guard;
  return {
    permission,
    reading,
    ...(limit && { limit }),
    ...(insert && {
      insert: async (principal, rows) => {
        requirePermission(principal, permission);
        return insert.call(guard, principal, rows);
      },
    }),
    ...(update && {
      update: async (principal, id, edits) => {
        requirePermission(principal, permission);
        return update.call(guard, principal, id, edits);
      },
    }),
    ...(remove && {
      remove: async (principal, ids) => {
        requirePermission(principal, permission);
        return remove.call(guard, principal, ids);
      },
    }),
  };
}
