import { Type, type Static } from "typebox";

/** Path and query of `/websocket/:subject`; empty filters mean any. */
export const WebSocketInput = Type.Object({
  subject: Type.String({ minLength: 1, maxLength: 500, description: "Subject of the notifications" }),
  source: Type.Optional(Type.String({ maxLength: 500, description: "Only notifications of this source" })),
  title: Type.Optional(Type.String({ maxLength: 500, description: "Only notifications with this title" })),
});

/** One text frame, as JSON. */
export const NotificationFrame = Type.Object({
  keyspace: Type.String({ description: "Name space of the tenant" }),
  source: Type.String({ description: "Part of odp or of a script that sent it, such as objects" }),
  subject: Type.String({ description: "Subject of the notification" }),
  title: Type.String({ description: "Title of the notification" }),
  reply: Type.String({ description: "Empty; kept for older clients" }),
  msg: Type.String({ description: "The message; a JSON text for changes of data" }),
});
export type NotificationFrame = Static<typeof NotificationFrame>;
