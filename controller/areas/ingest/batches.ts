import { isRuleKey, writeSpanUs } from "../../../common/agent/pins.ts";
import type { Entry, Pin } from "../../../proto/gen/agent/v1/agent.ts";
import type { PreparedBatch } from "./types.ts";

export function hasRecords(entries: readonly Entry[]): boolean {
  return entries.some(({ body }) => body?.$case === "records");
}

export function ruleKeys(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(entries.flatMap((entry) => ruleKey(entry) ?? []));
}

/** Policies that the entries name. A gap of the agent itself names no policy. */
export function policyNames(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(entries.flatMap((entry) => policyName(entry) ?? policyOfRecords(entry) ?? []));
}

/**
 * Policy that a run or gap names. `undefined` for a gap of the agent itself and for all other entries, also records.
 */
export function policyName({ body }: Entry): string | undefined {
  if (body?.$case === "run") return body.value.policy;
  return body?.$case === "gap" && body.value.policy !== "" ? body.value.policy : undefined;
}

function policyOfRecords({ body }: Entry): string | undefined {
  return body?.$case === "records" ? body.value.policy : undefined;
}

/**
 * Write times in microseconds by the entry's sequence: each is the time of the entry's first write. Times rise with the
 * sequence, and each record has a microsecond of its own. A repeated batch gets the same times.
 */
export function writeTimes({ writeUs }: Pick<Pin, "writeUs">, entries: readonly Entry[]): ReadonlyMap<number, number> {
  const times = new Map<number, number>();
  let nextUs = writeUs;
  for (const { sequence, body } of entries) {
    times.set(sequence, nextUs);
    nextUs += writeSpanUs(body?.$case === "records" ? body.value.records.length : 0);
  }
  return times;
}

/** Length in microseconds of the span that `writeTimes` gives these entries. */
export function spanUs(entries: readonly Entry[]): number {
  return entries.reduce(
    (sum, { body }) => sum + writeSpanUs(body?.$case === "records" ? body.value.records.length : 0),
    0,
  );
}

/** `undefined` if the entry names no rule, or if the name cannot be the key of a rule. */
function ruleKey({ body }: Entry): string | undefined {
  return body?.$case === "records" && isRuleKey(body.value.rule) ? body.value.rule : undefined;
}

/** Identifies an entry among the entries of all hosts of a tenant. */
export function entryIdentity({ source }: Pick<PreparedBatch, "source">, entry: Entry): string {
  return `${source.host}/${source.streamId}/${entry.sequence}`;
}
