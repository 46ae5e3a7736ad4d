export { appcontextArea } from "./area.ts";
export { expiryOf } from "./expiry.ts";
export { AppcontextService } from "./service.ts";
export { ContextStores } from "./store.ts";
export type * from "./types.ts";
