import type { Area } from "../../area.ts";
import { policyClasses } from "./classes.ts";
import { policyRoutes } from "./routes.ts";
import type { PolicyService } from "./service.ts";

export function policiesArea(policies: PolicyService): Area {
  return {
    name: "policies",
    endpoints: policyRoutes(policies),
    classes: policyClasses(policies),
    repair: (tenant) => policies.repair(tenant),
    maintain: (tenant) => policies.maintain(tenant),
  };
}
