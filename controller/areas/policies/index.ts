export { policiesArea } from "./area.ts";
export type * from "./types.ts";
export { POLICY_GAP_PATH, POLICY_RUN_PATH, policyClasses } from "./classes.ts";
export { policyRoutes } from "./routes.ts";
export { PolicyConfs } from "./conf/service.ts";
export { PolicyTargets } from "./targets/service.ts";
export { PolicyPreviews } from "./preview/preview.ts";
export { SshPolicyRunner } from "./ssh/runner.ts";
export { PolicyService } from "./service.ts";
