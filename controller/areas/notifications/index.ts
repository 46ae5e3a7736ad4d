export { notificationSockets } from "./routes.ts";
export { NotificationHub } from "./service.ts";
export type * from "./types.ts";
