import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { COMMAND_VARIABLE, killMarked } from "./descendants.ts";

let folder: string;
let child: ChildProcess;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-descendants-"));
});
afterEach(async () => {
  child.kill("SIGKILL");
  await rm(folder, { recursive: true });
});

// Only Linux shows the environment of other processes.
test.runIf(process.platform === "linux")("a process that has no environment yet is looked at again", async () => {
  const mark = `descendants-${process.pid}`;
  const go = join(folder, "go");
  // As a process is while the kernel puts another program in its place.
  const line = `while ! [ -e ${go} ]; do sleep 0.01; done; export ${COMMAND_VARIABLE}=${mark}; exec sleep 600`;
  child = spawn("/bin/sh", ["-c", line], { env: {}, stdio: "ignore" });
  await once(child, "spawn");
  const ended = once(child, "exit");
  killMarked(mark, () => {
    if (existsSync(go)) return;
    writeFileSync(go, "");
    while (!readFileSync(`/proc/${child.pid}/environ`, "latin1").includes(mark));
  });
  expect(await ended).toEqual([null, "SIGKILL"]);
});
