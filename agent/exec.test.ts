import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { realClock } from "../test/helpers/clock.ts";
import { createExec, endLeftovers, type Exec } from "./exec.ts";

const DEADLINE_MS = 20_000;

let folder: string;
let exec: Exec;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-exec-"));
  exec = createExec({ clock: realClock, folder: join(folder, "running"), environment: { PATH: process.env["PATH"] } });
});

afterEach(() => rm(folder, { recursive: true, force: true }));

it("says which signal ended a command, by its name and as a shell numbers it", async () => {
  for (const [name, code] of [
    ["SIGKILL", 137],
    ["SIGTERM", 143],
    ["SIGABRT", 134],
  ] as const)
    expect(await exec({ line: `kill -${name.slice(3)} $$` })).toEqual({
      ended: "exit",
      code,
      signal: name,
      message: `ended by ${name}`,
    });
  expect(await exec({ line: "exit 137" })).not.toHaveProperty("signal");
});

// Only Linux shows the environment of other processes.
describe.runIf(process.platform === "linux")("what a command started", () => {
  it("ends with it at its timeout, also in a session of its own", async () => {
    const running = exec({ line: escaping(), timeoutMs: 1_000 });
    const pid = await escaped();
    expect(await running).toMatchObject({ ended: "timeout" });
    await ends(pid);
  });

  it("ends with it when it is cancelled", async () => {
    const abort = new AbortController();
    const running = exec({ line: escaping(), signal: abort.signal });
    const pid = await escaped();
    abort.abort();
    expect(await running).toMatchObject({ ended: "cancelled" });
    await ends(pid);
  });

  it("goes on when it ends by itself", async () => {
    const running = exec({ line: escaping("true"), timeoutMs: 60_000 });
    const pid = await escaped();
    expect(await running).toMatchObject({ ended: "exit", code: 0 });
    expect(isAlive(pid)).toBe(true);
    process.kill(pid, "SIGKILL");
  });

  it("ends at the next start of an agent that was killed, although the command itself is gone", async () => {
    const abort = new AbortController();
    const running = exec({ line: escaping(), signal: abort.signal });
    const pid = await escaped();
    const [parent = ""] = (await readFile(join(folder, "parent"), "utf8")).split("\n");
    // As the killed agent left it.
    const note = await readFile(join(folder, "running", parent), "utf8");
    process.kill(-Number(parent), "SIGKILL");
    await running;
    await writeFile(join(folder, "running", parent), note);
    expect(isAlive(pid)).toBe(true);
    endLeftovers(join(folder, "running"));
    await ends(pid);
  });
});

/** A command that starts something in a session of its own, and goes on with `then`. */
function escaping(then = "sleep 600"): string {
  return `cd ${folder}; echo $$ > parent; setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 600' >/dev/null 2>&1 & ${then}`;
}

async function escaped(): Promise<number> {
  for (const end = performance.now() + DEADLINE_MS; performance.now() < end; await pause(5)) {
    const pid = Number(await readFile(join(folder, "pid"), "utf8").catch(() => "0"));
    if (pid > 0) return pid;
  }
  throw new Error("Nothing was started.");
}

async function ends(pid: number): Promise<void> {
  for (const end = performance.now() + DEADLINE_MS; isAlive(pid); await pause(5)) {
    if (performance.now() > end) throw new Error(`${pid} lives.`);
  }
}

/** A process that ended and was not waited for yet does not live. */
function isAlive(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
