export { tenantsArea } from "./area.ts";
export { CompanyService } from "./companies.ts";
export { TenantGate } from "./gate.ts";
export { countQuotaOf, quotaOf } from "./quotas.ts";
export { TenantRemoval } from "./removal.ts";
export { TenantService } from "./service.ts";
export { keepInRoom, tenantSizes } from "./sizes.ts";
export type * from "./types.ts";
export { TenantUse } from "./use.ts";
