import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { realClock } from "../../test/helpers/time/clock.ts";
import { createExec, endLeftovers, type Exec } from "./exec.ts";

const DEADLINE_MS = 20_000;
/** Bytes that a pipe gives in one read. */
const PIPE_PIECE_BYTES = 65_536;

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
      pid: expect.any(Number) as number,
      message: `ended by ${name}`,
    });
  expect(await exec({ line: "exit 137" })).not.toHaveProperty("signal");
});

it("says the number of the process, and none of what was not started", async () => {
  const said: Buffer[] = [];
  const { pid } = await exec({ line: "echo $$", onOutput: (data) => void said.push(data) });
  expect(Buffer.concat(said).toString()).toBe(`${pid}\n`);
  expect(await exec({ line: "true", cwd: join(folder, "none") })).not.toHaveProperty("pid");
});

it("hands on 100 MB without a newline in bounded pieces, none before the one before is taken", async () => {
  const size = 100_000_000;
  let [taken, longest, atOnce, most] = [0, 0, 0, 0];
  const onOutput = async (data: Buffer): Promise<void> => {
    most = Math.max(most, ++atOnce);
    await Promise.resolve();
    [taken, longest] = [taken + data.length, Math.max(longest, data.length)];
    atOnce--;
  };
  expect(await exec({ line: `head -c ${size} /dev/zero`, onOutput })).toMatchObject({ ended: "exit", code: 0 });
  expect([taken, most]).toEqual([size, 1]);
  expect(longest).toBeLessThanOrEqual(PIPE_PIECE_BYTES);
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

  it("ends with it, though it starts more and more processes meanwhile", async () => {
    const abort = new AbortController();
    // Each of the eight starts a bounded number: processes that start others without end take all processors, and this
    // one among many would not read for minutes that they have begun.
    const starting = "n=0; while [ $n -lt 500 ]; do (:); n=$((n+1)); done; sleep 600";
    const bomb = `b() { if [ $1 -gt 0 ]; then b $(($1-1)) & b $(($1-1)) & wait; else echo on; ${starting}; fi; }`;
    const line = `cd ${folder}; ${bomb}; b 3`;
    const ended = await exec({ line, signal: abort.signal, onOutput: () => abort.abort() });
    expect(ended).toMatchObject({ ended: "cancelled" });
    await expect.poll(processesHere, { timeout: DEADLINE_MS }).toEqual([]);
  });

  it("kills a command that ignores SIGTERM, with what it started", async () => {
    const hasty = { ...realClock, after: (ms: number, then: () => void) => realClock.after(Math.min(ms, 50), then) };
    const patient = createExec({ clock: hasty, folder: join(folder, "hasty"), environment: process.env });
    const abort = new AbortController();
    const line = `cd ${folder}; trap '' TERM; echo ready; while :; do sleep 600; done`;
    const ended = await patient({ line, signal: abort.signal, onOutput: () => abort.abort() });
    expect(ended).toMatchObject({ ended: "cancelled", signal: "SIGKILL", code: 137 });
    await expect.poll(processesHere, { timeout: DEADLINE_MS }).toEqual([]);
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

/** Those that live in the folder of the test. */
function processesHere(): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === folder && isAlive(Number(pid));
    } catch {
      return false;
    }
  });
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
