import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chmod, open, readFile, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isAlive } from "../helpers/programs/processes.ts";
import { eventually } from "../helpers/programs/programs.ts";
import { Installation } from "./installation.ts";

const DEADLINE_MS = 120_000;
/** Open files of a process, one line each. The folder that `ls` reads is its own. */
const LIST = "ls -l /proc/self/fd | grep -v ' -> /proc/[0-9]*/fd$'";

describe("what the controller and its local agent start", () => {
  let odp: Installation;
  let lists: string;

  beforeAll(async () => {
    odp = await Installation.begin({
      ODP_STORE: "embedded",
      ODP_LOCAL_AGENT: "1",
      ODP_SECRET_KEY_FILE: "",
      ODP_SECRET_KEY_COMMAND: "ls -l /proc/self/fd > $ODP_DATA_DIR/../key.list; cat $ODP_DATA_DIR/../secret.key",
    });
    lists = odp.folder;
    await odp.ready();
    await agentOnline();
  });

  afterAll(() => odp.stop());

  function agentOnline(): Promise<true> {
    return eventually("the local agent is online", DEADLINE_MS, async () => {
      const hosts = (await odp.ok("GET", "/host?status=true")) as unknown[];
      return hosts.length > 0 || undefined;
    });
  }

  async function listed(name: string): Promise<string> {
    const path = join(lists, `${name}.list`);
    const text = await eventually(`${name} has listed its descriptors`, DEADLINE_MS, async () => {
      const found = await readFile(path, "utf8").catch(() => "");
      return found.endsWith("end\n") ? found : undefined;
    });
    await rm(path);
    return text;
  }

  /** A host whose agent was just killed may count as online for a moment. */
  async function runJob(): Promise<string> {
    const cmd = `(${LIST}; echo end) > ${lists}/job.list; echo listed`;
    const param = encodeURIComponent(JSON.stringify({ cmd, "HOST!": hostname(), timeout: 60 }));
    await eventually("a job has run", DEADLINE_MS, async () => {
      const path = `/job/remote_command@system/common?receive_output=true&param=${param}`;
      return String((await odp.call("GET", path)).message).includes("listed") || undefined;
    });
    return listed("job");
  }

  async function setPolicy(name: string, members: Readonly<Record<string, unknown>>): Promise<void> {
    const policy = {
      name,
      rule: "/matrix/rules/none",
      ctype: 1,
      interval: 1,
      unit: "second",
      hosts: [hostname()],
      ...members,
    };
    await odp.ok("POST", "/monitoring/policy", JSON.stringify(policy));
  }

  /** Waits for the single process of the local agent. Its commands do not have the variable. */
  function localAgent(): Promise<number> {
    const own = `ODP_AGENT_DIR=${join(odp.folder, "data", "agent")}\0`;
    return eventually("one local agent runs", DEADLINE_MS, () => {
      const agents = readdirSync("/proc").filter(
        (name) => /^\d+$/.test(name) && readable(`/proc/${name}/environ`).includes(own),
      );
      return agents.length === 1 ? Number(agents[0]) : undefined;
    });
  }

  const expectNone = (list: string): void => {
    expect(list).toMatch(/ 0 -> /);
    expect(list.split("\n").filter((line) => / ([3-9]|\d{2,}) -> /.test(line))).toEqual([]);
  };

  test("have descriptors 0 to 2 and no others: jobs, policies, daemons, the local agent's too when it was started again", async () => {
    await odp.mql("create class if not exists /matrix/none (text varchar) with kind='record'");
    const rule = "--class=/matrix/none\n--parser=text\n--fields=text\n";
    await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: "/matrix/rules/none", value: rule }));
    const line = (name: string) => `(${LIST}; echo end) > ${lists}/${name}.list`;
    await setPolicy("once", { command: line("policy") });
    await setPolicy("daemon", { command: `${line("daemon")}; exec sleep 600`, isdaemon: true });
    for (const name of ["policy", "daemon"]) expectNone(await listed(name));
    expectNone(await runJob());

    await odp.ok("POST", "/companys", JSON.stringify({ name: "second", password: "a horse of the second tenant" }));
    const before = await localAgent();
    process.kill(before, "SIGKILL");
    await eventually("another local agent runs", DEADLINE_MS, () => (isAlive(before) ? undefined : agentOnline()));
    expectNone(await runJob());
    const agent = await localAgent();
    expect(agent).not.toBe(before);
    const open = readdirSync(`/proc/${agent}/fd`).map((name) => linkOf(agent, name));
    expect(open.filter((path) => path.includes("data.mdb"))).toEqual([]);
    // Control: the controller itself has them open, so the test can see them.
    const own = readdirSync(`/proc/${odp.controller.pid}/fd`).map((name) => linkOf(odp.controller.pid, name));
    expect(own.filter((path) => /tenants\/second_\w+\/lmdb\/data\.mdb$/.test(path))).not.toEqual([]);
  });

  test("a command that gives the keys has none either, also when the keys are read again", async () => {
    const path = join(lists, "key.list");
    const atStart = await readFile(path, "utf8");
    await rm(path);
    await odp.ok("POST", "/key/reload");
    for (const list of [atStart, await readFile(path, "utf8")])
      expectNone(list.replace(/.* -> \/proc\/\d+\/fd\n/, "").replace(/.* 1 -> .*key\.list\n/, ""));
  });

  test("end with the controller, however it ends; the controller ends when the process that starts them does", async () => {
    await agentOnline();
    const agent = await localAgent();
    await odp.controller.kill("SIGKILL");
    await eventually("the local agent has ended", DEADLINE_MS, () => !isAlive(agent) || undefined);

    // Only their owner may read the files of the stores, including those of an earlier version.
    const file = join(odp.folder, "data/store/tenants/matrix/lmdb/data.mdb");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await chmod(file, 0o644);
    await odp.startController();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await agentOnline();
    const [next, spawner] = [await localAgent(), childOf(odp.controller.pid)];
    process.kill(spawner, "SIGKILL");
    await odp.controller.printed(/process that starts all others has ended/);
    await eventually("the controller has stopped", DEADLINE_MS, () => !odp.controller.running || undefined);
    await eventually("the local agent has ended", DEADLINE_MS, () => !isAlive(next) || undefined);
    // It stopped in order, so no process holds the folder.
    await odp.startController();
  });
});

