import { execFileSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { mkdir, readFile, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../helpers/programs/programs.ts";
import { writeAccessLog } from "./access-log.ts";
import { Installation } from "./installation.ts";
import { everyRunOnce } from "./scheduled-runs.ts";

/**
 * Takes more than 20 seconds to write, and is three times as large as the small disk, which holds less than the agent
 * writes at once.
 */
const LINES = 30_000;
const LINES_PER_BURST = 150;
const SMALL_DISK_KIB = 768;
/** Less than the next piece of the log needs. */
const FULL_DISK_FREE_BYTES = 64 * 1024;
const ONLINE_DEADLINE_MS = 60_000;
const SETTLE_DEADLINE_MS = 90_000;
/** Timeout of the run, the minute after which its controller counts as lost, and the minute between two checks. */
const LOST_RUN_DEADLINE_MS = 150_000;
const FINAL_STATES = ["ok", "failed", "timeout", "unreachable", "cancelled", "expired"];

describe("outages", () => {
  let odp: Installation;
  let folder: string;
  let smallDisk: string;
  let mounted: boolean;
  let lostRun: string;

  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded" });
    folder = join(odp.folder, "work");
    await mkdir(folder);
    smallDisk = join(odp.folder, "agent-small");
    await mkdir(smallDisk);
    mounted = mount(smallDisk);
    if (!mounted && process.env.ODP_REQUIRE_CLUSTER === "1")
      throw new Error("A small file system must be mounted for the test of a full disk.");
    if (!mounted) console.warn("A small file system cannot be mounted here: the full disk is left out.");
    await odp.enrol("roomy");
    if (mounted) await odp.enrol("small");
  });

  afterAll(async () => {
    for (const host of ["roomy", ...(mounted ? ["small"] : [])]) await odp.agent(host).kill("SIGTERM");
    if (mounted) execFileSync("umount", ["-l", smallDisk]);
    await odp.stop();
  });

  /** Starts a command that reports its start, and ends when a file `<name>.end` exists. */
  async function startJob(name: string, timeout: number): Promise<string> {
    const cmd = `echo begun >> ${folder}/${name}; while [ ! -e ${folder}/${name}.end ]; do sleep 0.1; done; echo ended`;
    const param = JSON.stringify({ cmd, "HOST!": "roomy", timeout });
    const run = String(
      await odp.ok("GET", `/job/exec/remote_command@system/common?param=${encodeURIComponent(param)}`),
    );
    await eventually("the command runs", ONLINE_DEADLINE_MS, () => existsSync(join(folder, name)) || undefined);
    return run;
  }

  async function runsOf(run: string): Promise<Record<string, unknown>[]> {
    return odp.mql(`select host, status, message, etime from /matrix/jobs/jobrun where runid='${run}' limit -1`);
  }

  function ended(run: string, deadlineMs: number): Promise<Record<string, unknown>[]> {
    return eventually(`the job run ${run} has ended`, deadlineMs, async () => {
      const rows = await runsOf(run);
      return rows.every((row) => row["status"] !== "running") ? rows : undefined;
    });
  }

  test("a job whose agent is killed ends in exactly one final state, and its command ran once", async () => {
    const run = await startJob("agent-killed", 60);
    await odp.agent("roomy").kill("SIGKILL");
    await odp.startAgent("roomy");
    expect(await ended(run, SETTLE_DEADLINE_MS)).toMatchObject([{ host: "roomy", status: "failed" }]);
    await writeFile(join(folder, "agent-killed.end"), "");
    expect(await readFile(join(folder, "agent-killed"), "utf8")).toBe("begun\n");
    const results = await odp.mql(`select state from /matrix/system/command where command like '*${run}*' limit -1`);
    expect(results).toMatchObject([{ state: "interrupted" }]);
  });

  test("a controller that is killed during a job comes back and knows the run", async () => {
    lostRun = await startJob("controller-killed", 3);
    await odp.controller.kill("SIGKILL");
    await odp.startController();
    expect(await runsOf(lostRun)).toHaveLength(1);
    await writeFile(join(folder, "controller-killed.end"), "");
    expect(await readFile(join(folder, "controller-killed"), "utf8")).toBe("begun\n");
  });

  test("after a long time without a controller every line is there once and every second is in a run or a gap", async () => {
    const hosts = mounted ? ["roomy", "small"] : ["roomy"];
    for (const host of hosts) await makePolicies(odp, host, await logsOf(host));
    for (const host of hosts) await firstRun(host);
    await odp.controller.kill("SIGKILL");
    const outbox = mounted ? diskFull(smallDisk) : Promise.resolve();
    await Promise.all(hosts.map((host) => writeLog(host)));
    await outbox;
    await odp.startController();
    for (const host of hosts) {
      const counted = await eventually(`all lines of ${host} are counted`, SETTLE_DEADLINE_MS, async () => {
        const [row] = await odp.mql(
          `select count(*), sum(n) as total, min(n) as low, max(n) as high from /matrix/outage/${host}`,
        );
        return Number(row?.["count"]) >= LINES ? row : undefined;
      });
      expect(counted).toMatchObject({ count: LINES, total: (LINES * (LINES - 1)) / 2, low: 0, high: LINES - 1 });
    }
    await everyRunOnce(odp, "tick-roomy");
    if (!mounted) return;
    expect((await everyRunOnce(odp, "tick-small")).skipped).toBeGreaterThan(0);
    await eventually(
      "the outbox is ready for the next full disk",
      SETTLE_DEADLINE_MS,
      () => statSync(join(smallDisk, "outbox", "reserve")).size > 0 || undefined,
    );
  });

  test("the run of the killed controller ended in exactly one final state", async () => {
    const rows = await ended(lostRun, LOST_RUN_DEADLINE_MS);
    expect(rows).toHaveLength(1);
    expect(FINAL_STATES).toContain(rows[0]?.["status"]);
  });

  async function logsOf(host: string): Promise<string> {
    const logs = join(odp.folder, `logs-${host}`);
    await mkdir(logs);
    return logs;
  }

  function firstRun(host: string): Promise<boolean> {
    return eventually(`the runs of ${host} have begun`, ONLINE_DEADLINE_MS, async () => {
      const [row] = await odp.mql(`select count(*) from /matrix/system/policyrun where policy='tick-${host}'`);
      return Number(row?.["count"]) > 0 || undefined;
    });
  }

  async function writeLog(host: string): Promise<void> {
    await writeAccessLog({
      folder: join(odp.folder, `logs-${host}`),
      lines: LINES,
      rotateEveryLines: 10_000,
      linesPerBurst: LINES_PER_BURST,
      pauseMs: 100,
    });
  }
});

