export { tenantsArea } from "./area.ts";
export { CompanyService } from "./companies.ts";
export { TenantGate } from "./gate.ts";
export { TenantRemoval } from "./removal.ts";
export { TenantService } from "./service.ts";
export type * from "./types.ts";
