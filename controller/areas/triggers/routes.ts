import { Type } from "typebox";
import { TriggerList, TriggerName, TriggerPut, TriggerQuery } from "../../../common/api/triggers.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { TriggerService } from "./service.ts";

export function triggerRoutes(triggers: TriggerService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/mxobject/trigger",
      permission: "triggers:read",
      summary: "Triggers of a class",
      input: TriggerQuery,
      output: TriggerList,
      handler: async ({ principal, input }) => ({ message: [await triggers.list(principal, input.class)] }),
    }),
    endpoint({
      method: "PUT",
      path: "/mxobject/trigger",
      permission: "triggers:write",
      summary: "Insert or replace a trigger; its texts run with the rights of who sent it",
      input: TriggerPut,
      output: Type.String(),
      body: "json",
      revised: true,
      handler: async ({ principal, input, expected }) => ({
        message: "",
        revision: await triggers.put(principal, input, expected),
      }),
    }),
    endpoint({
      method: "DELETE",
      path: "/mxobject/trigger",
      permission: "triggers:write",
      summary: "Remove a trigger",
      input: TriggerName,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await triggers.remove(principal, input, expected);
        return { message: "", revision: undefined };
      },
    }),
  ];
}
