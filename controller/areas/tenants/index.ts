export { TenantService } from "./service.ts";
export type * from "./types.ts";
