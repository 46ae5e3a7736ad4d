import type { Area } from "../../area.ts";
import { policyClasses } from "./classes.ts";
import { policyHostObject } from "./host-objects.ts";
import { policyRoutes } from "./routes.ts";
import type { PolicyService } from "./service.ts";

export function policiesArea(policies: PolicyService): Area {
  return {
    name: "policies",
    endpoints: policyRoutes(policies),
    hostObjects: [policyHostObject(policies)],
    classes: policyClasses(policies),
    repair: (tenant) => policies.repair(tenant),
    maintain: (tenant) => policies.maintain(tenant),
    leave: (tenant) => policies.targets.leave(tenant),
    close: () => policies.targets.close(),
  };
}
