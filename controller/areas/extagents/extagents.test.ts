import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openExtAgents, probeProgram, type ExtAgentWorld } from "../../../test/helpers/areas/extagent-world.ts";
import { startRealAgent, type RealAgent } from "../../../test/helpers/hosts/real-agent.ts";
import { startSshd } from "../../../test/helpers/hosts/sshd.ts";
import type { ExtAgentDeployment } from "./service.ts";

const sshd = await startSshd();
if (!sshd && process.env.CI) throw new Error("OpenSSH's server is needed (apt-get install openssh-server).");
const KEY = "4711-is-the-key\nof two lines";

let world: ExtAgentWorld;
let agent: RealAgent;
beforeAll(async () => {
  world = await openExtAgents();
  await world.upload("1.0.0", { ...probeProgram("one"), "old.txt": "old" });
  await world.upload("2.0.0", probeProgram("two"));
  agent = await startRealAgent(world.hosts, "agent", world.folder);
});
afterAll(async () => {
  await agent.stop();
  await world[Symbol.asyncDispose]();
  await sshd?.[Symbol.asyncDispose]();
});

const admin = () => world.hosts.principal();
const reach = {
  agent: {},
  SSH: { username: sshd?.username, port: String(sshd?.port), privatekey: sshd?.privateKey },
};
const stopLine = 'kill "$(cat pid)" && rm pid';

