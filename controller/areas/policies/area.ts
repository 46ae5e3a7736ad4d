import type { Area } from "../../area.ts";
import { policyClasses } from "./classes.ts";
import { policyHostObject } from "./host-objects.ts";
import { policyRoutes } from "./routes.ts";
import type { PolicyPreviews } from "./preview/preview.ts";
import { previewRoutes } from "./preview/routes.ts";
import type { PolicyService } from "./service.ts";

export function policiesArea(policies: PolicyService, previews: PolicyPreviews): Area {
  return {
    name: "policies",
    endpoints: [...policyRoutes(policies), ...previewRoutes(previews)],
    hostObjects: [policyHostObject(policies)],
    classes: policyClasses(policies),
    repair: (tenant) => policies.repair(tenant),
    maintain: (tenant) => policies.maintain(tenant),
    leave: (tenant) => policies.targets.leave(tenant),
    close: () => policies.targets.close(),
  };
}
