import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { LOG_FOLDERS_MAX, PATH_DEPTH_MAX } from "../../../common/limits.ts";
import { LogLooks } from "../../../test/helpers/hosts/log-looks.ts";

/** Limits of what a policy follows. What they leave out is reported. */

function warnings(log: LogLooks): readonly unknown[] {
  return log.logged.filter(({ level }) => level === "warn").map(({ message }) => message);
}

async function isReported(log: LogLooks, reason: RegExp): Promise<void> {
  await log.looks(2);
  expect(log.problem).toMatch(reason);
  expect(warnings(log)).toEqual([expect.stringMatching(reason)]);
}

test("folders below the deepest level are reported, in the state of the policy and once in the log", async () => {
  await using log = await LogLooks.begin({ match: "\\.log$" });
  const deepest = Array<string>(PATH_DEPTH_MAX).fill("d").join("/");
  mkdirSync(join(log.folder, deepest), { recursive: true });
  writeFileSync(join(log.folder, deepest, "in.log"), "followed\n");
  await log.looks(2);
  expect(await log.lines()).toEqual(["followed"]);
  expect(log.problem).toBeUndefined();
  mkdirSync(join(log.folder, deepest, "beyond"));
  writeFileSync(join(log.folder, deepest, "beyond", "out.log"), "left out\n");
  await isReported(log, new RegExp(`depth of more than ${PATH_DEPTH_MAX}; ${deepest}/beyond `));
  rmSync(join(log.folder, deepest, "beyond"), { recursive: true });
  await log.look();
  expect(log.problem).toBeUndefined();
  expect(await log.lines()).toEqual(["followed"]);
});

test("more folders than are walked are reported", async () => {
  await using log = await LogLooks.begin({ match: "^many/" });
  mkdirSync(join(log.folder, "many"));
  for (let count = 0; count < LOG_FOLDERS_MAX; count++) mkdirSync(join(log.folder, "many", `d${count}`));
  await isReported(log, new RegExp(`more than ${LOG_FOLDERS_MAX} folders; many/d`));
});

test("a folder that cannot be read is reported, until it can", async () => {
  await using log = await LogLooks.begin({ match: "\\.log$" });
  // Even root cannot read a folder whose path is too long. Such a path comes about when a folder is moved.
  const half = Array<string>(10).fill("n".repeat(250)).join("/");
  mkdirSync(join(log.folder, half), { recursive: true });
  mkdirSync(join(log.folder, "moved", half), { recursive: true });
  await log.looks(2);
  expect(log.problem).toBeUndefined();
  renameSync(join(log.folder, "moved"), join(log.folder, half, "moved"));
  await isReported(log, /The folder .*\/nnn.* cannot be read: .* Its files are not followed\./);
  renameSync(join(log.folder, half, "moved"), join(log.folder, "moved"));
  await log.look();
  expect(log.problem).toBeUndefined();
});

test("more files than are followed are reported", async () => {
  await using log = await LogLooks.begin({ match: "\\.log$", bounds: { filesMax: 1 } });
  await log.looks(2);
  expect(log.problem).toBeUndefined();
  writeFileSync(join(log.folder, "second.log"), "left out\n");
  await isReported(log, /More than 1 files match/);
});

test("a file whose name is not UTF-8 is reported if it matches, and a folder always", async () => {
  await using log = await LogLooks.begin({ match: "\\.log$" });
  const named = (name: string) => Buffer.concat([Buffer.from(`${log.folder}/`), Buffer.of(0xe9), Buffer.from(name)]);
  writeFileSync(named(".txt"), "another\n");
  await log.looks(2);
  expect(log.problem).toBeUndefined();
  writeFileSync(named(".log"), "left out\n");
  await isReported(log, /The name of the file .*\/\uFFFD\.log is not UTF-8/);
  rmSync(named(".log"));
  mkdirSync(named("folder"));
  await log.look();
  expect(log.problem).toMatch(/The name of the folder .*\/\uFFFDfolder is not UTF-8/);
  rmSync(named("folder"), { recursive: true });
  await log.look();
  expect(log.problem).toBeUndefined();
});