describe.each(["agent", "SSH"] as const)("an external agent over %s", (way) => {
  const it = test.skipIf(way === "SSH" && !sshd);
  const host = way.toLowerCase();
  const dir = () => join(world.folder, `${way} "agent's" $folder`);
  const save = (config: Record<string, unknown> = {}, more: object = { isextagent: 1 }) =>
    world.hosts.hosts.save(admin(), {
      host,
      iplist: ["127.0.0.1"],
      ...more,
      config: { ...reach[way], extagent_dir: dir(), extagent_start: "./probe.sh", extagent_stop: stopLine, ...config },
    });
  const deploy = async (version: string, more: Partial<ExtAgentDeployment> = {}) =>
    (await world.agents.deploy(admin(), { hosts: [host], name: "probe", version, ...more }))[0];
  const run = async (action: "start" | "stop" | "restart", timeoutSeconds = 50) =>
    (await world.agents.run(admin(), action, { hosts: [host], timeoutSeconds }))[0];
  const undeploy = async (version: string) =>
    (await world.agents.undeploy(admin(), { hosts: [host], name: "probe", version }))[0];
  const running = () => readFileSync(join(dir(), "running"), "utf8").trim();
  /** The number of the daemon; it lives. */
  const daemon = () => {
    const pid = readFileSync(join(dir(), "pid"), "utf8").trim();
    expect(processesOf(dir())).toContain(pid);
    return pid;
  };
  const expectNoProcess = () => expect.poll(() => processesOf(dir()), { timeout: 20_000 }).toEqual([]);

  it("is brought, keyed and started, and replaced by another version that runs instead", async () => {
    await save();
    const first = await deploy("1.0.0", { key: KEY, command: "echo with; cat agent.key" });
    expect(first).toMatchObject({ host, depot: "probe", version: "1.0.0", state: "ok" });
    expect(first?.message).toMatch(/with\n\*{6}\n\*{6}start: done, process \d+/);
    expect(await readFile(join(dir(), "agent.key"), "utf8")).toBe(KEY);
    expect((await stat(join(dir(), "agent.key"))).mode & 0o777).toBe(0o600);
    expect(running()).toBe("one");
    const former = daemon();
    expect(await deploy("2.0.0")).toMatchObject({
      state: "ok",
      message: expect.stringContaining("stop: done\nstart: done"),
    });
    expect(running()).toBe("two");
    expect(daemon()).not.toBe(former);
    expect(processesOf(dir())).not.toContain(former);
    expect(existsSync(join(dir(), "old.txt"))).toBe(false);
    expect(await readFile(join(dir(), "agent.key"), "utf8")).toBe(KEY);
  });

  it("that runs already is not started again; its processes live although they write to a closed output", async () => {
    const before = daemon();
    expect(await run("start")).toMatchObject({
      depot: "",
      state: "ok",
      message: expect.stringContaining("running already"),
    });
    expect(daemon()).toBe(before);
  });

  it("keeps its former version, key and processes if the command fails", async () => {
    const before = daemon();
    const failed = await deploy("1.0.0", { key: "other", command: "echo 'it is other' >&2; exit 7" });
    expect(failed).toMatchObject({ state: "failed", code: 7, message: expect.stringContaining("it is ******") });
    expect([await readFile(join(dir(), "version"), "utf8"), existsSync(join(dir(), "old.txt"))]).toEqual([
      "two\n",
      false,
    ]);
    expect(await readFile(join(dir(), "agent.key"), "utf8")).toBe(KEY);
    expect(daemon()).toBe(before);
  });

  it("runs in its former version again if the new one does not start", async () => {
    await world.upload(`3.${way.length}.0`, { "probe.sh": "#!/bin/sh\n[ -e other ] || exec ./two.sh\n" });
    const failed = await deploy(`3.${way.length}.0`);
    expect(failed).toMatchObject({ state: "failed", code: 113, message: expect.stringContaining("two.sh") });
    expect(failed?.message).toContain("Start of the former version: ok");
    expect(await readFile(join(dir(), "version"), "utf8")).toBe("two\n");
    daemon();
  });

  it("that ends right after its start is not started", async () => {
    expect(await run("stop")).toMatchObject({ state: "ok", message: "stop: done" });
    await expectNoProcess();
    await save({ extagent_start: "(sleep 0.1; echo 'no port' >&2) &" });
    expect(await run("start")).toMatchObject({
      state: "failed",
      message: expect.stringMatching(/no process of it is left\nno port/),
    });
    await save();
    expect(await run("restart")).toMatchObject({
      state: "ok",
      message: expect.stringMatching(/^stop: nothing of it ran\nstart: done/),
    });
  });

  it("is started once by two starts at the same moment", async () => {
    await save({ extagent_start: "echo start >> starts; sleep 0.5; ./probe.sh" });
    expect(await run("stop")).toMatchObject({ state: "ok" });
    const both = await Promise.all([run("start"), run("start")]);
    expect(both.map((outcome) => outcome?.state)).toEqual(["ok", "ok"]);
    expect(both.filter((outcome) => outcome?.message.includes("running already"))).toHaveLength(1);
    expect(await readFile(join(dir(), "starts"), "utf8")).toBe("start\n");
    rmSync(join(dir(), "starts"));
    await save();
  });

  it("whose stop hangs or leaves processes is told so, and not started again", async () => {
    await save({ extagent_stop: "sleep 60" });
    expect(await run("restart", 1)).toMatchObject({ state: "timeout", message: expect.stringContaining("stop:") });
    await save({ extagent_stop: "kill -0 $(cat pid); exit 4" });
    expect(await run("restart")).toMatchObject({
      state: "failed",
      message: expect.stringMatching(/stop: ended with code 4$/),
    });
    daemon();
    await save();
  });

  it("is stopped and removed, with its key; another version is left alone", async () => {
    expect(await undeploy("1.0.0")).toMatchObject({ state: "ok", message: "not deployed" });
    daemon();
    expect((await world.hosts.hosts.get(admin(), host)).depot).toEqual({ probe: '[{"version":"2.0.0"}]' });
    expect(await undeploy("2.0.0")).toMatchObject({ state: "ok", message: "stop: done" });
    await expectNoProcess();
    expect(readdirSync(dir())).toEqual(["running"]); // Made by the agent itself.
    expect((await world.hosts.hosts.get(admin(), host)).depot).toEqual({});
  });

  it("fails on a host that lacks its settings, its folder or a safe folder, with that reason", async () => {
    await save({ extagent_dir: join(dir(), "none") });
    expect(await run("start")).toMatchObject({
      state: "failed",
      message: expect.stringContaining("none does not exist"),
    });
    await save({ extagent_dir: `${dir()}/../up` });
    expect(await run("stop")).toMatchObject({ state: "failed", message: expect.stringContaining("leaves its folder") });
    await save({ extagent_start: null, extagent_stop: " " });
    const lacking = `The config of ${host} has no extagent_start, extagent_stop.`;
    expect(await deploy("2.0.0")).toMatchObject({ state: "failed", message: lacking });
    await save({}, { isextagent: 0 });
    expect(await deploy("2.0.0")).toMatchObject({
      state: "failed",
      message: expect.stringContaining("isextagent is not 1"),
    });
    expect(await save({}, { iszabbix: 1 })).toMatchObject({ iszabbix: 1 });
    rmSync(dir(), { recursive: true });
    await mkdir(join(dir(), "agent.key"), { recursive: true });
    expect(await deploy("2.0.0", { key: KEY })).toMatchObject({
      state: "failed",
      message: expect.stringContaining("agent.key is a folder"),
    });
    expect(existsSync(join(dir(), "probe.sh"))).toBe(false);
  });

  it("is on record, by host and action, and the key is on none", async () => {
    const rows = await world.mql(
      `select action, depot, state, message from /matrix/system/deployment where host='${host}' limit -1`,
    );
    const first = ["deploy", "undeploy", "start", "stop", "restart"];
    expect([...new Set(rows.map((row) => row["action"]))].sort()).toEqual(first.sort());
    expect(rows).toContainEqual({ action: "stop", depot: "", state: "ok", message: "stop: done" });
    expect(JSON.stringify(rows)).not.toContain("4711-is-the-key");
  });
});

