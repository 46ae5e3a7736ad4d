export { notificationsArea } from "./area.ts";
export { publishChanges, wantsChanges } from "./changes.ts";
export { requireSending, sendFrame } from "./sending.ts";
export { NotificationRights } from "./rights.ts";
export { NotificationHub } from "./service.ts";
export type * from "./types.ts";
