import { expect, test } from "vitest";
import { testPrincipal, TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { levelOf, RunLogs } from "./index.ts";
import type { Said } from "./service.ts";

const BOUNDS = { entries: 2, characters: 30 };

test("of a run its begin, its first entries, its failure and the number of others are kept", async () => {
  const clock = new TestClock();
  const kept: Said[] = [];
  const append = (_: unknown, said: Said) => Promise.resolve(void kept.push(said));
  const runs = new RunLogs({ kind: "serverjs", logs: { append }, runtime: testRuntime(clock) }, BOUNDS);
  const beganMs = clock.nowMs();
  const log = runs.begin();
  clock.advance(10);
  for (const message of ["one", "2".repeat(31), "three", "four"]) log.add(levelOf("info"), message);
  log.fail("!".repeat(31));
  await runs.keep(testPrincipal(), "/a.js", log);
  const { run, entries, ...about } = kept[0]!;
  expect(run).not.toBe("");
  expect(about).toEqual({ kind: "serverjs", name: "/a.js", beganMs });
  const timeMs = beganMs + 10;
  expect(entries).toEqual([
    { level: levelOf("info"), msg: "one", timeMs },
    { level: levelOf("info"), msg: `${"2".repeat(18)} … (cut off)`, timeMs },
    { level: levelOf("error"), msg: `${"!".repeat(18)} … (cut off)`, timeMs },
    { level: levelOf("warn"), msg: "2 more entries were left out.", timeMs },
  ]);
});

test("a log that cannot be kept fails no run", async () => {
  const append = () => Promise.reject(new Error("the store is away"));
  const runs = new RunLogs({ kind: "rule", logs: { append }, runtime: testRuntime(new TestClock()) }, BOUNDS);
  const log = runs.begin();
  log.add(levelOf("info"), "one");
  await expect(runs.keep(testPrincipal(), "/a", log)).resolves.toBeUndefined();
});