describe("programs whose output cannot be written", () => {
  let odp: Installation;
  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded" });
  });
  afterAll(() => odp.stop());

  const answers = () =>
    eventually("the controller answers", DEADLINE_MS, async () => {
      if (!odp.controller.running) throw new Error("The controller has ended.");
      return (await fetch(`${odp.url}/healthz`).catch(() => undefined))?.status === 200 || undefined;
    });

  test("go on where there is no room for it, as in a file on a full disk", async () => {
    await odp.controller.kill("SIGTERM");
    const full = openSync("/dev/full", "w");
    odp.beginController({ stdio: ["ignore", full, full] });
    await answers();
    // The agent writes its first line before it is online.
    await odp.enrol("web-1", { stdio: ["ignore", full, full] });
    closeSync(full);
    expect(await run("web-1", "echo here")).toContain("here");
    await odp.agent("web-1").kill("SIGTERM");
    await odp.controller.kill("SIGTERM");
  });

  test("go on when the reader of their pipes has gone, and when their terminal is closed", async () => {
    await odp.startController();
    await odp.startAgent("web-1");
    for (const program of [odp.controller, odp.agent("web-1")]) {
      program.stopReading();
      process.kill(program.pid, "SIGHUP");
    }
    // The agent reports the loss of its controller, and the controller that of the process that starts others.
    process.kill(childOf(odp.controller.pid), "SIGKILL");
    await eventually(
      "the controller has stopped in good order",
      DEADLINE_MS,
      () => !odp.controller.running || undefined,
    );
    await odp.startController();
    expect(odp.agent("web-1").running).toBe(true);
    await eventually("the agent is back", DEADLINE_MS, async () => {
      const hosts = (await odp.ok("GET", "/host?status=true")) as unknown[];
      return hosts.length > 0 || undefined;
    });
    expect(await run("web-1", "echo still here")).toContain("still here");
  });

  test("a damaged store is refused at once", async () => {
    await odp.controller.kill("SIGTERM");
    const file = await open(join(odp.folder, "data/store/system/lmdb/data.mdb"), "r+");
    await file.write(new Uint8Array(4_096), 0, 4_096, 0);
    await file.close();
    await expect(odp.startController()).rejects.toThrow(/^(?!.*the start waits).*data\.mdb is damaged/s);
  });

  async function run(host: string, cmd: string): Promise<unknown> {
    const param = JSON.stringify({ cmd, "HOST!": host, timeout: 60 });
    const path = `/job/remote_command@system/common?receive_output=true&param=${encodeURIComponent(param)}`;
    return odp.ok("GET", path);
  }
});

/** The single process that the controller itself has started. */
function childOf(pid: number): number {
  const children = readable(`/proc/${pid}/task/${pid}/children`).trim().split(" ");
  expect(children).toHaveLength(1);
  // 0 would be the group of the tests themselves.
  expect(Number(children[0])).toBeGreaterThan(1);
  return Number(children[0]);
}

function linkOf(pid: number, descriptor: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${descriptor}`);
  } catch {
    // The file was closed meanwhile.
    return "";
  }
}

function readable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