async function makePolicies(odp: Installation, host: string, logs: string): Promise<void> {
  await odp.mql(`create class /matrix/outage/${host} (n bigint) with kind='record'`);
  await odp.mql(`create class /matrix/outage/tick${host} (text varchar) with kind='record'`);
  const grok = `--class=/matrix/outage/${host}\n--parser=grok\n--pattern_1=%{IP} .* %{INT:n:int}\n`;
  await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: `/matrix/rules/outage/${host}`, value: grok }));
  const text = `--class=/matrix/outage/tick${host}\n--parser=text\n--fields=text\n`;
  await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: `/matrix/rules/outage/tick${host}`, value: text }));
  await odp.ok(
    "POST",
    "/monitoring/policy/log",
    JSON.stringify({
      name: `access-${host}`,
      rule: `/matrix/rules/outage/${host}`,
      dir: logs,
      match: "^access\\.log(\\.\\d+)?$",
      hosts: [host],
    }),
  );
  await odp.ok(
    "POST",
    "/monitoring/policy",
    JSON.stringify({
      name: `tick-${host}`,
      rule: `/matrix/rules/outage/tick${host}`,
      command: "echo tick",
      ctype: 1,
      interval: 1,
      unit: "second",
      hosts: [host],
    }),
  );
}

/** Returns false if this process may not mount. */
function mount(path: string): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${SMALL_DISK_KIB}k`, "tmpfs", path], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

async function diskFull(path: string): Promise<void> {
  await eventually("the disk under the outbox is full", SETTLE_DEADLINE_MS, async () => {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize < FULL_DISK_FREE_BYTES || undefined;
  });
}
