import type { ConfigOwner } from "../../config/index.ts";
import { isReadable, type RuleService } from "../service.ts";

/** Rules as configuration entries: the same texts are refused or hidden as in the interface of rules. */
export function ruleOwner(rules: Pick<RuleService, "check">): ConfigOwner {
  return {
    prefix: "/rules",
    permissions: { read: "rules:read", write: "rules:write" },
    sees: (principal, _key, text) => isReadable(principal, text),
    check: (principal, key, text) => rules.check(principal, key, text),
  };
}
