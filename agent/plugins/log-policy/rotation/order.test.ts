import { describe, expect, it, test } from "vitest";
import { logWork } from "../log-policy.ts";
import { inOrder } from "./found.ts";
import { comparePlaces, logOf, placeOf } from "./order.ts";

describe("files that match a log policy", () => {
  it("are a log each without order, one log with it, and one per differentiator", () => {
    expect(logOf({}, "a.log", {})).not.toBe(logOf({}, "b.log", {}));
    expect(logOf({ priority: ["day"] }, "a.log", { day: "1" })).toBe(
      logOf({ priority: ["day"] }, "b.log", { day: "2" }),
    );
    const spec = { differentiator: "app", priority: ["day"] };
    expect(logOf(spec, "a-1", { app: "a" })).toBe(logOf(spec, "a-2", { app: "a" }));
    expect(logOf(spec, "a-1", { app: "a" })).not.toBe(logOf(spec, "b-1", { app: "b" }));
  });

  it("follow one another by translated texts, numbers and texts, ascending", () => {
    const spec = { priority: ["month", "day"], translation: { month: { jan: 1, feb: 2, dec: 12 } } };
    const days = [
      { month: "dec", day: "1" },
      { month: "jan", day: "10" },
      { month: "feb", day: "3" },
      { month: "jan", day: "9" },
    ];
    const sorted = days
      .map((groups) => ({ groups, place: placeOf(spec, groups) }))
      .sort((a, b) => comparePlaces(a.place, b.place));
    expect(sorted.map(({ groups }) => `${groups.month} ${groups.day}`)).toEqual(["jan 9", "jan 10", "feb 3", "dec 1"]);
  });
});

test("packed files follow one another by their times: a rotation may rename them while they are listed", () => {
  const at = (path: string, mtimeMs: number) => ({ path, mtimeMs, id: path, size: 1 });
  const found = [
    { at: at("app.log.2.gz", 2_000), home: "app.log", head: "b" },
    { at: at("app.log.1.gz", 1_000), home: "app.log", head: "a" },
    { at: at("app.log.1", 3_000), home: "app.log" },
    { at: at("app.log.2", 4_000), home: "app.log" },
  ];
  const work = logWork(
    { name: "p", revision: 1, spec: "", depot: undefined },
    { kind: "log", name: "p", rule: "/matrix/rules/a", dir: "/logs", match: "^app\\.log$" },
    { log: () => undefined } as never,
  );
  expect(inOrder(found, work).map(({ at: { path } }) => path)).toEqual([
    "app.log.1.gz",
    "app.log.2.gz",
    "app.log.2",
    "app.log.1",
  ]);
});
