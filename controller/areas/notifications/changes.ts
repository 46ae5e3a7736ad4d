import type { ObjectChange } from "../objects/index.ts";
import type { Notifications } from "./types.ts";

const SUBJECT = "datachange";

/** Publishes a frame for each changed object that a trigger announces, for receivers of `datachange`. */
export function publishChanges(
  notifications: Pick<Notifications, "publish" | "wanted">,
  changes: readonly ObjectChange[],
): void {
  for (const change of changes) {
    const { tenant, class: path, id, action, fields, object, before, relations, announced } = change;
    if (!announced || !notifications.wanted(tenant, SUBJECT)) continue;
    notifications.publish(tenant, {
      keyspace: ospaceIn(path),
      source: "objects",
      subject: SUBJECT,
      title: path,
      reply: "",
      msg: JSON.stringify({ class: path, id, action, fields }),
      about: {
        permission: "objects:read",
        class: path,
        id,
        ...object,
        ...(before && {
          before: { ...before, msg: JSON.stringify({ class: path, id, action: "DELETE", fields: {} }) },
        }),
        told: [],
        member: "fields",
        relations,
      },
    });
  }
}

/** True if the tenant has a receiver of `datachange`. */
export function wantsChanges(notifications: Pick<Notifications, "wanted">, tenant: string): boolean {
  return notifications.wanted(tenant, SUBJECT);
}

/** A class path begins with its tenant's name space. */
function ospaceIn(path: string): string {
  return `/${path.split("/")[1] ?? ""}`;
}
