import { Type } from "typebox";
import { KeyStatus, KeyStatusInput } from "../../../common/api/keys.ts";
import { HTTP_SMALL_BODY_MAX_BYTES, KEY_STATUS_DEADLINE_MS } from "../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { KeyService } from "./service.ts";

export function keyRoutes(keys: KeyService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/key/status",
      permission: "tenants:write",
      summary: "Which keys seal how much of what, for administrators of the first tenant",
      input: KeyStatusInput,
      output: KeyStatus,
      deadlineMs: () => KEY_STATUS_DEADLINE_MS,
      handler: async ({ principal }) => ({ message: await keys.status(principal) }),
    }),
    endpoint({
      method: "POST",
      path: "/key/reload",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "tenants:write",
      body: "json",
      summary: "Has the controller read its keys again where they come from",
      input: KeyStatusInput,
      output: Type.String(),
      handler: async ({ principal }) => {
        await keys.reload(principal);
        return { message: "" };
      },
    }),
  ];
}
