import type { Area } from "../../area.ts";
import type { CompanyService } from "./companies.ts";
import type { TenantGate } from "./gate.ts";
import type { TenantRemoval } from "./removal.ts";
import { tenantRoutes } from "./routes.ts";
import type { TenantUse } from "./use.ts";

export interface TenantParts {
  readonly companies: CompanyService;
  readonly gate: TenantGate;
  readonly removal: TenantRemoval;
  readonly use: TenantUse;
}

export function tenantsArea({ companies, gate, removal, use }: TenantParts): Area {
  return {
    name: "tenants",
    endpoints: tenantRoutes(companies),
    levels: [
      {
        name: "odp_tenant_objects",
        help: "Objects of tenants with a quota, as far as they are counted.",
        byTenant: () => [...use.all()].map(([tenant, { objects }]) => [tenant, objects]),
      },
      {
        name: "odp_tenant_bytes",
        help: "Bytes of objects and contents of tenants with a quota, as far as they are counted.",
        byTenant: () => [...use.all()].map(([tenant, { bytes }]) => [tenant, bytes]),
      },
      {
        name: "odp_tenants_beyond_quota",
        help: "Tenants that exceed a quota.",
        value: () => [...use.all()].filter(([, { beyond }]) => beyond.length > 0).length,
      },
    ],
    start: () => removal.start(),
    maintain: (tenant) => use.maintain(tenant),
    leave: (tenant) => use.forget(tenant),
    keysOf: (tenant) => use.keysOf(tenant),
    stop: () => removal.stop(),
    close: async () => {
      await use.close();
      await gate.close();
    },
  };
}
