import { AppError } from "../../../common/errors.ts";
import { DAY_SECONDS, TRIGGER_ASIDE_TTL_DAYS } from "../../../common/limits.ts";
import { columns, type ClassGuard, type Edit, type SystemClass, type Unrestricted } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";

/** Class of the changes that a trigger has not processed yet or on which it failed. Relative to the tenant's ospace. */
export const ASIDE_PATH = "/system/triggerevent";

/**
 * `waiting`: its owner will run it, or maintenance if it has no owner. `failed`: it stays until a user sets it to
 * `waiting`.
 */
export type AsideState = "waiting" | "failed";

export function asideClass(objects: Unrestricted<"update" | "remove">): SystemClass {
  return {
    path: ASIDE_PATH,
    columns: [
      ...columns("varchar", {
        trigger: "Class and name of the trigger: class#name",
        object: "Id of the object that was changed; its class is in the event",
        action: "INSERT, UPDATE or DELETE",
        state: "waiting, or failed until a user sets it to waiting",
        owner: "Controller that is to run it; empty: any",
      }),
      ...columns("timestamp", { time: "Time of the change, in whole milliseconds" }),
      ...columns("int", {
        // In a class that was created before this column existed, it is not a key column.
        us: "Microseconds of the change behind its time, 0 to 999",
        attempts: "Number of runs that failed before it was set aside; 0: it was not",
      }),
      ...columns("text", {
        error: "Error of the last run that failed; empty: none did",
        event: "The change as JSON text; values that are too long are left out",
      }),
    ],
    keys: ["trigger", "object", "time", "action", "us"],
    indexes: ["trigger", "object", "state"],
    options: { keyMode: "md5", ttlSeconds: TRIGGER_ASIDE_TTL_DAYS * DAY_SECONDS },
    guard: asideGuard(objects),
  };
}

/** MQL may set a change to waiting again (`SET state='waiting'`), and may remove it. */
function asideGuard(objects: Unrestricted<"update" | "remove">): ClassGuard {
  return {
    // The event contains a whole object, which may be of any class.
    reading: { permission: "triggers:read" },
    permission: "triggers:write",
    update: (principal, id, edits) => {
      if (!edits.every(isAgain))
        throw new AppError("unsupported", "Of a change that was set aside only the state can be set, to 'waiting'.");
      return objects.unrestricted.update(platform(principal), { id, class: principal.ospace + ASIDE_PATH }, [
        { column: "state", operation: "set", value: "waiting" },
        { column: "owner", operation: "set", value: null },
      ]);
    },
    remove: (principal, ids) =>
      objects.unrestricted.remove(
        platform(principal),
        ids.map((id) => ({ id, class: principal.ospace + ASIDE_PATH })),
      ),
  };
}

function isAgain({ column, operation, value }: Edit): boolean {
  return column === "state" && operation === "set" && value === "waiting";
}

function platform({ tenant, ospace, traceparent }: Principal): Principal {
  return systemPrincipal(tenant, ospace, traceparent);
}
