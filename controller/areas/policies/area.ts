import type { Area } from "../../area.ts";
import { policyClasses } from "./classes.ts";
import { policyHostObject } from "./host-objects.ts";
import { policyRoutes } from "./routes.ts";
import type { PolicyPreviews } from "./preview/preview.ts";
import { previewRoutes } from "./preview/routes.ts";
import type { SshPolicyRunner } from "./ssh/runner.ts";
import type { PolicyService } from "./service.ts";

interface PolicyParts {
  readonly policies: PolicyService;
  readonly previews: PolicyPreviews;
  readonly overSsh: Pick<SshPolicyRunner, "start" | "stop">;
}

export function policiesArea({ policies, previews, overSsh }: PolicyParts): Area {
  return {
    name: "policies",
    endpoints: [...policyRoutes(policies), ...previewRoutes(previews)],
    hostObjects: [policyHostObject(policies)],
    classes: policyClasses(policies),
    start: () => overSsh.start(),
    repair: (tenant) => policies.repair(tenant),
    maintain: (tenant) => policies.maintain(tenant),
    leave: (tenant) => policies.targets.leave(tenant),
    stop: () => overSsh.stop(),
    close: () => policies.targets.close(),
  };
}
