import type { Area } from "../../area.ts";
import type { FileParser } from "./parse-file.ts";
import { ruleRoutes } from "./routes.ts";
import type { RuleService } from "./service.ts";

export interface RuleParts {
  readonly rules: RuleService;
  readonly fileParser: FileParser;
}

export function rulesArea(parts: RuleParts): Area {
  return { name: "rules", endpoints: ruleRoutes(parts) };
}
