import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { EXTERNAL_AGENT_STATE_MAX_BYTES, USAGE_INTERVAL_MS } from "../common/limits.ts";
import { TestClock } from "../test/helpers/time/runtime.ts";
import { UsageReader } from "./usage.ts";

let root: string;
let clock: TestClock;
let reader: UsageReader;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "odp-proc-"));
  clock = new TestClock();
  reader = new UsageReader(clock, root);
});
afterEach(() => rm(root, { recursive: true, force: true }));

interface Fake {
  readonly group: number;
  readonly ticks: number;
  readonly kib: number;
  readonly birth?: number;
  readonly environment?: string;
}

/** Writes the files of a process as Linux shows them. A third of its ticks are those of the system. */
async function put(pid: number, { group, ticks, kib, birth = 1, environment = "" }: Fake): Promise<void> {
  const folder = join(root, String(pid));
  await mkdir(folder, { recursive: true });
  const times = `${ticks - Math.floor(ticks / 3)} ${Math.floor(ticks / 3)}`;
  const stat = `${pid} (a) b) S 1 ${group} 1 0 -1 0 0 0 0 0 ${times} 0 0 20 0 1 0 ${birth} 0 0`;
  await Promise.all([
    writeFile(join(folder, "stat"), stat),
    writeFile(join(folder, "status"), `Name:\ta\nVmRSS:\t   ${kib} kB\n`),
    writeFile(join(folder, "environ"), environment),
  ]);
}

const read = (daemons: Readonly<Record<string, number>> = {}) =>
  Object.fromEntries(reader.read(new Map(Object.entries(daemons))));
const passes = () => clock.advance(USAGE_INTERVAL_MS);

test("the processes of a daemon's group are summed, and its processor time is that since the reading before", async () => {
  await put(10, { group: 10, ticks: 5_000, kib: 1_000 });
  await put(11, { group: 10, ticks: 30, kib: 24 });
  await put(12, { group: 12, ticks: 9_000, kib: 9_000 });
  expect(read({ web: 10 })).toEqual({ "policy/web": { memory: 1_024 * 1_024, processes: 2 } });
  passes();
  await put(10, { group: 10, ticks: 5_300, kib: 1_000 });
  await put(11, { group: 10, ticks: 60, kib: 24, birth: 2 });
  // 300 ticks of one process and all 60 of one that began meanwhile, of 3000 ticks.
  expect(read({ web: 10 })).toEqual({ "policy/web": { cpu: 12, memory: 1_024 * 1_024, processes: 2 } });
});

test("external agents are recognised by their variable, once for each process", async () => {
  const environment = "A=1\0ODP_EXTERNAL_AGENT=4711\0";
  await put(20, { group: 20, ticks: 0, kib: 10, environment });
  await put(21, { group: 21, ticks: 0, kib: 10, environment: "NOT_ODP_EXTERNAL_AGENT=1\0" });
  expect(read()).toEqual({ extagent: { memory: 10_240, processes: 1 } });
  await rm(join(root, "20", "environ"));
  await put(22, { group: 22, ticks: 0, kib: 10, environment });
  passes();
  expect(read()).toMatchObject({ extagent: { cpu: 0, processes: 2 } });
});

test("an external agent that overwrites its environment is recognised by a program of its depot", async () => {
  const home = join(root, "opt", "probe");
  await mkdir(join(home, "sbin"), { recursive: true });
  await writeFile(join(home, ".odp-external-agent"), `program -> ${home}/sbin/probe\nprogram -> ${home}/b\nseen\n`);
  for (const [pid, program] of [
    [30, "sbin/probe"],
    [31, "sbin/probed"],
    [32, "sbin/other"],
  ] as const) {
    await put(pid, { group: pid, ticks: 0, kib: 10 });
    await symlink(join(home, program), join(root, String(pid), "exe"));
  }
  expect(read()).toEqual({ extagent: { memory: 10_240, processes: 1 } });
});

test("a state file that is a pipe, a link or too long stops nothing, as users may make it above their programs", async () => {
  await put(40, { group: 40, ticks: 0, kib: 10 });
  const home = join(root, "home");
  await mkdir(join(home, "a", "b", "c"), { recursive: true });
  await symlink(join(home, "a/b/c/program"), join(root, "40", "exe"));
  execFileSync("mkfifo", [join(home, "a", ".odp-external-agent")]);
  const listed = `program -> ${home}/a/b/c/program\n`;
  await writeFile(join(home, "a/b/.odp-external-agent"), listed + " ".repeat(EXTERNAL_AGENT_STATE_MAX_BYTES));
  await writeFile(join(home, "list"), listed);
  await symlink(join(home, "list"), join(home, "a/b/c/.odp-external-agent"));
  expect(read()).toEqual({});
});

test("nothing is read again before the interval is over", async () => {
  await put(10, { group: 10, ticks: 0, kib: 1 });
  const first = read({ web: 10 });
  await rm(join(root, "10"), { recursive: true });
  clock.advance(USAGE_INTERVAL_MS - 1);
  expect(read({ web: 10 })).toEqual(first);
  clock.advance(1);
  expect(read({ web: 10 })).toEqual({});
});

test("a host without such files has no usage", () => {
  reader = new UsageReader(clock, join(root, "none"));
  expect(read({ web: 10 })).toEqual({});
});

// Only Linux has these files.
describe.runIf(process.platform === "linux")("on this host", () => {
  test("the usage of this very process group is read", () => {
    reader = new UsageReader(clock);
    const group = Number(/^\d+ \(.*\) . \d+ (\d+)/.exec(readFileSync("/proc/self/stat", "latin1"))?.[1]);
    expect(read({ tests: group })["policy/tests"]?.memory).toBeGreaterThan(1_024 * 1_024);
  });
});
