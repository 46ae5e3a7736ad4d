import { beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { DISPATCH_GRACE_MS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { noClasses } from "../../../test/helpers/engines/memory-objects.ts";
import { MemoryStores } from "../../../test/helpers/engines/memory-stores.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { CommandOutcome, DispatchOptions, HostCommand } from "../hosts/index.ts";
import type { Notification } from "../notifications/index.ts";
import { TAGS_COLUMN, type ObjectRow, type Objects, type SystemClass } from "../objects/index.ts";
import { jobClasses } from "./classes.ts";
import { JobRuns } from "./runs/runs.ts";
import { JobService } from "./service.ts";
import { JobOutputs } from "./output/outputs.ts";

const admin = testPrincipal();
const other = testPrincipal("administrator", "other");
const viewer = testPrincipal("viewer");

type Exec = Extract<HostCommand, { kind: "exec" }>;
interface Sent extends DispatchOptions {
  readonly tenant: string;
  readonly host: string;
  readonly command: Exec;
}

/** Hosts that behave as a test says; by default they succeed at once. */
class FakeHosts {
  readonly sent: Sent[] = [];
  behaviour: (sent: Sent) => Promise<Partial<CommandOutcome>> | Partial<CommandOutcome> = () => ({});

  async dispatch(
    principal: { tenant: string },
    host: string,
    command: HostCommand,
    options: DispatchOptions,
  ): Promise<CommandOutcome> {
    if (command.kind !== "exec") throw new Error("not for jobs");
    const sent = { ...options, tenant: principal.tenant, host, command };
    this.sent.push(sent);
    return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2, ...(await this.behaviour(sent)) };
  }
}

/** Rows of job runs, with the functions that runs use of objects. The write with the later time wins, in any order. */
class FakeRows {
  readonly catalog: Objects["catalog"] = (principal) => noClasses().catalog(principal);
  readonly rows = new Map<string, Record<string, Row[string] | undefined>>();
  readonly #times = new Map<string, number>();
  failures: AppError[] = [];

  insert(
    _principal: unknown,
    path: string,
    rows: readonly Row[],
    options: { readonly atMs?: number | readonly number[] } = {},
  ): Promise<readonly string[]> {
    const failure = rows.some((row) => row["status"] !== "running") ? this.failures.shift() : undefined;
    if (failure) return Promise.reject(failure);
    const ids = rows.map((row, at) => {
      const id = ["runid", "host", "place"].reduce((text, key) => `${text}:${String(row[key] ?? "")}`, path);
      const given = typeof options.atMs === "object" ? options.atMs[at] : options.atMs;
      const [atMs, lastMs] = [given ?? 0, this.#times.get(id) ?? -1];
      this.rows.set(id, {
        ...(atMs >= lastMs ? { ...this.rows.get(id), ...row } : { ...row, ...this.rows.get(id) }),
        class: path,
      });
      this.#times.set(id, Math.max(atMs, lastMs));
      return id;
    });
    return Promise.resolve(ids);
  }

  get(_principal: unknown, refs: readonly { readonly id: string }[]): Promise<readonly (ObjectRow | undefined)[]> {
    return Promise.resolve(
      refs.map(({ id }) => {
        const values = this.rows.get(id);
        return values && ({ id, values } as unknown as ObjectRow);
      }),
    );
  }

  of(host: string) {
    return [...this.rows.values()].filter(
      (row) => row["host"] === host && String(row["class"]).endsWith("/jobs/jobrun"),
    );
  }
}

let clock: TestClock;
let stores: MemoryStores;
let hosts: FakeHosts;
let rows: FakeRows;
let published: Notification[];
let jobs: JobService;
let runs: JobRuns;

beforeEach(() => {
  clock = new TestClock();
  stores = new MemoryStores();
  hosts = new FakeHosts();
  rows = new FakeRows();
  published = [];
  present = new Set(["a", "b"]);
  const runtime = testRuntime(clock);
  jobs = new JobService({ stores, runtime, objects: noClasses() });
  runs = newRuns();
});

/** Controllers that are alive. */
let present: Set<string>;
const newRuns = (
  own = "a",
  over: { readonly clock?: TestClock; readonly hosts?: FakeHosts; readonly objects?: FakeRows } = {},
) =>
  new JobRuns({
    secrets: TEST_SECRETS,
    stores,
    jobs,
    runtime: testRuntime(over.clock ?? clock),
    hosts: over.hosts ?? hosts,
    objects: over.objects ?? rows,
    stored: { outcome: () => Promise.resolve(undefined) },
    notifications: { publish: (_tenant, notification) => void published.push(notification) },
    controllers: { own, has: (id) => present.has(id) },
    runsInFlightMax: 256,
  });
const define = (more: Partial<Parameters<JobService["save"]>[1]> = {}) =>
  jobs.save(admin, { name: "backup", dir: "common/x", exec: ["run-backup"], host: ["h1"], ...more });
const remote = (param: object, more: { timeoutSeconds?: number } = {}) =>
  runs.execute(admin, "remote_command@system/common", { param: JSON.stringify(param), ...more });
const text = (data: string, stderr = false) => ({ stderr, data: new TextEncoder().encode(data) });
const never = () => new Promise<never>(() => {});
const openKeys = () => stores.keys("matrix", "jobs/open/");
/** Waits until the code under test waits for the clock. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("definitions", () => {
  test("are added, replaced, read and deleted by <name>@<dir>, with every field a client sends", async () => {
    await define({
      dir: "/common/x/",
      schedule: "cron 0/5 * * * *",
      groupmode: "parallel",
      queue: "q",
      tag: ["a"],
      arg: ["1"],
      argenc: "gbk",
      timeout: 7,
      limit: 3,
      algorithm: "random",
    });
    const record = await jobs.get(admin, "backup@common/x");
    expect(record).toMatchObject({
      id: "jobdef:backup@common/x",
      class: "/matrix/jobs/jobdef",
      fullname: "backup@common/x",
      dir: "common/x",
      exec: ["run-backup"],
      host: ["h1"],
      schedule: "cron 0/5 * * * *",
      groupmode: "parallel",
      queue: "q",
      tag: ["a"],
      arg: ["1"],
      timeout: 7,
      limit: 3,
      enable: 1,
      system: false,
      creator: "administrator",
    });
    expect(await define({ exec: ["other"] })).toMatchObject({ job: { exec: ["other"], schedule: "" } });
    expect((await jobs.list(admin)).map((job) => job.fullname)).toEqual([
      "backup@common/x",
      "remote_command@system/common",
      "remote_wincall@system/common",
    ]);
    await jobs.remove(admin, "backup@common/x");
    await expect(jobs.get(admin, "backup@common/x")).rejects.toMatchObject({ code: "not_found" });
    await expect(jobs.remove(admin, "backup@common/x")).rejects.toMatchObject({ code: "not_found" });
  });

  test.each([
    [{ name: "a@b" }, "@"],
    [{ name: "a/b" }, "slash"],
    [{ dir: "../x" }, "leaves"],
    [{ exec: [" "] }, "exec"],
    [{ dir: "system/common" }, "platform"],
  ])("%j is refused", async (change, reason) => {
    await expect(define(change)).rejects.toThrow(reason);
  });

  test("jobs of the platform cannot be deleted; what is no job's name is not found", async () => {
    await expect(jobs.remove(admin, "remote_command@system/common")).rejects.toMatchObject({ code: "denied" });
    for (const name of ["exist/backup@common/x", "sync", "a@../b", ""])
      await expect(jobs.get(admin, name)).rejects.toMatchObject({ code: "not_found" });
  });

  test("are rows of /jobs/jobdef that MQL may delete and tag only", async () => {
    const classes: SystemClass[] = [];
    classes.push(...jobClasses(jobs));
    await define();
    const [definition] = classes;
    for await (const page of definition?.provide?.(admin) ?? []) {
      expect(page.map((row) => row["id"])).toEqual([
        "jobdef:backup@common/x",
        "jobdef:remote_command@system/common",
        "jobdef:remote_wincall@system/common",
      ]);
      const known = new Set([...(definition?.columns.map((column) => column.name) ?? []), "id", "class", TAGS_COLUMN]);
      expect(Object.keys(page[0] ?? {}).filter((name) => !known.has(name))).toEqual([]);
    }
    const id = "jobdef:backup@common/x";
    const edit = { column: "timeout", operation: "set", value: 5 } as const;
    await expect(definition?.guard.update?.(admin, id, [edit])).rejects.toMatchObject({ code: "unsupported" });
    expect(await definition?.guard.remove?.(admin, [id])).toBe(1);
    expect(definition?.guard.insert).toBeUndefined();
  });
});

describe("an execution", () => {
  test("runs the command on the host, answers its output and leaves one row with the end", async () => {
    await define();
    hosts.behaviour = ({ onOutput }) => {
      onOutput?.(text("one\n"));
      onOutput?.(text("warn\n", true));
      onOutput?.(text("two\n"));
      return { code: 0 };
    };
    const execution = await runs.execute(admin, "backup@common/x", {});
    expect(await execution.finished).toEqual([
      { host: "h1", state: "ok", code: 0, message: "", output: "one\nwarn\ntwo\n" },
    ]);
    expect(hosts.sent).toMatchObject([
      { host: "h1", command: { kind: "exec", line: "run-backup" }, timeoutMs: 60_000 },
    ]);
    expect(rows.of("h1")).toMatchObject([
      {
        class: "/matrix/jobs/jobrun",
        runid: execution.runId,
        name: "backup@common/x",
        status: "ok",
        code: 0,
        out: "one\ntwo\n",
        err: "warn\n",
        source: "administrator",
        outputsize: 13,
      },
    ]);
    expect(rows.of("h1")[0]?.["sid"]).toMatch(/^M\d{12}:\d+$/);
    const run = { runId: execution.runId, host: "h1" };
    const part = await new JobOutputs(stores).read("matrix", run, { offset: 4, maxBytes: 100 });
    expect(new TextDecoder().decode(part.bytes)).toBe("warn\ntwo\n");
    expect((await new JobOutputs(stores).read("other", run, { offset: 0, maxBytes: 100 })).size).toBe(0);
  });

  test("is on record as running before its end, and says start and end on the subject jobrun", async () => {
    hosts.behaviour = never;
    const { runId } = await remote({ cmd: "sleep", "HOST!": "h1" });
    await settled();
    expect(rows.of("h1")).toMatchObject([{ status: "running", cmds: ["sleep"], name: "remote_command@system/common" }]);
    expect(published).toMatchObject([
      { subject: "jobrun", source: "h1", title: "remote_command@system/common", keyspace: "/matrix" },
    ]);
    expect(JSON.parse(published[0]?.msg ?? "")).toMatchObject({ runid: runId, status: "running" });
  });

  test("ends as timeout by its deadline even when the host says nothing at all", async () => {
    hosts.behaviour = never;
    const { finished } = await remote({ cmd: "sleep", "HOST!": "h1", timeout: 5 });
    await settled();
    expect(hosts.sent[0]?.timeoutMs).toBe(5_000);
    clock.advance(5_000 + DISPATCH_GRACE_MS);
    expect(await finished).toMatchObject([{ host: "h1", state: "timeout" }]);
    expect(rows.of("h1")).toMatchObject([{ status: "timeout" }]);
    expect(published.map((each) => (JSON.parse(each.msg) as { status: string }).status)).toEqual([
      "running",
      "timeout",
    ]);
  });

  test("gives parameters as environment, never as text of the command; HOST! overrides the job's host", async () => {
    await define({ exec: ["echo $target"] });
    const param = {
      "HOST!": "h7",
      target: "; rm -rf /",
      n: 5,
      list: [1],
      PATH: "/evil",
      ld_preload: "x",
      "odd-name": "y",
      gone: null,
    };
    await (await runs.execute(admin, "backup@common/x", { param: JSON.stringify(param) })).finished;
    const [sent] = hosts.sent;
    expect(sent?.host).toBe("h7");
    expect(sent?.command.line).toBe("echo $target");
    expect(sent?.command.environment).toEqual({
      ODP_RUN_ID: expect.stringMatching(/^[0-9A-Z]{26}$/) as string,
      ODP_PARAM_TARGET: "; rm -rf /",
      target: "; rm -rf /",
      ODP_PARAM_N: "5",
      n: "5",
      ODP_PARAM_LIST: "[1]",
      list: "[1]",
      ODP_PARAM_PATH: "/evil",
      ODP_PARAM_LD_PRELOAD: "x",
      ODP_PARAM_ODD_NAME: "y",
    });
  });

  test("takes the time of the call, then of param, then of the job, then the default", async () => {
    await define({ timeout: 30 });
    const timeouts = async (request: { timeoutSeconds?: number; param?: string }) => {
      await (await runs.execute(admin, "backup@common/x", request)).finished;
      return hosts.sent.at(-1)?.timeoutMs;
    };
    expect(await timeouts({ timeoutSeconds: 10, param: '{"timeout":20}' })).toBe(10_000);
    expect(await timeouts({ param: '{"timeout":"20"}' })).toBe(20_000);
    expect(await timeouts({})).toBe(30_000);
    expect(await timeouts({ timeoutSeconds: 0 })).toBe(30_000);
  });

  test("runs several commands in their order and stops at the first that fails", async () => {
    await define({ exec: ["one", "two", "three"] });
    hosts.behaviour = ({ command }) =>
      command.line === "two" ? { state: "failed", code: 3, message: "exit code 3" } : {};
    expect(await (await runs.execute(admin, "backup@common/x", {})).finished).toMatchObject([
      { state: "failed", code: 3 },
    ]);
    expect(hosts.sent.map((sent) => sent.command.line)).toEqual(["one", "two"]);
    expect(new Set(hosts.sent.map((sent) => sent.commandId)).size).toBe(2);
  });

  test("on several hosts ends once on each, whatever becomes of the others", async () => {
    await define({ host: ["h1", "h2", "h3", "h4", "h1"] });
    hosts.behaviour = ({ host }) => {
      if (host === "h2") throw new AppError("not_found", "no such host");
      if (host === "h3") throw new Error("broken transport");
      return host === "h4" ? { state: "unreachable", message: "offline" } : {};
    };
    const finished = await (await runs.execute(admin, "backup@common/x", {})).finished;
    expect(finished.map(({ host, state }) => [host, state])).toEqual([
      ["h1", "ok"],
      ["h2", "unreachable"],
      ["h3", "failed"],
      ["h4", "unreachable"],
    ]);
    for (const { host, state } of finished) expect(rows.of(host)).toMatchObject([{ status: state }]);
  });

  test("in sequence runs on one host after the other, and in mode one on the first that can be reached", async () => {
    let working = 0;
    hosts.behaviour = async ({ host }) => {
      expect(++working).toBe(1);
      await settled();
      working--;
      return host === "h1" ? { state: "unreachable" } : {};
    };
    await define({ host: ["h1", "h2", "h3"], groupmode: "sequence" });
    expect(await (await runs.execute(admin, "backup@common/x", {})).finished).toHaveLength(3);
    await define({ host: ["h1", "h2", "h3"], groupmode: "one" });
    const finished = await (await runs.execute(admin, "backup@common/x", {})).finished;
    expect(finished.map(({ host, state }) => [host, state])).toEqual([
      ["h1", "unreachable"],
      ["h2", "ok"],
    ]);
  });

  test("keeps a bounded part of a flood of output and says how much there was", async () => {
    const block = new Uint8Array(1024 * 1024).fill(0x78);
    hosts.behaviour = ({ onOutput }) => {
      for (let count = 0; count < 20; count++) onOutput?.({ stderr: false, data: block });
      return {};
    };
    const { runId, finished } = await remote({ cmd: "flood", "HOST!": "h1" });
    const [run] = await finished;
    expect(run?.output).toMatch(/\n\[19922944 more bytes\]$/);
    expect(rows.of("h1")[0]).toMatchObject({ outputsize: 20 * 1024 * 1024 });
    const part = await new JobOutputs(stores).read("matrix", { runId, host: "h1" }, { offset: 0, maxBytes: 1 });
    expect(part.size).toBe(16 * 1024 * 1024);
  });

  test("is recorded after a store that was away for a moment", async () => {
    rows.failures = [new AppError("unavailable", "away"), new AppError("unknown_outcome", "perhaps")];
    const { finished } = await remote({ cmd: "x", "HOST!": "h1" });
    while (rows.failures.length > 0) {
      await settled();
      clock.advance(10_000);
    }
    await settled();
    clock.advance(10_000);
    await finished;
    expect(rows.of("h1")).toMatchObject([{ status: "ok" }]);
  });

  test.each<[object | string, string]>([
    ["{", "no JSON"],
    ["[1]", "no JSON object"],
    [{ cmd: "x" }, "no host"],
    [{ "HOST!": "h1" }, "cmd"],
    [{ cmd: "x", "HOST!": 5 }, "HOST!"],
    [{ cmd: "x", "HOST!": "" }, "no host"],
    [{ cmd: "x", "HOST!": "h1", timeout: "soon" }, "timeout"],
    [{ cmd: "x", "HOST!": "h1", a: "b\u0000" }, "NUL"],
    [{ cmd: "x", "HOST!": "h1", a: "b\ud800" }, '"a" in param has a lone surrogate'],
    [{ cmd: "x", "HOST!": "h1", big: "x".repeat(70_000) }, "65536"],
  ])("param %j is refused with a clear error", async (param, reason) => {
    const request = { param: typeof param === "string" ? param : JSON.stringify(param) };
    await expect(runs.execute(admin, "remote_command@system/common", request)).rejects.toThrow(reason);
    expect(rows.rows.size).toBe(0);
  });

  test("beyond the number of runs under way is refused, and room is given back", async () => {
    hosts.behaviour = never;
    const list = (from: number, count: number) => Array.from({ length: count }, (_, at) => `h${from + at}`);
    const first = await remote({ cmd: "x", "HOST!": list(0, 256) });
    await expect(remote({ cmd: "x", "HOST!": "more" })).rejects.toMatchObject({ code: "limited" });
    for (let turn = 0; turn < 10; turn++) {
      await settled();
      clock.advance(61_000);
    }
    expect((await first.finished).every((run) => run.state === "timeout")).toBe(true);
    hosts.behaviour = () => ({});
    expect(await (await remote({ cmd: "x", "HOST!": "more" })).finished).toMatchObject([{ state: "ok" }]);
  });
});

test("several executions take room for all of them or for none, and give it back", async () => {
  const list = (count: number) =>
    JSON.stringify({ cmd: "x", "HOST!": Array.from({ length: count }, (_, at) => `h${at}`) });
  const name = "remote_command@system/common";
  const [half, more] = [
    { name, param: list(128) },
    { name, param: list(129) },
  ];
  await expect(runs.executeAll(admin, [half, more])).rejects.toMatchObject({ code: "limited" });
  expect(rows.rows.size).toBe(0);
  for (let round = 0; round < 2; round++) {
    const begun = await runs.executeAll(admin, [half, half]);
    const executions = begun.flatMap((one) => ("execution" in one ? [one.execution.finished] : []));
    expect((await Promise.all(executions)).flat().filter(({ state }) => state === "ok")).toHaveLength(256);
  }
});

test("of several executions the one that cannot be begun fails alone, and gives its room back", async () => {
  const { insert } = rows;
  rows.insert = (principal, path, added, options) =>
    added.some((row) => row["host"] === "h2")
      ? Promise.reject(new AppError("unavailable", "away"))
      : insert.call(rows, principal, path, added, options);
  const param = (host: string) => ({
    name: "remote_command@system/common",
    param: JSON.stringify({ cmd: "x", "HOST!": host }),
  });
  const many = Array.from({ length: 128 }, (_, at) => `h${at + 2}`).join();
  for (let round = 0; round < 3; round++) {
    const [good, bad] = await runs.executeAll(admin, [param("h1"), param(many)]);
    expect(bad).toMatchObject({ error: { code: "unavailable" } });
    expect(await (good && "execution" in good ? good.execution.finished : [])).toMatchObject([{ state: "ok" }]);
  }
});

describe("the controller's own end", () => {
  test("begins nothing new, lets go of what is under way and leaves it open on record", async () => {
    hosts.behaviour = never;
    const { finished } = await remote({ cmd: "x", "HOST!": "h1" });
    const told = expect(finished).rejects.toMatchObject({ code: "deadline" });
    await settled();
    await runs.close();
    await told;
    expect(rows.of("h1")).toMatchObject([{ status: "running" }]);
    await expect(remote({ cmd: "x", "HOST!": "h1" })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("when it came without warning and another one does not see it gone, ends its runs once they are well past their deadline", async () => {
    hosts.behaviour = never;
    await remote({ cmd: "x", "HOST!": "h1" });
    await settled();
    await newRuns("b").maintain("matrix");
    expect(rows.of("h1")).toMatchObject([{ status: "running" }]);
    await newRuns("b", { clock: new TestClock(clock.nowMs() + 200_000) }).maintain("matrix");
    expect(rows.of("h1")).toMatchObject([{ status: "expired" }]);
    expect(openKeys()).toEqual([]);
  });

  test("old outputs are removed once their rows have expired, younger ones stay", async () => {
    hosts.behaviour = ({ onOutput }) => (onOutput?.(text("x")), {});
    await (await remote({ cmd: "x", "HOST!": "h1" })).finished;
    clock.advance(20 * 86_400_000);
    await runs.maintain("matrix");
    expect(stores.streams("matrix")).toBe(1);
    clock.advance(20 * 86_400_000);
    await runs.maintain("matrix");
    expect(stores.streams("matrix")).toBe(0);
  });
});

test("a viewer reads jobs but neither defines, deletes nor runs them", async () => {
  await define();
  expect(await jobs.list(viewer)).toHaveLength(3);
  const denied = { code: "denied" };
  await expect(jobs.save(viewer, { name: "x", exec: ["y"] })).rejects.toMatchObject(denied);
  await expect(jobs.remove(viewer, "backup@common/x")).rejects.toMatchObject(denied);
  await expect(runs.execute(viewer, "backup@common/x", {})).rejects.toMatchObject(denied);
  expect(hosts.sent).toEqual([]);
});

test("tenants neither see nor run each other's jobs", async () => {
  await define();
  expect((await jobs.list(other)).map((job) => job.name)).toEqual(["remote_command", "remote_wincall"]);
  await expect(jobs.get(other, "backup@common/x")).rejects.toMatchObject({ code: "not_found" });
  await expect(runs.execute(other, "backup@common/x", {})).rejects.toMatchObject({ code: "not_found" });
  await (await runs.execute(other, "remote_command@system/common", { param: '{"cmd":"x","HOST!":"h1"}' })).finished;
  expect(hosts.sent).toMatchObject([{ tenant: "other" }]);
  expect(rows.of("h1")).toMatchObject([{ class: "/other/jobs/jobrun" }]);
});
