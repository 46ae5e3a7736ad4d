export type * from "./types.ts";
export { POLICY_GAP_PATH, POLICY_RUN_PATH, registerPolicyClasses } from "./classes.ts";
export { policyRoutes } from "./routes.ts";
export { PolicyService } from "./service.ts";
