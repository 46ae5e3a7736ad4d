import { existsSync, readFileSync } from "node:fs";
import { appendFile, chmod, mkdtemp, rm, truncate, copyFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Value } from "typebox/value";
import { CommandPolicySpec, LogPolicySpec } from "../../common/api/policies.ts";
import { policyText } from "../../common/agent/policy-text.ts";
import { realClock, seededRandom } from "../../test/helpers/time/clock.ts";
import { eventually } from "../../test/helpers/programs/programs.ts";
import { createExec } from "../commands/exec.ts";
import { createHost, type Host } from "../policies/host.ts";
import { Outbox } from "../outbox/outbox.ts";
import { Supervisor } from "../policies/supervisor.ts";
import { POLICY_PLUGINS } from "./index.ts";

let folder: string;
let outbox: Outbox;
let host: Host;
let supervisor: Supervisor;
const log: string[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "odp-policies-"));
  await open();
});

afterEach(async () => {
  await supervisor.stop();
  await outbox.close();
  await rm(folder, { recursive: true, force: true });
});

describe("samples", () => {
  it("are what a controller accepts and a plugin takes", () => {
    for (const [plugin, schema] of [
      ["command-policy", CommandPolicySpec],
      ["log-policy", LogPolicySpec],
    ] as const) {
      const spec: unknown = JSON.parse(readFileSync(join(import.meta.dirname, plugin, "sample.json"), "utf8"));
      expect(Value.Check(schema, spec), plugin).toBe(true);
      const work = {
        policy: { name: "s", revision: 1, spec: "", depot: undefined },
        spec,
        folder,
        confPath: undefined,
        depotFolder: undefined,
      };
      const kind = plugin.split("-")[0];
      expect(POLICY_PLUGINS.find((candidate) => candidate.kind === kind)?.create(work, host)).toBeDefined();
    }
  });
});

