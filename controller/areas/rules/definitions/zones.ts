import { readRuleText, single } from "./options.ts";
import { checkPinned } from "../store.ts";
import { digestOf, type RecordZones } from "./supplements.ts";
import type { Rule } from "../types.ts";

/**
 * Pins the zones of a host and its policies with the rule, unless UTC applies or the rule has a zone.
 * `AppError("too_large")` beyond `RULE_PINNED_MAX_BYTES`.
 */
export function withZones(rule: Rule, zones: RecordZones): Rule {
  const isUtc = zones.host === undefined && Object.keys(zones.policies).length === 0;
  if (isUtc || single(readRuleText(rule.text), "time_zone") !== undefined) return rule;
  const supplements = { ...rule.supplements, zones };
  checkPinned({ ...rule, supplements });
  return { ...rule, supplements, digest: digestOf(rule.text, supplements) };
}

/** Zone for times without a zone in records of the policy. `undefined`: the zone of the rule, or UTC. */
export function zoneFor({ supplements: { zones } }: Rule, policy: string): string | undefined {
  if (zones === undefined) return undefined;
  return Object.hasOwn(zones.policies, policy) ? zones.policies[policy] : zones.host;
}
