import { PolicyPreview, PolicyPreviewReply } from "../../../../common/api/policy-previews.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { PolicyPreviews } from "./preview.ts";

export function previewRoutes(previews: PolicyPreviews): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/monitoring/policy/preview",
      permission: "policies:write",
      summary:
        "Shows the records that a policy, saved or given, has on a host now, and what its rule makes of them; also needs policies:run and jobs:run; nothing is stored",
      body: "json",
      input: PolicyPreview,
      output: PolicyPreviewReply,
      handler: async ({ principal, input, signal }) => {
        const { warnings, ...message } = await previews.run(principal, input, signal);
        return { message, warnings };
      },
    }),
  ];
}
