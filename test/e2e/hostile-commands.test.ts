import { readdirSync, readFileSync } from "node:fs";
import { chmod, chown, copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { JOB_OUTPUT_MAX_BYTES, JOB_ROW_OUTPUT_MAX_BYTES } from "../../common/limits.ts";
import { eventually, Program } from "../helpers/programs/programs.ts";
import { Installation } from "./installation.ts";

const DEADLINE_MS = 120_000;
const SIZE = 100_000_000;
const HOST = "besieged";
const isSuperuser = process.getuid?.() === 0;
/** No other process has this user, so the agent started every process that runs under it. */
const USER = { uid: 54_322, gid: 54_322 };
/** Most processes of that user, its agent included. */
const PROCESSES_MAX = 120;
/** Every process starts two more, endlessly. At the limit, each one that ends makes room for another. */
const FORK_BOMB = `exec bash -c 'ulimit -u ${PROCESSES_MAX} || exit 9; bomb() { bomb | bomb & }; while :; do bomb; done' 2>/dev/null`;

/** Commands that attack a host, whose agent must outlive them. The agent is a process of a user without rights. */
describe("an agent whose commands are hostile", () => {
  let odp: Installation;
  let folder: string;
  let agent: Program;

  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded" });
    folder = await mkdtemp(join(tmpdir(), "odp-hostile-"));
    agent = await startAgent();
  });

  afterAll(async () => {
    await agent.kill("SIGTERM");
    await odp.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function startAgent(): Promise<Program> {
    const file = join(folder, "agent.js");
    const dir = join(folder, "agent");
    await copyFile("dist/agent.js", file);
    await mkdir(dir);
    for (const path of [folder, file]) await chmod(path, 0o755);
    if (isSuperuser) await chown(dir, USER.uid, USER.gid);
    await odp.ok("POST", "/host", JSON.stringify({ host: HOST, isagent: 1 }));
    const { token } = (await odp.ok("POST", "/agent/token", JSON.stringify({ host: HOST }))) as { token: string };
    const own = { ODP_AGENT_CONTROLLER: odp.url, ODP_AGENT_DIR: dir, ODP_AGENT_NAME: HOST, ODP_AGENT_TOKEN: token };
    const program = new Program("agent", file, own, isSuperuser ? { ...USER, cwd: dir } : undefined);
    await eventually("the agent is online", DEADLINE_MS, async () => {
      if (!program.running) throw new Error(`The agent ended:\n${program.output}`);
      return ((await odp.ok("GET", "/host?status=true")) as unknown[]).length > 0 || undefined;
    });
    return program;
  }

  /** Runs a command, waits until it has ended, and returns its row. */
  async function ran(cmd: string, timeout: number): Promise<Record<string, unknown>> {
    const param = encodeURIComponent(JSON.stringify({ cmd, "HOST!": HOST, timeout }));
    const runId = String(await odp.ok("GET", `/job/exec/remote_command@system/common?param=${param}`));
    return eventually("the command has ended", DEADLINE_MS, async () => {
      const [row] = await odp.mql(`select * from /matrix/jobs/jobrun where runid='${runId}'`);
      return row?.["status"] === "running" ? undefined : row;
    });
  }

  const worksOn = async () => expect(await ran("echo alive", 60)).toMatchObject({ status: "ok", out: "alive\n" });

  /** Number of stored bytes of the output. */
  async function stored(runId: unknown): Promise<number> {
    const path = `/job/output/${String(runId)}/${HOST}?tail=1&sessionid=${await odp.session()}`;
    const text = await (await fetch(odp.url + path, { signal: AbortSignal.timeout(DEADLINE_MS) })).text();
    return (JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "{}") as { to: number }).to;
  }

  test("100 MB without a newline are counted to the byte, of which a bounded part is kept", async () => {
    const row = await ran(`tr -d '\\n' </dev/urandom | head -c ${SIZE}`, 100);
    expect(row).toMatchObject({ status: "ok", code: 0, outputsize: SIZE });
    expect(await stored(row["runid"])).toBe(JOB_OUTPUT_MAX_BYTES);
    const note = `\n[${SIZE - JOB_ROW_OUTPUT_MAX_BYTES} more bytes]`;
    expect(String(row["out"]).endsWith(note)).toBe(true);
    expect(String(row["out"]).length).toBeLessThanOrEqual(JOB_ROW_OUTPUT_MAX_BYTES + note.length);
    await worksOn();
  });

  test("a command that is deaf to SIGTERM ends at its deadline, and is dead then", async () => {
    const row = await ran("trap '' TERM; while :; do sleep 0.2; done", 2);
    expect(row).toMatchObject({ status: "timeout", signal: "SIGKILL" });
    expect(isAlive(Number(row["pid"]))).toBe(false);
    await worksOn();
  });

  // The superuser has no limit of processes, and for another user the limit would count the user's other processes.
  test.skipIf(!isSuperuser)("an endless fork bomb ends at its deadline and leaves no process", async () => {
    const ended = ran(FORK_BOMB, 4);
    const isAtWork = expect.poll(() => processesOf(USER.uid).length, { timeout: DEADLINE_MS });
    await isAtWork.toBeGreaterThan(PROCESSES_MAX / 3);
    expect(await ended).toMatchObject({ status: "timeout" });
    await expect.poll(() => processesOf(USER.uid), { timeout: DEADLINE_MS }).toEqual([agent.pid]);
    await worksOn();
  });
});

function isAlive(pid: number): boolean {
  return statusOf(pid) !== undefined;
}

/** Status of a process of this machine (proc(5)); `undefined` if there is none, or it is a zombie. */
function statusOf(pid: number): string | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return /^State:\s+Z/m.test(status) ? undefined : status;
  } catch {
    return undefined;
  }
}

function processesOf(uid: number): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => statusOf(pid)?.match(/^Uid:\s+(\d+)/m)?.[1] === String(uid));
}
