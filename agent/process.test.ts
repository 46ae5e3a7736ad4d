import { appendFile, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { closeSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { open } from "lmdb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { CommandPolicySpec, LogPolicySpec } from "../common/api/policies.ts";
import { FakeController } from "../test/helpers/hosts/fake-controller.ts";
import { Program } from "../test/helpers/programs/programs.ts";

const BANNER =
  "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);";

let bundle: string;
let folder: string;
let controller: FakeController;
let agent: Program | undefined;

beforeAll(async () => {
  bundle = await mkdtemp(join(tmpdir(), "odp-bundle-"));
  const target = {
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.19",
    banner: { js: BANNER },
  } as const;
  await build({ ...target, entryPoints: ["agent/main.ts"], outfile: join(bundle, "agent.mjs") });
});

afterAll(() => rm(bundle, { recursive: true, force: true }));

beforeEach(async () => {
  controller = await FakeController.start();
  folder = await mkdtemp(join(tmpdir(), "odp-agent-"));
});

afterEach(async () => {
  await agent?.kill();
  await controller.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("the agent as a process", () => {
  it("killed again and again: every line of a rotated log and every due run is there exactly once", {
    timeout: 120_000,
  }, async () => {
    const dir = join(folder, "logs");
    await mkdir(dir);
    const log = policy({ name: "access", kind: "log", rule: "/r", dir, match: "^access\\.log$" });
    const beat = policy({
      name: "beat",
      kind: "command",
      rule: "/r",
      command: "echo beat",
      ctype: 1,
      interval: 1,
      unit: "second",
    });
    controller.want({ revision: 1, policies: [log, beat] });
    start();
    await controller.connected();
    const writing = writeLines(dir, 100_000);
    for (let round = 0; round < 4; round++) {
      const runs = controller.bodies("run").length;
      await controller.until("runs go on", () => controller.bodies("run").length > runs + 1);
      await agent?.kill();
      if (round === 2) controller.deafen();
      start();
      if (round === 2) await controller.listen();
    }
    const expected = await writing;
    await controller.until("all lines", () => controller.records("access").length >= expected, 60_000);
    const last = Math.max(...controller.bodies("run").map(({ scheduledMs }) => scheduledMs));
    await controller.until("one more run", () =>
      controller.bodies("run").some(({ scheduledMs }) => scheduledMs > last),
    );
    await agent?.kill("SIGTERM");

    const lines = controller
      .records("access")
      .map(Number)
      .sort((a, b) => a - b);
    expect(lines).toEqual(Array.from({ length: expected }, (_, index) => index));
    accountForEverySecond();
    expect(controller.bodies("gap").filter(({ policy: name }) => name !== "beat")).toEqual([]);
  });

  it("killed while a command runs: the command is ended, and its one result is `interrupted`", async () => {
    start();
    await controller.connected();
    const line = `echo $$ > ${folder}/pid; sleep 60; echo late`;
    controller.command({
      id: "c1",
      body: { $case: "exec", value: { line, environment: {}, depot: "", streamOutput: true, stdin: Buffer.alloc(0) } },
    });
    await controller.until("accepted", () => controller.states.length === 1);
    await agent?.kill();
    start();
    await controller.until("result", () => controller.bodies("result").length === 1);
    expect(controller.bodies("result")[0]).toMatchObject({ commandId: "c1", state: "interrupted" });
    await controller.connected(2);
    controller.command({
      id: "c1",
      body: {
        $case: "exec",
        value: { line: "echo again", environment: {}, depot: "", streamOutput: true, stdin: Buffer.alloc(0) },
      },
    });
    await controller.until("answered from the journal", () => controller.states.length === 2);
    expect(controller.states[1]).toMatchObject({ commandId: "c1", state: "accepted" });
    expect(controller.bodies("output")).toEqual([]);
  });

  it("while the controllers are away works on, and delivers all of it when they are back", async () => {
    const dir = join(folder, "logs");
    await mkdir(dir);
    controller.want({
      revision: 1,
      policies: [policy({ name: "access", kind: "log", rule: "/r", dir, match: "^access\\.log$" })],
    });
    start();
    await controller.connected();
    await agent?.printed(/policy at work/);
    controller.deafen();
    const expected = await writeLines(dir, 20_000);
    await controller.listen();
    await controller.until("all lines", () => controller.records().length >= expected);
    expect(new Set(controller.records()).size).toBe(expected);
    expect(controller.records()).toHaveLength(expected);
  });

  it("gives its commands no descriptor that it has inherited itself", async () => {
    // As a library's file that is open without close-on-exec; numbers below 16 Node takes care of.
    const store = open({ path: join(folder, "store") });
    const others = Array.from({ length: 16 }, () => openSync("/dev/null", "r"));
    const more = open({ path: join(folder, "more") });
    start();
    await controller.connected();
    const line = "ls -l /proc/self/fd";
    controller.command({
      id: "c1",
      body: { $case: "exec", value: { line, environment: {}, depot: "", streamOutput: true, stdin: Buffer.alloc(0) } },
    });
    await controller.until("result", () => controller.bodies("result").length === 1);
    const listed = Buffer.concat(controller.bodies("output").map(({ data }) => data)).toString();
    expect(listed).toContain(" 0 -> ");
    expect(listed).not.toContain("data.mdb");
    for (const one of [store, more]) await one.close();
    for (const one of others) closeSync(one);
  });

  it("says by name which setting is wrong", async () => {
    const wrong = new Program("agent", join(bundle, "agent.mjs"), { ODP_AGENT_DIR: folder, ODP_AGENT_TOKN: "x" });
    await wrong.printed(/ODP_AGENT_TOKN is unknown/);
    await wrong.kill();
  });
});

function start(): void {
  const environment = {
    ODP_AGENT_CONTROLLER: controller.url,
    ODP_AGENT_TOKEN: controller.joinToken,
    ODP_AGENT_DIR: join(folder, "agent"),
  };
  agent = new Program("agent", join(bundle, "agent.mjs"), environment);
}

/**
 * Numbered lines in bursts, with a rotation by renaming now and then, as a busy program and its log rotation make them.
 */
async function writeLines(dir: string, count: number): Promise<number> {
  const path = join(dir, "access.log");
  await appendFile(path, "0\n");
  await controller.until(
    "the file was seen",
    () => controller.records("access").length > 0 || controller.sessions === 0,
  );
  for (let from = 1, burst = 0; from < count; from += 250, burst++) {
    const lines = Array.from({ length: Math.min(250, count - from) }, (_, index) => from + index);
    await appendFile(path, `${lines.join("\n")}\n`);
    if (burst % 50 !== 49) continue;
    for (let age = 12; age > 0; age--) await rename(`${path}.${age}`, `${path}.${age + 1}`).catch(() => undefined);
    await rename(path, `${path}.1`);
    await controller.until("some were read", () => controller.sessions === 0 || controller.received > 0);
  }
  return count;
}

/** From the first run to the last, each second is the scheduled time of one run or counted in one gap. */
function accountForEverySecond(): void {
  const runs = controller.bodies("run").map(({ scheduledMs }) => scheduledMs);
  const gaps = controller.bodies("gap").filter(({ policy: name }) => name === "beat");
  expect(new Set(runs).size).toBe(runs.length);
  const first = Math.min(...runs);
  const last = Math.max(...runs, ...gaps.map(({ toMs }) => toMs));
  const missed = gaps.filter(({ toMs }) => toMs >= first).reduce((sum, { count }) => sum + count, 0);
  expect(runs.length + missed).toBe((last - first) / 1_000 + 1);
  const finished = controller.bodies("run").filter(({ state }) => state === "ok");
  expect(controller.records("beat")).toHaveLength(finished.length);
}

function policy(spec: CommandPolicySpec | LogPolicySpec) {
  return { name: spec.name, revision: 1, spec: JSON.stringify(spec), depot: undefined };
}
