import type { ConfigOwner } from "../../config/index.ts";
import { isReadable, type RuleService } from "../service.ts";

/** Rules as entries of configuration: by no way there what their own interface refuses or does not show. */
export function ruleOwner(rules: Pick<RuleService, "check">): ConfigOwner {
  return {
    prefix: "/rules",
    permissions: { read: "rules:read", write: "rules:write" },
    sees: (principal, _key, text) => isReadable(principal, text),
    check: (principal, key, text) => rules.check(principal, key, text),
  };
}
