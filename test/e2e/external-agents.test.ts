import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { probeProgram } from "../helpers/areas/extagent-world.ts";
import { startSshd, type Sshd } from "../helpers/hosts/sshd.ts";
import { zipOf } from "../helpers/runs/archives.ts";
import { form, Installation } from "./installation.ts";

const KEY = "a-pre-shared-key-of-the-probe";
const STOP = "kill $(cat pid) && rm pid";

const sshd = await startSshd();
if (!sshd && process.env.ODP_REQUIRE_CLUSTER === "1")
  throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");

/** An external agent on a host with an agent and on one over SSH, with all programs as processes. */
describe.skipIf(!sshd)("external agents", () => {
  const server = sshd as Sshd;
  let odp: Installation;
  const dir = (host: string) => join(odp.folder, "external agents", host);

  beforeAll(async () => {
    odp = await Installation.start({ ODP_STORE: "embedded", ODP_LOG_LEVEL: "trace" });
    await odp.enrol("web-1");
    const credentials = { username: server.username, port: String(server.port), privatekey: server.privateKey };
    for (const [host, config] of [
      ["web-1", {}],
      ["bare", credentials],
    ] as const)
      await save(host, config);
    const entries = Object.entries(probeProgram("one")).map(([name, content]) => ({ name, content, mode: 0o100755 }));
    const fields = { name: "probe", version: "1.0.0" };
    await odp.ok("POST", "/monitoring/depot", form(fields, { "probe.zip": await zipOf(entries) }));
  });

  afterAll(async () => {
    await odp.stop();
    await server[Symbol.asyncDispose]();
  });

  function save(host: string, config: object): Promise<unknown> {
    const settings = { extagent_dir: dir(host), extagent_start: "./probe.sh", extagent_stop: STOP };
    const record = { host, iplist: ["127.0.0.1"], isextagent: 1, config: { ...config, ...settings } };
    return odp.ok("POST", "/host", JSON.stringify(record));
  }

  const call = (name: string, fields: Record<string, string | string[]> = {}) =>
    odp.call("POST", `/monitoring/${name}`, form({ hosts: ["web-1", "bare"], ...fields }));
  const states = (message: string) => [
    { host: "web-1", state: "ok", message: expect.stringMatching(message) },
    { host: "bare", state: "ok", message: expect.stringMatching(message) },
  ];

  test("are deployed by the form that clients send, restarted, and go on when their output is closed", async () => {
    const version = { name: "probe", version: "1.0.0" };
    expect(await call("extagent/deploy", { ...version, key: KEY, command: "cat agent.key" })).toMatchObject({
      status: "ok",
      message: states("^\\*{6}start: done, process \\d+"),
    });
    expect(await call("zabbix/restart")).toMatchObject({ status: "ok", message: states("^stop: done\nstart: done") });
    expect(await call("zabbix/start")).toMatchObject({ message: states("running already") });
    for (const host of ["web-1", "bare"]) expect(await readFile(join(dir(host), "agent.key"), "utf8")).toBe(KEY);
  });

  test("of hosts that fail are counted at the top of the answer", async () => {
    await odp.ok("POST", "/host", JSON.stringify({ host: "bare", config: { extagent_stop: "exit 5" } }));
    expect(await call("extagent/stop")).toMatchObject({
      status: "ok",
      message: [
        { host: "web-1", state: "ok" },
        { host: "bare", state: "failed", code: 5 },
      ],
      failed: { count: 1, of: 2 },
    });
    await odp.ok("POST", "/host", JSON.stringify({ host: "bare", config: { extagent_stop: STOP } }));
  });

  test("leave no process and no file when they are removed", async () => {
    expect(await call("zabbix/undeploy", { name: "probe", version: "1.0.0" })).toMatchObject({
      message: states("stop: "),
    });
    for (const host of ["web-1", "bare"]) expect((await readdir(dir(host))).sort()).toEqual(["running"]);
    await expect.poll(() => processesBelow(join(odp.folder, "external agents")), { timeout: 20_000 }).toEqual([]);
  });

  test("keep their key to themselves: it is in no log, no class and no file of the platform", async () => {
    const answers = ["audit", "command", "commandoutput", "deployment", "hostinfo"].map((name) =>
      odp.mql(`select * from /matrix/system/${name} limit -1`),
    );
    const shown = JSON.stringify(await Promise.all(answers)) + odp.controller.output + odp.agent("web-1").output;
    expect(shown).toContain("/monitoring/extagent/deploy");
    expect(shown).not.toContain(KEY);
    for (const path of await readdir(odp.folder, { recursive: true, withFileTypes: true }))
      if (path.isFile())
        expect(await readFile(join(path.parentPath, path.name), "latin1"), path.name).not.toContain(KEY);
  });
});

function processesBelow(folder: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      const isBelow = readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
      return isBelow && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
    } catch {
      return false;
    }
  });
}
