import { KV_KEY_MAX_BYTES } from "../limits.ts";

/** True if records that name this rule are pinned to it. Any other text cannot be the key of a rule. */
export function isRuleKey(rule: string): boolean {
  return rule !== "" && new TextEncoder().encode(rule).length < KV_KEY_MAX_BYTES;
}

/** Microseconds reserved for the write times of one entry: one per record, and at least one. */
export function writeSpanUs(records: number): number {
  return Math.max(1, records);
}
