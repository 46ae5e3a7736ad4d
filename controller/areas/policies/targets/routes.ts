import { Type } from "typebox";
import { HeldTargets, HeldTargetsConfirm, HeldTargetsList } from "../../../../common/api/policies.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { PolicyTargets } from "./service.ts";

export function targetRoutes(targets: PolicyTargets): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/monitoring/targets",
      permission: "policies:read",
      summary: "Removals of hosts from policies that wait for a confirmation",
      input: HeldTargetsList,
      output: Type.Array(HeldTargets),
      handler: async ({ principal }) => ({ message: [...(await targets.held(principal))] }),
    }),
    endpoint({
      method: "POST",
      path: "/monitoring/targets/confirm",
      permission: "policies:run",
      summary: "Carries out a removal of hosts that is held",
      input: HeldTargetsConfirm,
      output: HeldTargets,
      handler: async ({ principal, input }) => ({ message: await targets.confirm(principal, input.id) }),
    }),
  ];
}