test("an unknown host, one of another tenant and one that is away are not reached; each host has its state", async () => {
  const settings = { isextagent: 1, config: { extagent_dir: "/opt/x", extagent_start: "true", extagent_stop: "true" } };
  await world.hosts.hosts.save(admin(), { host: "away", ...settings });
  await world.hosts.hosts.save(world.hosts.principal("second"), { host: "theirs", ...settings });
  const outcomes = await world.agents.run(admin(), "stop", { hosts: ["nowhere", "theirs", "away", "away"] });
  expect(outcomes.map(({ host, state, message }) => [host, state, message])).toEqual([
    ["nowhere", "unreachable", "There is no host nowhere."],
    ["theirs", "unreachable", "There is no host theirs."],
    ["away", "unreachable", expect.stringContaining("not connected")],
  ]);
});

test("a request that no host could carry out is refused, and so is a user without the right", async () => {
  const request = { hosts: ["agent"], name: "probe", version: "1.0.0" };
  await expect(world.agents.deploy(admin(), { ...request, name: "none" })).rejects.toMatchObject({ code: "not_found" });
  await expect(world.agents.deploy(admin(), { ...request, key: "a\0b" })).rejects.toMatchObject({ code: "invalid" });
  await expect(world.agents.undeploy(admin(), { ...request, version: "1" })).rejects.toMatchObject({ code: "invalid" });
  const many = Array.from({ length: 2_001 }, (_, at) => `h${at}`);
  await expect(world.agents.run(admin(), "stop", { hosts: many })).rejects.toMatchObject({ code: "too_large" });
  const viewer = world.hosts.principal("matrix", "viewer");
  await expect(world.agents.run(viewer, "start", request)).rejects.toMatchObject({ code: "denied" });
});

/** Processes of the probe in the folder, also those that it started for a moment. Processes that ended do not count. */
function processesOf(folder: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      const isHere = readlinkSync(`/proc/${pid}/cwd`) === folder;
      return isHere && !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
    } catch {
      return false;
    }
  });
}
