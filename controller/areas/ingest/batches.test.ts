import { describe, expect, test } from "vitest";
import { INGEST_BATCH_MAX_ENTRIES, INGEST_RULES_PER_BATCH_MAX, KV_KEY_MAX_BYTES } from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { recordsEntry } from "../../../test/helpers/ingest.ts";
import { freshEntries, nextBatch, policyNames, ruleKeys } from "./batches.ts";
import type { Mark } from "./store.ts";

const MARK: Mark = { host: "h", claim: "c", acknowledged: 0, nextWriteUs: 0 };
const entries = (...sequences: readonly number[]) => sequences.map((sequence) => recordsEntry(sequence, [], ""));
const upTo = (last: number) => Array.from({ length: last }, (_, at) => at + 1);
const sequencesOf = (batch: readonly Entry[]) => batch.map(({ sequence }) => sequence);
const begunTo = (first: number, last: number): Mark => ({ ...MARK, begun: { first, last, rules: {}, writeUs: 1 } });

describe("entries of a stream", () => {
  test("are fresh above the mark, and refused in any other order than theirs", () => {
    expect(sequencesOf(freshEntries(entries(1, 2, 3, 5), 2))).toEqual([3, 5]);
    expect(() => freshEntries(entries(3, 3), 2)).toThrow("Entry 3 comes after 3.");
    expect(() => freshEntries(entries(4, 3), 2)).toThrow("Entry 3 comes after 4.");
  });

  test("go together up to a hole", () => {
    expect(sequencesOf(nextBatch(entries(3, 4, 6, 7), MARK))).toEqual([3, 4]);
  });

  test("go together to the end of what was begun, and no further; what begins behind it is free", () => {
    expect(sequencesOf(nextBatch(entries(3, 4, 5), begunTo(2, 4)))).toEqual([3, 4]);
    expect(sequencesOf(nextBatch(entries(4, 5), begunTo(2, 4)))).toEqual([4]);
    expect(sequencesOf(nextBatch(entries(5, 6), begunTo(2, 4)))).toEqual([5, 6]);
  });

  test("go together up to the bound of a batch", () => {
    expect(nextBatch(entries(...upTo(INGEST_BATCH_MAX_ENTRIES)), MARK)).toHaveLength(INGEST_BATCH_MAX_ENTRIES);
    expect(nextBatch(entries(...upTo(INGEST_BATCH_MAX_ENTRIES + 1)), MARK)).toHaveLength(INGEST_BATCH_MAX_ENTRIES);
  });

  test("go together as long as they name no more rules than a mark may hold", () => {
    const ruled = upTo(INGEST_RULES_PER_BATCH_MAX + 1).map((at) => recordsEntry(at, [], `rule-${at}`));
    expect(nextBatch(ruled, MARK)).toHaveLength(INGEST_RULES_PER_BATCH_MAX);
    expect(nextBatch(ruled.slice(0, -1), MARK)).toHaveLength(INGEST_RULES_PER_BATCH_MAX);
  });

  test("name a rule only when it is one that a store could have", () => {
    const longest = "r".repeat(KV_KEY_MAX_BYTES - 1);
    const named = ["", "a", longest, `${longest}r`, "a"].map((rule, at) => recordsEntry(at + 1, [], rule));
    expect([...ruleKeys([...named, told(9, "run", "p")])]).toEqual(["a", longest]);
  });

  test("name a policy with its runs and gaps; a gap of the agent itself names none, and neither do records", () => {
    const named = [told(1, "run", "p"), told(2, "gap", "q"), told(3, "gap", ""), recordsEntry(4, [], "a")];
    expect([...policyNames(named)]).toEqual(["p", "q"]);
  });
});

function told(sequence: number, $case: "run" | "gap", policy: string): Entry {
  const ran = {
    policyRevision: 1,
    scheduledMs: 1,
    state: "ok",
    code: 0,
    message: "",
    startedMs: 1,
    endedMs: 2,
    records: 0,
  };
  const lost = { source: "", reason: "lost", unit: "records", count: 1, fromMs: 1, toMs: 2 };
  const body = $case === "run" ? { $case, value: { policy, ...ran } } : { $case, value: { policy, ...lost } };
  return { sequence, timeMs: 1, traceparent: "", body };
}
