import { Type } from "typebox";
import { Pattern, PatternList, PatternName, PatternPut } from "../../../../common/api/rules.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { PatternService } from "./patterns.ts";

export function patternRoutes(patterns: PatternService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/pattern",
      permission: "rules:read",
      summary: "Grok patterns of users",
      input: Type.Object({}),
      output: PatternList,
      handler: async ({ principal }) => ({ message: [...(await patterns.list(principal))] }),
    }),
    endpoint({
      method: "GET",
      path: "/pattern/:name",
      permission: "rules:read",
      summary: "One grok pattern, also of the standard set",
      input: PatternName,
      output: Pattern,
      revised: true,
      handler: async ({ principal, input }) => {
        const pattern = await patterns.find(principal, input.name);
        return { message: pattern, revision: pattern.revision };
      },
    }),
    endpoint({
      method: "POST",
      path: "/pattern/:name",
      permission: "rules:write",
      summary:
        "Insert or replace a grok pattern, tried on its sample: meta tells what it captures, warnings that it does not match",
      input: PatternPut,
      output: Type.String(),
      body: "form",
      revised: true,
      handler: async ({ principal, input: { name, pattern, eg = "" }, expected }) => {
        const { sample, warnings, revision } = await patterns.put(principal, { name, pattern, eg }, expected);
        return { message: "", meta: { sample }, warnings, revision };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/pattern/:name",
      permission: "rules:write",
      summary: "Remove a grok pattern that no other uses",
      input: PatternName,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await patterns.remove(principal, input.name, expected);
        return { message: "", revision: undefined };
      },
    }),
  ];
}
