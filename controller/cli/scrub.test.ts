import { expect, test } from "vitest";
import { exitCodeOf, followScrub, statusExitCodeOf } from "./scrub.ts";

const report = {
  id: "01",
  user: "admin",
  state: "done",
  message: "",
  startedMs: 1,
  endedMs: 2,
  rate: 1,
  step: "contents",
  looked: { objects: 1, indexes: 2, sources: 3, targets: 3, contents: 4 },
  bytes: 5,
  missing: 1,
  superfluous: 0,
  damaged: 0,
  examples: [],
};

function clientOf(answers: readonly unknown[]) {
  const calls: string[] = [];
  const left = [...answers];
  const call = (id: string): Promise<unknown> => {
    calls.push(id);
    return Promise.resolve(id === "getClusterScrub" ? left.shift() : report);
  };
  return { calls, client: { call } as never };
}

test("a scrub is begun and followed to its report, and only a damaged content makes it fail", async () => {
  const { calls, client } = clientOf([{ due: true }, { due: false, last: report }]);
  const notes: string[] = [];
  const of = {
    client,
    pause: () => Promise.resolve(),
    signal: new AbortController().signal,
    note: (text: string) => notes.push(text),
  };
  expect(await followScrub(of)).toEqual(report);
  expect(calls).toEqual(["getClusterScrub", "postClusterScrub", "getClusterScrub"]);
  expect([
    exitCodeOf(report),
    exitCodeOf({ ...report, damaged: 1 }),
    exitCodeOf({ ...report, state: "stopped" }),
  ]).toEqual([0, 2, 2]);
});

test("one that is under way is joined, and goes on when its follower goes", async () => {
  const running = { ...report, state: "running" as const };
  const leave = new AbortController();
  const { calls, client } = clientOf([
    { due: true, running },
    { due: true, running },
  ]);
  const note = (text: string) => text.startsWith("contents:") && leave.abort();
  expect(await followScrub({ client, pause: () => Promise.resolve(), signal: leave.signal, note })).toBeUndefined();
  expect(calls).toEqual(["getClusterScrub", "getClusterScrub"]);
});

test("its status fails where the last scrub or the row check found damage", () => {
  const rows = { startedMs: 1, looked: 2, damaged: 0, tables: {}, examples: [] };
  const sound = {
    due: true,
    last: { ...report, state: "done" as const, step: "contents" as const },
    rows: { running: rows, last: rows, late: true },
  };
  expect(statusExitCodeOf(sound)).toBe(0);
  expect(statusExitCodeOf({ ...sound, last: { ...sound.last, damaged: 1 } })).toBe(2);
  expect(statusExitCodeOf({ ...sound, rows: { ...sound.rows, running: { ...rows, damaged: 1 } } })).toBe(2);
  expect(statusExitCodeOf({ ...sound, rows: { ...sound.rows, last: { ...rows, damaged: 1 } } })).toBe(2);
});
