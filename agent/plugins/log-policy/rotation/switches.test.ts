import { renameSync, watch, writeFileSync } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { LOG_FILES_MAX } from "../../../../common/limits.ts";
import { allTold, Switches } from "./switches.ts";

const HOME = "app.log";

let switches: Switches;

beforeEach(() => {
  switches = new Switches();
  switches.watch("");
  switches.beginLook(new Set([HOME]));
});

it("what happened before is told after two turns, also right after a call that showed it", async () => {
  const folder = await mkdtemp(join(tmpdir(), "odp-switches-"));
  const watcher = watch(folder, (event, name) => {
    if (event === "rename" && name !== null) switches.note("", name);
  });
  try {
    for (let round = 1; round <= 200; round++) {
      writeFileSync(join(folder, "new"), "");
      renameSync(join(folder, "new"), join(folder, HOME));
      if (round % 2 === 0) await stat(join(folder, HOME));
      await allTold();
      expect(switches.now(HOME)?.changes).toBe(round);
    }
  } finally {
    watcher.close();
    await rm(folder, { recursive: true });
  }
});

it("changes are counted from before the look, and of homes only", () => {
  const before = switches.beforeLook(HOME);
  for (const path of [HOME, "other", HOME]) switches.note("", path);
  expect(switches.since(before, HOME)).toBe(2);
  switches.beginLook(new Set([HOME]));
  expect([switches.since(before, HOME), switches.since(switches.beforeLook(HOME), HOME)]).toEqual([2, 0]);
  expect(switches.now("other")?.changes).toBe(0);
});

it.each<[what: string, happen: () => void]>([
  ["its folder is watched no more", () => switches.unwatch("")],
  ["its folder was not watched meanwhile", () => (switches.unwatch(""), switches.watch(""))],
  ["something without a name was told", () => switches.noteUnknown("")],
  [
    "more names changed than are counted",
    () => {
      for (let at = 0; at <= LOG_FILES_MAX; at++) switches.note("", `file-${at}`);
    },
  ],
])("nothing is known of a name when %s", (_what, happen) => {
  const before = switches.now(HOME);
  expect(switches.since(before, HOME)).toBe(0);
  happen();
  expect(switches.since(before, HOME)).toBeUndefined();
});

it("nothing is known of a folder that is not watched, whatever is told of others", () => {
  expect(switches.beforeLook(`web/${HOME}`)).toBeUndefined();
  expect(switches.since(undefined, HOME)).toBeUndefined();
  const before = switches.now(HOME);
  switches.watch("web");
  expect(switches.since(before, HOME)).toBe(0);
});
