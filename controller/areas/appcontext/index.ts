export { appcontextArea } from "./area.ts";
export { AppcontextService } from "./service.ts";
export type * from "./types.ts";
