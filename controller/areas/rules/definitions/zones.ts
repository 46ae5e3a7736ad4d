import { readRuleText, single } from "./options.ts";
import { checkPinned } from "../store.ts";
import { digestOf, type RecordZones } from "./supplements.ts";
import type { Rule } from "../types.ts";

/** The rule with the zones of those whose records it is to parse: they are pinned with it. `AppError("too_large")`. */
export function withZones(rule: Rule, zones: RecordZones): Rule {
  const isUtc = zones.host === undefined && Object.keys(zones.policies).length === 0;
  if (isUtc || single(readRuleText(rule.text), "time_zone") !== undefined) return rule;
  const supplements = { ...rule.supplements, zones };
  checkPinned({ ...rule, supplements });
  return { ...rule, supplements, digest: digestOf(rule.text, supplements) };
}

/** The zone of records of a policy; absent: UTC, or what the rule says. */
export function zoneFor({ supplements: { zones } }: Rule, policy: string): string | undefined {
  if (zones === undefined) return undefined;
  return Object.hasOwn(zones.policies, policy) ? zones.policies[policy] : zones.host;
}
