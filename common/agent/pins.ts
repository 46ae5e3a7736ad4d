import { KV_KEY_MAX_BYTES } from "../limits.ts";

/** True when records that name this rule are pinned to it; other texts cannot be a rule. */
export function isRuleKey(rule: string): boolean {
  return rule !== "" && new TextEncoder().encode(rule).length < KV_KEY_MAX_BYTES;
}

/** Microseconds that the writes of one entry have for themselves: one for each record, and one for an entry without. */
export function writeSpanUs(records: number): number {
  return Math.max(1, records);
}