describe("a command policy", () => {
  it("counts due times that pass while a run goes on, each once, and runs no two at a time", async () => {
    apply(
      1,
      command({
        command: `mkdir ${folder}/lock && sleep 2.2 && rmdir ${folder}/lock && echo done`,
        interval: 1,
        unit: "second",
      }),
    );
    await until(async () => (await bodies("run")).length >= 2);
    const runs = await bodies("run");
    expect(runs.every(({ state }) => state === "ok")).toBe(true);
    const gaps = await bodies("gap");
    expect(gaps.every(({ reason, unit }) => reason === "overrun" && unit === "runs")).toBe(true);
    await everySecondOnce();
  });

  it("is skipped while the outbox has no room, and says how often", async () => {
    await supervisor.stop();
    await outbox.close();
    await open(256 * 1024);
    while (outbox.hasRoom())
      await outbox.append([
        {
          body: { $case: "output", value: { commandId: "fill", stderr: false, offset: 0, data: Buffer.alloc(20_000) } },
        },
      ]);
    const fullAt = outbox.nextSequence;
    apply(1, command({ command: "echo x", interval: 1, unit: "second" }));
    const since = Date.now();
    await until(() => Promise.resolve(Date.now() - since > 2_200 ? true : undefined));
    expect(await bodies("run", fullAt)).toEqual([]);
    await outbox.acknowledge(fullAt - 1);
    await until(async () => (await bodies("run", fullAt)).length > 0);
    expect((await bodies("gap", fullAt))[0]).toMatchObject({ reason: "outbox_full", unit: "runs" });
    await everySecondOnce(fullAt);
  });

  it("that goes while its command runs ends the run as interrupted and leaves no marks", async () => {
    apply(1, command({ command: "sleep 30", interval: 1, unit: "second" }));
    await until(() => Promise.resolve(outbox.mark("policy/p/run") ? true : undefined));
    supervisor.apply({ revision: 2, policies: [] });
    await supervisor.settled();
    expect(await bodies("run")).toMatchObject([{ state: "interrupted" }]);
    expect(outbox.marks("policy/")).toEqual([]);
  });

  it("whose program is not there fails with that reason until it is", async () => {
    const program = join(folder, "program");
    apply(1, command({ command: program, interval: 1, unit: "second" }));
    await until(() => Promise.resolve(supervisor.states.get("p")?.startsWith("failed: ended with code 127: ")));
    expect(supervisor.states.get("p")).toContain(`${program}: not found`);
    await writeFile(program, "#!/bin/sh\n");
    await until(() => Promise.resolve(supervisor.states.get("p")?.startsWith("failed: ended with code 126: ")));
    await chmod(program, 0o700);
    await until(() => Promise.resolve(supervisor.states.get("p") === "running"));
  });

  it("whose user is not on the host fails with that reason, and its due times are counted", async () => {
    apply(1, command({ command: "true", interval: 1, unit: "second", user: "odp-is-not-there" }));
    await until(() =>
      Promise.resolve(supervisor.states.get("p") === "failed: This host has no user odp-is-not-there."),
    );
    await until(async () => (await bodies("gap")).length > 0);
    expect(await bodies("run")).toEqual([]);
  });

  it("whose runs fail for reasons of their own runs", async () => {
    apply(1, command({ command: "exit 1", interval: 1, unit: "second" }));
    await until(async () => (await bodies("run")).length >= 1);
    expect(supervisor.states.get("p")).toBe("running");
  });

  it("whose output is in another encoding sends it as UTF-8, whole where a character comes in pieces", async () => {
    const encoding = "gbk";
    const attrs = { encoding };
    const pieces = "printf '\\261'; sleep 0.1; printf '\\340\\302\\353\\n\\377\\n'";
    apply(1, command({ command: pieces, interval: 1, unit: "second", split: true, attrs }));
    await until(async () => (await bodies("run")).length >= 1);
    expect((await records()).slice(0, 2)).toEqual(["编码", "\ufffd"]);
    expect((await bodies("run"))[0]).toMatchObject({
      state: "ok",
      message: "1 character of the output is no gbk",
      records: 2,
    });
    const sent = (await bodies("records")).slice(0, 1);
    expect(sent).toMatchObject([{ malformed: [1], raw: Buffer.from("ff", "hex"), rawLengths: [1] }]);
  });

  it("that an earlier version stored with an encoding that does not exist goes on in UTF-8, with a warning", async () => {
    apply(1, command({ command: "echo größer", interval: 1, unit: "second", attrs: { encoding: "klingon" } }));
    await until(async () => (await bodies("run")).length >= 1);
    expect((await records())[0]).toContain("größer");
    expect(supervisor.states.get("p")).toBe("running");
    const warning = expect.stringMatching(/^warn .*"policy":"p","encoding":"klingon"/);
    expect(log.slice(-50)).toContainEqual(warning);
  });

  it("that is a daemon whose program is not there fails with that reason", async () => {
    apply(1, command({ command: "odp-is-not-there", isdaemon: true }));
    await until(() => Promise.resolve(supervisor.states.get("p")?.includes("odp-is-not-there: not found")));
  });

  it("that is a daemon has the leader of its process group, while it runs", async () => {
    const pid = join(folder, "pid");
    apply(1, command({ command: `echo $$ > ${pid}.new; mv ${pid}.new ${pid}; exec sleep 30`, isdaemon: true }));
    await until(() => Promise.resolve(existsSync(pid)));
    expect(supervisor.pids).toEqual(new Map([["p", Number(readFileSync(pid, "utf8"))]]));
    apply(2, command({ command: "exit 1", isdaemon: true }));
    await until(() => Promise.resolve(supervisor.states.get("p")?.startsWith("failed")));
    expect(supervisor.pids.size).toBe(0);
  });

  it("that is a daemon is started again when it ends", async () => {
    apply(1, command({ command: "echo hello; exit 4", isdaemon: true }));
    await until(async () => (await bodies("run")).length >= 2);
    expect((await bodies("run")).slice(0, 2)).toMatchObject([
      { state: "failed", code: 4, records: 1 },
      { state: "failed", code: 4, records: 1 },
    ]);
  });
});

