import type { Logger } from "pino";
import { NotificationFrame, WebSocketInput } from "../../../common/api/notifications.ts";
import { socketEndpoint, type SocketEndpoint } from "../../http/sockets/socket.ts";
import { Delivery } from "./delivery.ts";
import type { NotificationRights } from "./rights.ts";
import type { Notification, Notifications } from "./types.ts";

export interface NotificationSocketDependencies {
  readonly notifications: Notifications;
  readonly rights: Pick<NotificationRights, "visible">;
  readonly log: Logger;
}

export function notificationSockets({
  notifications,
  rights,
  log,
}: NotificationSocketDependencies): readonly SocketEndpoint[] {
  const frames = new WeakMap<Notification, string>();
  const textOf = (notification: Notification): string => frameOf(frames, notification);
  return [
    socketEndpoint({
      path: "/websocket/:subject",
      permission: "notifications:read",
      summary: "Notifications of a subject as JSON text frames",
      input: WebSocketInput,
      frames: NotificationFrame,
      open: ({ principal, input, line, present }) => {
        const visible: NotificationRights["visible"] = (receiver, notification) =>
          rights.visible(receiver, notification);
        const delivery = new Delivery({ log, line, present, textOf, visible });
        const end = notifications.subscribe(principal, input, (notification) => delivery.take(notification));
        line.closed.addEventListener("abort", end, { once: true });
      },
    }),
  ];
}

/** Encoded once for all receivers. */
function frameOf(frames: WeakMap<Notification, string>, notification: Notification): string {
  let text = frames.get(notification);
  if (text === undefined) {
    const { keyspace, source, subject, title, reply, msg } = notification;
    text = JSON.stringify({ keyspace, source, subject, title, reply, msg } satisfies NotificationFrame);
    frames.set(notification, text);
  }
  return text;
}
