import { describe, expect, test } from "vitest";
import { KV_KEY_MAX_BYTES } from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { recordsEntry } from "../../../test/helpers/areas/ingest.ts";
import { policyNames, ruleKeys, spanUs, writeTimes } from "./batches.ts";

describe("entries of a batch", () => {
  test("are written at times that rise with each record, the first at the one that is pinned", () => {
    const batch = [recordsEntry(3, ["a", "b"], ""), told(4, "run", "p"), recordsEntry(7, [], ""), told(8, "run", "p")];
    expect([...writeTimes({ writeUs: 100 }, batch)]).toEqual([
      [3, 100],
      [4, 102],
      [7, 103],
      [8, 104],
    ]);
    expect(spanUs(batch)).toBe(5);
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
