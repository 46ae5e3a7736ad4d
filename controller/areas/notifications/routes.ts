import { type NotificationFrame, WebSocketInput } from "../../../common/api/notifications.ts";
import { socketEndpoint, type SocketEndpoint } from "../../http/socket.ts";
import type { Notification, Notifications } from "./types.ts";

export function notificationSockets(notifications: Notifications): readonly SocketEndpoint[] {
  const frames = new WeakMap<Notification, string>();
  return [
    socketEndpoint({
      path: "/websocket/:subject",
      permission: "notifications:read",
      summary: "Notifications of a subject as JSON text frames",
      input: WebSocketInput,
      open: ({ principal, input, line }) => {
        const end = notifications.subscribe({ tenant: principal.tenant, ...input }, (notification) =>
          line.send(frameOf(frames, notification)),
        );
        line.closed.addEventListener("abort", end, { once: true });
      },
    }),
  ];
}

/** Made once, however many receive it. */
function frameOf(frames: WeakMap<Notification, string>, notification: Notification): string {
  let text = frames.get(notification);
  if (text === undefined) {
    const { keyspace, source, subject, title, reply, msg } = notification;
    text = JSON.stringify({ keyspace, source, subject, title, reply, msg } satisfies NotificationFrame);
    frames.set(notification, text);
  }
  return text;
}
