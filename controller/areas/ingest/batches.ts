import { AppError } from "../../../common/errors.ts";
import { INGEST_BATCH_MAX_ENTRIES, INGEST_RULES_PER_BATCH_MAX, KV_KEY_MAX_BYTES } from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import type { Mark } from "./store.ts";

/** Entries above the mark. That they come in their order is the sender's duty. */
export function freshEntries(entries: readonly Entry[], acknowledged: number): readonly Entry[] {
  const fresh = entries.filter((entry) => entry.sequence > acknowledged);
  fresh.forEach((entry, index) => {
    const before = fresh[index - 1]?.sequence ?? acknowledged;
    if (entry.sequence <= before) throw new AppError("invalid", `Entry ${entry.sequence} comes after ${before}.`);
  });
  return fresh;
}

/** The first of these entries that go together: up to a hole, to the end of a batch begun before, or to a bound. */
export function nextBatch(entries: readonly Entry[], mark: Mark): readonly Entry[] {
  const first = entries[0]?.sequence ?? 0;
  const edge = mark.begun && first <= mark.begun.last ? mark.begun.last : Infinity;
  const rules = new Set<string>();
  const batch: Entry[] = [];
  for (const entry of entries) {
    if (entry.sequence !== first + batch.length || entry.sequence > edge || batch.length === INGEST_BATCH_MAX_ENTRIES)
      break;
    const key = ruleKey(entry);
    if (key !== undefined) rules.add(key);
    if (rules.size > INGEST_RULES_PER_BATCH_MAX) break;
    batch.push(entry);
  }
  return batch;
}

export function ruleKeys(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(entries.flatMap((entry) => ruleKey(entry) ?? []));
}

/** Policies that runs and gaps name. A gap of the agent itself names none. */
export function policyNames(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(entries.flatMap((entry) => policyName(entry) ?? []));
}

export function policyName({ body }: Entry): string | undefined {
  if (body?.$case === "run") return body.value.policy;
  return body?.$case === "gap" && body.value.policy !== "" ? body.value.policy : undefined;
}

/** Absent where no rule is named, and where the name cannot be one. */
function ruleKey({ body }: Entry): string | undefined {
  if (body?.$case !== "records") return undefined;
  const { rule } = body.value;
  return rule !== "" && Buffer.byteLength(rule) < KV_KEY_MAX_BYTES ? rule : undefined;
}
