import type { Area } from "../../area.ts";
import { messageHostObject } from "./host-objects.ts";
import { notificationSockets, type NotificationSocketDependencies } from "./routes.ts";

export function notificationsArea(parts: NotificationSocketDependencies): Area {
  return {
    name: "notifications",
    sockets: notificationSockets(parts),
    hostObjects: [messageHostObject(parts.notifications)],
  };
}
