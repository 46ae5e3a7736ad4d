import { createHash, X509Certificate } from "node:crypto";
import { appendFile, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CommandPolicySpec, LogPolicySpec } from "../common/api/policies.ts";
import { OUTBOX_MAX_BYTES } from "../common/limits.ts";
import { realClock, seededRandom } from "../test/helpers/time/clock.ts";
import { FakeController } from "../test/helpers/hosts/fake-controller.ts";
import { runAgent } from "./agent.ts";
import { Journal } from "./commands/journal.ts";
import { Outbox } from "./outbox/outbox.ts";

let controller: FakeController;
let folder: string;
let running: { end: AbortController; done: Promise<void>; lines: string[] }[];

beforeEach(async () => {
  controller = await FakeController.start();
  folder = await mkdtemp(join(tmpdir(), "odp-agent-"));
  running = [];
});

afterEach(async () => {
  for (const { end } of running) end.abort();
  await Promise.allSettled(running.map(({ done }) => done));
  await controller.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("enrolment", () => {
  it("makes this host known and brings it into a session over mutual TLS", async () => {
    start();
    await controller.connected();
    expect(controller.hellos[0]).toMatchObject({
      protocol: 1,
      firstSequence: 1,
      facts: { host: "web-1", pid: process.pid },
    });
    expect((await stat(join(folder, "identity.json"))).mode & 0o777).toBe(0o600);
  });

  it("happens once: a restart needs no token", async () => {
    const first = start();
    await controller.connected();
    first.end.abort();
    await first.done;
    controller.refuseEnrolment = { code: "denied", message: "used" };
    start({ token: undefined });
    await controller.connected(2);
    expect(controller.hellos[1]?.streamId).toBe(controller.hellos[0]?.streamId);
  });

  it("ends with the controller's reason when the token is refused", async () => {
    controller.refuseEnrolment = { code: "denied", message: "The join token has expired." };
    await expect(start().done).rejects.toMatchObject({
      code: "denied",
      message: expect.stringContaining("The join token has expired."),
    });
  });

  it("believes nobody who does not know the token's secret", async () => {
    controller.spoilProof = true;
    await expect(start().done).rejects.toMatchObject({ code: "denied" });
    await expect(stat(join(folder, "identity.json"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("lets a second agent not work in the same folder only while the first lives", async () => {
    await writeFile(join(folder, "agent.pid"), `${process.ppid} ${await birth(process.ppid)}`);
    await expect(start().done).rejects.toMatchObject({ code: "conflict" });
    await writeFile(join(folder, "agent.pid"), `${process.ppid} 1`);
    start();
    await controller.connected();
  });
});

describe("the certificate", () => {
  it("is renewed on the way: the new session begins before the old one ends, and no entry is lost", async () => {
    controller.certificateLifeMs = 3_000;
    controller.want({
      revision: 1,
      policies: [command({ command: "seq 100", split: true, interval: 1, unit: "second" })],
    });
    start();
    await controller.connected();
    const before = await certificate();
    controller.certificateLifeMs = 86_400_000;
    await controller.connected(2);
    await controller.until("runs after the change", () => controller.bodies("run").length >= 4);
    expect((await certificate()).fingerprint256).not.toBe(before.fingerprint256);
    expect(controller.records().length % 100).toBe(0);
  });
});

describe("commands", () => {
  it("stream their output and end in one result", async () => {
    start();
    await controller.connected();
    controller.command({
      id: "c1",
      body: exec("echo one; echo two >&2; cat; exit 3", { stdin: "in", streamOutput: true }),
    });
    await controller.until("result", () => controller.bodies("result").length === 1);
    expect(controller.bodies("result")[0]).toMatchObject({ commandId: "c1", state: "failed", code: 3 });
    expect(output("c1", false)).toBe("one\nin");
    expect(output("c1", true)).toBe("two\n");
    expect(controller.states).toEqual([{ commandId: "c1", state: "accepted", message: "" }]);
  });

  it("run once however often they come", async () => {
    start();
    await controller.connected();
    const body = exec(`echo x >> ${folder}/ran`);
    controller.command({ id: "c1", body });
    controller.command({ id: "c1", body });
    await controller.until("result", () => controller.bodies("result").length === 1);
    controller.command({ id: "c1", body });
    controller.command({ id: "c2", body: exec("true") });
    await controller.until("second result", () => controller.bodies("result").length === 2);
    expect(await readFile(join(folder, "ran"), "utf8")).toBe("x\n");
    expect(controller.states.map(({ commandId, state }) => `${commandId} ${state}`)).toEqual([
      "c1 accepted",
      "c1 accepted",
      "c1 accepted",
      "c2 accepted",
    ]);
  });

  it("end at their deadline by the controller's clock, with all they started", async () => {
    start();
    await controller.connected();
    // The controller's clock is an hour behind.
    const sentMs = Date.now() - 3_600_000;
    controller.command({
      id: "c1",
      sentMs,
      deadlineMs: sentMs + 300,
      body: exec(`(sleep 5; echo late > ${folder}/late) & sleep 20`),
    });
    controller.command({ id: "c2", sentMs, deadlineMs: sentMs - 1, body: exec("true") });
    await controller.until("results", () => controller.bodies("result").length === 2);
    expect(controller.bodies("result").find(({ commandId }) => commandId === "c1")).toMatchObject({
      signal: "SIGTERM",
      pid: expect.any(Number) as number,
    });
    expect(Object.fromEntries(controller.bodies("result").map(({ commandId, state }) => [commandId, state]))).toEqual({
      c1: "timeout",
      c2: "expired",
    });
  });

  it("can be cancelled, by whoever has the highest epoch", async () => {
    start();
    await controller.connected();
    controller.command({ id: "c1", body: exec("sleep 30") });
    await controller.until("accepted", () => controller.states.length === 1);
    controller.send({ $case: "cancel", value: { commandId: "c1", epoch: controller.epoch - 1 } });
    controller.command({ id: "old", epoch: controller.epoch - 1, body: exec("true") });
    await controller.until("refused", () => controller.states.length === 2);
    expect(controller.states[1]).toMatchObject({ commandId: "old", state: "refused" });
    expect(controller.bodies("result")).toEqual([]);
    controller.send({ $case: "cancel", value: { commandId: "c1", epoch: controller.epoch } });
    await controller.until("result", () => controller.bodies("result").length === 1);
    expect(controller.bodies("result")[0]).toMatchObject({ commandId: "c1", state: "cancelled" });
  });

  it("do not wait for what they left running in the background", async () => {
    start();
    await controller.connected();
    controller.command({ id: "c1", body: exec("sleep 30 & echo done") });
    await controller.until("result", () => controller.bodies("result").length === 1, 5_000);
    expect(output("c1", false)).toBe("done\n");
    expect(controller.bodies("result")[0]?.state).toBe("ok");
  });

  it("get the result `interrupted` when the agent ends in good order", async () => {
    const agent = start();
    await controller.connected();
    controller.command({ id: "c1", body: exec("sleep 30") });
    await controller.until("accepted", () => controller.states.length === 1);
    agent.end.abort();
    await agent.done;
    expect(controller.bodies("result")[0]).toMatchObject({ commandId: "c1", state: "interrupted" });
  });
});

describe("depots", () => {
  it("are put in place, run, used by jobs and policies, replaced, and taken away", async () => {
    start();
    await controller.connected();
    controller.command({
      id: "d1",
      body: { $case: "deploy", value: depot("tool", "1.0.0", { "bin/hello": "echo hello 1" }, "cp bin/hello copied") },
    });
    await result("d1", "ok");
    controller.command({ id: "j1", body: exec("cat copied; ./bin/hello", { depot: "tool" }) });
    await result("j1", "ok");
    expect(output("j1", false)).toBe("echo hello 1hello 1\n");
    controller.command({
      id: "d2",
      body: { $case: "deploy", value: depot("tool", "2.0.0", { "bin/hello": "echo hello 2" }, "") },
    });
    await result("d2", "ok");
    const policy = command({ command: "./bin/hello", ctype: 0, interval: 1, unit: "second" });
    controller.want({
      revision: 1,
      policies: [{ ...policy, depot: depot("tool", "2.0.0", { "bin/hello": "echo hello 2" }, "") }],
    });
    await controller.until("records", () => controller.records("p").length > 0);
    expect(controller.records("p")[0]).toBe("hello 2");
    controller.want({ revision: 2, policies: [] });
    controller.command({
      id: "u1",
      body: { $case: "undeploy", value: { name: "tool", version: "2.0.0", command: "", remotePath: "" } },
    });
    await result("u1", "ok");
    await expect(stat(join(folder, "depots/tool"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("that would leave their folder, or are not what their digest says, are refused and change nothing", async () => {
    start();
    await controller.connected();
    controller.command({ id: "d1", body: { $case: "deploy", value: depot("tool", "1.0.0", { a: "one" }, "") } });
    await result("d1", "ok");
    controller.command({
      id: "d2",
      body: { $case: "deploy", value: depot("tool", "2.0.0", { "../outside": "x" }, "") },
    });
    await result("d2", "failed");
    const wrong = depot("tool", "2.0.0", { a: "two" }, "");
    controller.contents.set(wrong.files[0]?.digest ?? "", Buffer.from("six"));
    controller.command({ id: "d3", body: { $case: "deploy", value: wrong } });
    await result("d3", "failed");
    expect(await readFile(join(folder, "depots/tool/current/a"), "utf8")).toBe("one");
  });

  it("go back to the version before when their command fails", async () => {
    start();
    await controller.connected();
    controller.command({ id: "d1", body: { $case: "deploy", value: depot("tool", "1.0.0", { a: "one" }, "") } });
    await result("d1", "ok");
    controller.command({
      id: "d2",
      body: { $case: "deploy", value: depot("tool", "2.0.0", { a: "two" }, "echo broken; exit 7") },
    });
    await result("d2", "failed");
    expect(controller.bodies("result").at(-1)).toMatchObject({ code: 7, message: expect.stringContaining("broken") });
    expect(await readFile(join(folder, "depots/tool/current/a"), "utf8")).toBe("one");
  });

  it("with a remote path leave everything else there alone", async () => {
    const target = join(folder, "target");
    await mkdir(target);
    await writeFile(join(target, "mine"), "mine");
    start();
    await controller.connected();
    controller.command({
      id: "d1",
      body: { $case: "deploy", value: { ...depot("tool", "1.0.0", { "etc/a": "one" }, ""), remotePath: target } },
    });
    await result("d1", "ok");
    expect(await readFile(join(target, "etc/a"), "utf8")).toBe("one");
    controller.command({
      id: "u1",
      body: { $case: "undeploy", value: { name: "tool", version: "", command: "", remotePath: target } },
    });
    await result("u1", "ok");
    await expect(stat(join(target, "etc/a"))).rejects.toMatchObject({ code: "ENOENT" });
    expect(await readFile(join(target, "mine"), "utf8")).toBe("mine");
  });
});

describe("policies", () => {
  it("go on by what was wanted last while no controller is there", async () => {
    await mkdir(join(folder, "logs"));
    controller.want({ revision: 7, policies: [log({ dir: join(folder, "logs"), match: "^app\\.log$" })] });
    const first = start();
    await controller.connected();
    await controller.until("state taken", () => first.lines.some((line) => line.includes("policy at work")));
    first.end.abort();
    await first.done;
    controller.deafen();
    await appendFile(join(folder, "logs/app.log"), "one\n");
    start();
    await appendFile(join(folder, "logs/app.log"), "two\n");
    await controller.listen();
    await controller.connected(2);
    expect(controller.hellos[1]?.desiredRevision).toBe(7);
    await controller.until("records", () => controller.records().length === 2);
    expect(controller.records()).toEqual(["one", "two"]);
  });

  it("get their conf beside their working files, and lose it with the deployment", async () => {
    const policy = { ...command({ command: "cat p.conf", interval: 1, unit: "second" }), conf: "level=3\n" };
    controller.want({ revision: 1, policies: [policy] });
    start();
    await controller.until("records", () => controller.records("p").length > 0);
    expect(controller.records("p")[0]).toBe("level=3");
    controller.want({ revision: 2, policies: [] });
    await controller.until("folder gone", () => controller.bodies("run").length > 0);
  });

  it("that nobody can carry out are told with the heartbeat", async () => {
    controller.want({
      revision: 1,
      policies: [command({ command: "true", delimiter: "(", interval: 1, unit: "second" })],
    });
    const agent = start();
    await controller.until("complaint", () =>
      agent.lines.some((line) => line.includes("policy fails") && line.includes("regular expression")),
    );
  });

  it("send the records of a file that is renamed and made anew again and again, each once", async () => {
    const dir = join(folder, "logs");
    await mkdir(dir);
    controller.want({ revision: 1, policies: [log({ dir, match: "^app\\.log$" })] });
    start();
    await appendFile(join(dir, "app.log"), "first\n");
    await controller.until("first record", () => controller.records().length === 1);
    const expected = ["first"];
    for (let generation = 0; generation < 10; generation++) {
      for (let chunk = 0; chunk < 20; chunk++) {
        const lines = Array.from({ length: 100 }, (_, index) => `${generation}-${chunk}-${index}`);
        expected.push(...lines);
        await appendFile(join(dir, "app.log"), `${lines.join("\n")}\n`);
      }
      for (let age = generation; age > 0; age--)
        await rename(join(dir, `app.log.${age}`), join(dir, `app.log.${age + 1}`));
      await rename(join(dir, "app.log"), join(dir, "app.log.1"));
    }
    await controller.until("records", () => controller.records().length >= expected.length);
    expect(controller.records().sort()).toEqual(expected.sort());
    expect(controller.bodies("gap")).toEqual([]);
  });
});

describe("the outbox", () => {
  it("that a controller knows more of than it holds goes on as a new stream", async () => {
    const first = start();
    await controller.connected();
    controller.command({ id: "c1", body: exec("true") });
    await result("c1", "ok");
    first.end.abort();
    await first.done;
    await rm(join(folder, "outbox"), { recursive: true });
    controller.welcome = { acknowledged: 50 };
    start();
    await controller.until("hello", () => controller.hellos.length >= 2);
    controller.welcome = {};
    await controller.until(
      "hello of a new stream",
      () => controller.hellos.at(-1)?.streamId !== controller.hellos[1]?.streamId,
    );
  });

  it("that was full to the last byte when the agent was killed is emptied, and takes the results of what was interrupted", async () => {
    const outboxMaxBytes = 256 * 1024;
    const full = await Outbox.open({
      folder: join(folder, "outbox"),
      clock: realClock,
      random: seededRandom(1),
      maxBytes: outboxMaxBytes,
    });
    await new Journal(full, realClock).start("c1", 60_000, "");
    const output = {
      $case: "output" as const,
      value: { commandId: "c0", stderr: false, offset: 0, data: Buffer.alloc(10_000) },
    };
    while (full.hasRoom(true)) await full.append([{ body: output }], { reserve: true });
    await full.close();
    start({ outboxMaxBytes });
    await result("c1", "interrupted");
  });
});

function start(config: { token?: string | undefined; outboxMaxBytes?: number } = {}) {
  const end = new AbortController();
  const lines: string[] = [];
  const log = (level: string, message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const world = {
    clock: realClock,
    random: seededRandom(1),
    log,
    environment: { PATH: process.env.PATH },
    version: "test",
  };
  const settings = {
    controller: controller.url,
    token: controller.joinToken,
    name: "test-host",
    folder,
    outboxMaxBytes: OUTBOX_MAX_BYTES,
    isTunnelOpen: () => false,
    ...config,
  };
  const done = runAgent(settings, world, end.signal);
  done.catch(() => undefined);
  running.push({ end, done, lines });
  return { end, done, lines };
}

function exec(line: string, options: { stdin?: string; streamOutput?: boolean; depot?: string } = {}) {
  const { stdin = "", streamOutput = false, depot = "" } = options;
  return { $case: "exec" as const, value: { line, environment: {}, depot, streamOutput, stdin: Buffer.from(stdin) } };
}

function depot(name: string, version: string, files: Record<string, string>, line: string) {
  const list = Object.entries(files).map(([path, text]) => {
    const digest = createHash("sha256").update(text).digest("hex");
    controller.contents.set(digest, Buffer.from(text));
    return { path, digest, size: text.length, executable: path.startsWith("bin/") };
  });
  return { name, version, files: list, command: line, remotePath: "" };
}

async function result(id: string, state: string): Promise<void> {
  await controller.until(`result of ${id}`, () =>
    controller.bodies("result").some(({ commandId }) => commandId === id),
  );
  expect(controller.bodies("result").find(({ commandId }) => commandId === id)).toMatchObject({ state });
}

function output(id: string, stderr: boolean): string {
  const pieces = controller.bodies("output").filter((piece) => piece.commandId === id && piece.stderr === stderr);
  return pieces.map(({ data }) => data.toString()).join("");
}

function command(spec: Partial<CommandPolicySpec>) {
  const whole: CommandPolicySpec = {
    name: "p",
    kind: "command",
    rule: "/matrix/rules/r",
    command: "true",
    ctype: 1,
    interval: 1,
    unit: "minute",
    ...spec,
  };
  return { name: "p", revision: 1, spec: JSON.stringify(whole), depot: undefined, conf: "" };
}

function log(spec: Partial<LogPolicySpec>) {
  const whole: LogPolicySpec = { name: "l", kind: "log", rule: "/matrix/rules/r", dir: "/", match: ".", ...spec };
  return { name: "l", revision: 1, spec: JSON.stringify(whole), depot: undefined, conf: "" };
}

async function certificate(): Promise<X509Certificate> {
  const identity: { certificate: string } = JSON.parse(await readFile(join(folder, "identity.json"), "utf8"));
  return new X509Certificate(Buffer.from(identity.certificate, "base64"));
}

async function birth(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}
