import type { Area } from "../../area.ts";
import { messageHostObjects } from "./host-objects.ts";
import { notificationSockets, type NotificationSocketDependencies } from "./routes.ts";

export function notificationsArea(parts: NotificationSocketDependencies): Area {
  return {
    name: "notifications",
    sockets: notificationSockets(parts),
    hostObjects: messageHostObjects(parts.notifications),
  };
}
