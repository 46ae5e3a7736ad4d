export { TenantService, type TenantDependencies } from "./service.ts";
export type * from "./types.ts";
