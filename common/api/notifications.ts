import { Type, type Static } from "typebox";

/** Path and query of `/websocket/:subject`; empty filters mean any. */
export const WebSocketInput = Type.Object({
  subject: Type.String({ minLength: 1, maxLength: 500 }),
  source: Type.Optional(Type.String({ maxLength: 500 })),
  title: Type.Optional(Type.String({ maxLength: 500 })),
});

/** One text frame, as JSON. */
export const NotificationFrame = Type.Object({
  keyspace: Type.String(),
  source: Type.String(),
  subject: Type.String(),
  title: Type.String(),
  reply: Type.String(),
  msg: Type.String(),
});
export type NotificationFrame = Static<typeof NotificationFrame>;