describe("a log policy", () => {
  it("reads a file that is copied and cut off from its new beginning, and leaves the copy alone", async () => {
    const path = join(folder, "app.log");
    const before = Array.from({ length: 50 }, (_, index) => `before ${index}`);
    await appendFile(path, `${before.join("\n")}\n`);
    apply(1, logs({ match: "app\\.log" }));
    await until(async () => (await records()).length === 50);
    await copyFile(path, `${path}.1`);
    await truncate(path, 0);
    await appendFile(path, "after\n");
    await until(async () => (await records()).length > 50);
    expect(await records()).toEqual([...before, "after"]);
    const [first, last] = [(await bodies("records"))[0], (await bodies("records")).at(-1)];
    expect(last?.generation).not.toBe(first?.generation);
  });

  it("sends what a deleted file still held, with its last line", { timeout: 30_000 }, async () => {
    const path = join(folder, "app.log");
    await appendFile(path, "one\n");
    apply(1, logs({ match: "^app\\.log$" }));
    await until(async () => (await records()).length === 1);
    await appendFile(path, "two\nunfinished");
    await rm(path);
    await until(async () => (await records()).length === 3);
    expect(await records()).toEqual(["one", "two", "unfinished"]);
  });

  it("goes on where it was when its revision changes", async () => {
    await appendFile(join(folder, "app.log"), "one\n");
    apply(1, logs({ match: "^app\\.log$" }));
    await until(async () => (await records()).length === 1);
    apply(2, logs({ match: "^app\\.log$", matchregexp: "o" }));
    await supervisor.settled();
    await appendFile(join(folder, "app.log"), "xxx\ntwo\n");
    await until(async () => (await records()).length === 2);
    expect(await records()).toEqual(["one", "two"]);
  });

  it("reads files with an order one after the other", async () => {
    for (const month of ["feb", "jan", "mar"])
      await appendFile(join(folder, `app-${month}.log`), `${month} 1\n${month} 2\n`);
    apply(
      1,
      logs({
        match: "^app-(?<month>\\w+)\\.log$",
        priority: ["month"],
        translation: { month: { jan: 1, feb: 2, mar: 3 } },
      }),
    );
    await until(async () => (await records()).length === 6);
    expect(await records()).toEqual(["jan 1", "jan 2", "feb 1", "feb 2", "mar 1", "mar 2"]);
  });
});

async function open(maxBytes = 1 << 24): Promise<void> {
  const random = seededRandom(Math.floor(performance.now()));
  outbox = await Outbox.open({ folder: join(folder, `outbox-${maxBytes}`), clock: realClock, random, maxBytes });
  const exec = createExec({
    clock: realClock,
    folder: join(folder, "running"),
    environment: { PATH: process.env.PATH },
  });
  const depots = { folder: () => undefined, ensure: () => Promise.reject(new Error("no depots here")) };
  host = createHost({
    log: (level, message, fields) => void log.push(`${level} ${message} ${JSON.stringify(fields)}`),
    clock: realClock,
    random,
    exec,
    depots,
    outbox,
  });
  supervisor = new Supervisor({ host, plugins: POLICY_PLUGINS, folder: join(folder, "policies") });
}

function apply(revision: number, spec: CommandPolicySpec | LogPolicySpec): void {
  supervisor.apply({
    revision,
    policies: [{ name: "p", revision, spec: policyText(spec), depot: undefined }],
  });
}

function command(spec: Partial<CommandPolicySpec>): CommandPolicySpec {
  return { name: "p", kind: "command", rule: "/r", command: "true", ctype: 1, interval: 1, unit: "day", ...spec };
}

function logs(spec: Partial<LogPolicySpec>): LogPolicySpec {
  return { name: "p", kind: "log", rule: "/r", dir: folder, match: ".", ...spec };
}

async function bodies<C extends "run" | "gap" | "records">(kind: C, from = 1) {
  const reader = outbox.reader(Math.max(from, outbox.firstSequence));
  const found = [];
  for (let entries = await reader.next(100, 1 << 20); entries.length > 0; entries = await reader.next(100, 1 << 20)) {
    for (const { body } of entries)
      if (body?.$case === kind) found.push(body.value as Extract<typeof body, { $case: C }>["value"]);
  }
  await reader.close();
  return found;
}

async function records(): Promise<string[]> {
  return (await bodies("records")).flatMap((entry) => entry.records.map((record) => record.toString()));
}

async function everySecondOnce(from = 1): Promise<void> {
  const runs = (await bodies("run", from)).map(({ scheduledMs }) => scheduledMs);
  const gaps = await bodies("gap", from);
  const covered = [
    ...runs,
    ...gaps.flatMap(({ fromMs, count }) => Array.from({ length: count }, (_, index) => fromMs + index * 1_000)),
  ].sort((a, b) => a - b);
  expect(covered).toEqual(Array.from({ length: covered.length }, (_, index) => (covered[0] ?? 0) + index * 1_000));
}

function until(probe: () => Promise<boolean | undefined>): Promise<true> {
  return eventually(`what is expected; log:\n${log.slice(-5).join("\n")}`, 20_000, async () =>
    (await probe()) ? true : undefined,
  );
}
