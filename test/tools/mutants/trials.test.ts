import { describe, expect, it } from "vitest";
import { mutationsOf } from "./mutations.ts";
import { plansFor } from "./plan.ts";
import { isBroken, leftFor, noticed, type TrialEvent } from "./trials.ts";

const NEAR = { "a.test.ts": [1, 2, 3], "b.test.ts": [2, 3] };
const measured = (test: string, reached: readonly number[]): TrialEvent => ({ kind: "measured", test, reached, ms: 1 });
const found = (test: string, number: number): TrialEvent => ({ kind: "noticed", test, number, why: "failed" });
const broken = (test: string): TrialEvent => ({ kind: "broken", test, why: "failed" });

describe("a test tries", () => {
  it("each near change whose code it runs, once, until a test notices it", () => {
    expect(leftFor("a.test.ts", NEAR, [])).toEqual([1, 2, 3]);
    const events: TrialEvent[] = [measured("a.test.ts", [3, 1, 9])];
    expect(leftFor("a.test.ts", NEAR, events)).toEqual([1, 3]);
    events.push(found("a.test.ts", 1), { kind: "unnoticed", test: "a.test.ts", number: 3 });
    expect(leftFor("a.test.ts", NEAR, events)).toEqual([]);
    expect(leftFor("b.test.ts", NEAR, events)).toEqual([2, 3]);
    events.push(found("b.test.ts", 3));
    expect(leftFor("b.test.ts", NEAR, events)).toEqual([2]);
  });

  it("its changes again when it then fails without one, and nothing when that happens twice", () => {
    const events = [
      measured("a.test.ts", [1, 2, 3]),
      found("a.test.ts", 1),
      found("b.test.ts", 2),
      broken("a.test.ts"),
    ];
    expect([...noticed(events).keys()]).toEqual([2]);
    expect(leftFor("a.test.ts", NEAR, events)).toEqual([1, 3]);
    events.push(found("a.test.ts", 1), broken("a.test.ts"));
    expect(leftFor("a.test.ts", NEAR, events)).toEqual([]);
    expect(["a.test.ts", "b.test.ts"].map((test) => isBroken(test, events))).toEqual([true, false]);
  });
});

it("plans follow one another from the nearest tests outwards, and have each test for each change once", () => {
  const [mutation] = mutationsOf("function f() { start(); }");
  const drawn = ["agent/outbox/copy.ts", "agent/outbox/batches.ts"].map((file, at) => {
    return { file, mutation: mutation!, number: at + 1 };
  });
  const [own, folder, ...others] = plansFor(drawn, [], "events");
  expect(own?.near).toEqual({ "agent/outbox/copy.test.ts": [1], "agent/outbox/batches.test.ts": [2] });
  expect(folder?.near).toMatchObject({ "agent/outbox/pins.test.ts": [1, 2], "agent/outbox/copy.test.ts": [2] });
  expect(others.flatMap(({ tests }) => tests)).not.toContain("agent/outbox/pins.test.ts");
  const [atLoad] = mutationsOf("start();");
  const [only] = plansFor([{ file: "agent/outbox/copy.ts", mutation: atLoad!, number: 1 }], [], "events");
  expect(only?.near, "runs once").toEqual({ "agent/outbox/copy.test.ts": [] });
});
