import { isRuleKey, writeSpanUs } from "../../../common/agent/pins.ts";
import type { Entry, Pin } from "../../../proto/gen/agent/v1/agent.ts";
import type { PreparedBatch } from "./types.ts";

export function hasRecords(entries: readonly Entry[]): boolean {
  return entries.some(({ body }) => body?.$case === "records");
}

export function ruleKeys(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(entries.flatMap((entry) => ruleKey(entry) ?? []));
}

/** Policies that entries name. A gap of the agent itself names none. */
export function policyNames(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(entries.flatMap((entry) => policyName(entry) ?? policyOfRecords(entry) ?? []));
}

/** The policy that says how a run or gap came about; records are their rule's. */
export function policyName({ body }: Entry): string | undefined {
  if (body?.$case === "run") return body.value.policy;
  return body?.$case === "gap" && body.value.policy !== "" ? body.value.policy : undefined;
}

function policyOfRecords({ body }: Entry): string | undefined {
  return body?.$case === "records" ? body.value.policy : undefined;
}

/**
 * The time of the first write of each entry, by its sequence: they rise, and each record has a microsecond of its own.
 * A repetition has the same ones.
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

/** Microseconds that the writes of these entries take. */
export function spanUs(entries: readonly Entry[]): number {
  return entries.reduce(
    (sum, { body }) => sum + writeSpanUs(body?.$case === "records" ? body.value.records.length : 0),
    0,
  );
}

/** Absent where no rule is named, and where the name cannot be one. */
function ruleKey({ body }: Entry): string | undefined {
  return body?.$case === "records" && isRuleKey(body.value.rule) ? body.value.rule : undefined;
}

/** Names an entry among all of all hosts. */
export function entryIdentity({ source }: Pick<PreparedBatch, "source">, entry: Entry): string {
  return `${source.host}/${source.streamId}/${entry.sequence}`;
}
