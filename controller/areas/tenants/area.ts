import type { Area } from "../../area.ts";
import type { CompanyService } from "./companies.ts";
import type { TenantGate } from "./gate.ts";
import type { TenantRemoval } from "./removal.ts";
import { tenantRoutes } from "./routes.ts";

export interface TenantParts {
  readonly companies: CompanyService;
  readonly gate: TenantGate;
  readonly removal: TenantRemoval;
}

export function tenantsArea({ companies, gate, removal }: TenantParts): Area {
  return {
    name: "tenants",
    endpoints: tenantRoutes(companies),
    start: () => removal.start(),
    stop: () => removal.stop(),
    close: () => gate.close(),
  };
}
