import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { JOB_ANSWER_MAX_BYTES, JOB_BATCH_ANSWER_MAX_BYTES, JOB_BATCH_MAX } from "../../../../common/limits.ts";
import { MONITORING_RUNS_MAX, openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { CountedPauses } from "../../../../test/security/pauses.ts";
import { runBatch } from "./batch.ts";
import type { Begun } from "../types.ts";

const admin = testPrincipal();
/** Steps at the end of a host, each with a pause: decide, record, close, notify. */
const STEPS_OF_END = 4;
/** Number of commands of a run that are all under way before one of them ends. */
const HELD_AT_ONCE = 20;

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let session: string;
beforeAll(async () => {
  monitoring = await openMonitoring();
  session = await monitoring.http.signIn("admin");
  for (const name of ["one", "two", "lost"])
    await monitoring.jobs.save(admin, { name, dir: "common/x", exec: [`run-${name}`], host: ["h1"] });
  await monitoring.jobs.edit(admin, { name: "two", dir: "common/x", host: ["h1", "h2"], timeout: 500 });
  await monitoring.jobs.edit(admin, { name: "lost", dir: "common/x", host: ["nowhere"] });
});
afterAll(() => monitoring[Symbol.asyncDispose]());
beforeEach(() => {
  monitoring.hosts.sent.length = 0;
  monitoring.hosts.behaviour = (host, command, { onOutput }) => {
    if (command.kind !== "exec") throw new Error("not for jobs");
    onOutput?.({ stderr: false, data: new TextEncoder().encode(`${command.line} on ${host}`) });
    return command.line === "fail" ? { state: "failed", code: 3, message: "exit code 3" } : {};
  };
});

const batch = (body: object, as = session) =>
  monitoring.http.call(as, { method: "POST", url: "/job/batch", payload: body });
const remote = (cmd: string, more: object = {}) => ({
  name: "remote_command@system/common",
  param: JSON.stringify({ cmd, "HOST!": "h3", ...more }),
});
const rows = (runid: unknown) =>
  monitoring.mql(`select host, status from /matrix/jobs/jobrun where runid='${String(runid)}' order by host`);

test("jobs side by side answer in their order what became of each, with the output of all", async () => {
  const jobs = [
    { name: "one@common/x", param: "", timeout: 60 },
    { name: "two@common/x", param: '{"x":1}', timeout: 0 },
    { name: "lost@common/x", timeout: 60 },
    { ...remote("fail"), timeout: 60 },
    { name: "one@common/x", param: { "HOST!": "h4" }, timeout: 60 },
  ];
  const { status, message, failed, warnings } = await batch({ jobs, timeout: 60 });
  const run = (host: string, state = "ok", more: object = { code: 0 }) => ({ host, state, message: "", ...more });
  const runid = expect.stringMatching(/^[0-9A-Z]{26}$/) as string;
  const ok = { status: "ok", runid };
  expect(status).toBe("ok");
  expect(message).toEqual([
    { ...ok, name: "one@common/x", message: "run-one on h1", runs: [run("h1")] },
    {
      ...ok,
      name: "two@common/x",
      message: "# h1: ok\nrun-two on h1\n# h2: ok\nrun-two on h2",
      runs: [run("h1"), run("h2")],
    },
    {
      name: "lost@common/x",
      runid,
      status: "error",
      code: "unavailable",
      message: "nowhere: unreachable: There is no host nowhere.",
      runs: [run("nowhere", "unreachable", { message: "There is no host nowhere." })],
    },
    {
      ...ok,
      name: "remote_command@system/common",
      message: "fail on h3",
      runs: [run("h3", "failed", { code: 3, message: "exit code 3" })],
    },
    { ...ok, name: "one@common/x", message: "run-one on h4", runs: [run("h4")] },
  ]);
  expect(failed).toEqual({ count: 2, of: 6 });
  expect(warnings).toEqual([
    "2 of 6 executions failed.",
    "lost@common/x on nowhere: unreachable, There is no host nowhere.",
    "remote_command@system/common on h3: failed, exit code 3",
  ]);
  const ids = (message as { runid: string }[]).map((end) => end.runid);
  expect(new Set(ids).size).toBe(5);
  expect(await rows(ids[1])).toEqual([
    { host: "h1", status: "ok" },
    { host: "h2", status: "ok" },
  ]);
});

test.each<readonly [string, readonly object[], number, object | undefined]>([
  ["all", [remote("fail"), { name: "lost@common/x" }], 502, { count: 2, of: 2 }],
  ["some", [remote("fail"), { name: "two@common/x" }], 207, { count: 1, of: 3 }],
  ["none", [{ name: "one@common/x" }], 200, undefined],
])(
  "a client that asks for precise statuses is told when %s of the executions failed",
  async (_, jobs, status, failed) => {
    const sent = { method: "POST" as const, url: `/job/batch?sessionid=${session}`, payload: { jobs, timeout: 60 } };
    const precise = await monitoring.http.app.inject({ ...sent, headers: { accept: "application/problem+json" } });
    expect(precise.statusCode).toBe(status);
    expect(precise.json()).toMatchObject({ status: "ok" });
    expect(precise.json().failed).toEqual(failed);
    expect((await monitoring.http.app.inject(sent)).statusCode).toBe(200);
  },
);

test("others have the thread between the hosts of a run as they are opened, begun and ended, and none of them costs more than the one before", async () => {
  const host = Array.from({ length: 40 }, (_, at) => `h${at + 1}`);
  await monitoring.jobs.save(admin, { name: "many", dir: "common/x", exec: ["run-many"], host });
  using pauses = new CountedPauses();
  // A signal compares each new listener with all its listeners.
  const listening = vi.spyOn(AbortSignal.prototype, "addEventListener");
  const leaving = vi.spyOn(AbortSignal.prototype, "removeEventListener");
  const { dispatch } = monitoring.hosts;
  let [begun, most, release] = [0, 0, (): void => {}];
  const released = new Promise<void>((resolve) => (release = resolve));
  monitoring.hosts.dispatch = async (...args) => {
    if (++begun === HELD_AT_ONCE) {
      const held = new Map<unknown, number>();
      for (const signal of listening.mock.contexts) held.set(signal, (held.get(signal) ?? 0) + 1);
      for (const signal of leaving.mock.contexts) held.set(signal, (held.get(signal) ?? 0) - 1);
      most = Math.max(...held.values());
      release();
    }
    await released;
    return dispatch.apply(monitoring.hosts, args);
  };
  const { finished } = await monitoring.runs.execute(admin, "many@common/x", {});
  expect((await finished).filter(({ state }) => state === "ok")).toHaveLength(40);
  monitoring.hosts.dispatch = dispatch;
  vi.restoreAllMocks();
  // The first host is opened together with the run.
  expect(pauses.count).toBeGreaterThanOrEqual(39 + 40 + STEPS_OF_END * 40);
  expect(most).toBeLessThan(HELD_AT_ONCE / 2);
});

test("others have the thread between the hosts of a run that had its turn in a queue", async () => {
  const host = Array.from({ length: 40 }, (_, at) => `h${at + 1}`);
  await monitoring.jobs.save(admin, { name: "queued", dir: "common/x", exec: ["run-queued"], host, queue: "one" });
  using pauses = new CountedPauses();
  const { finished } = await monitoring.runs.execute(admin, "queued@common/x", {});
  expect(await finished).toHaveLength(40);
  expect(pauses.count).toBeGreaterThanOrEqual(40 + 40 + STEPS_OF_END * 40);
});

test("a job takes its own time, and at most that of the batch", async () => {
  const jobs = [
    { name: "one@common/x", timeout: 70 },
    { name: "two@common/x", param: '{"HOST!":"h1"}', timeout: 0 },
    { ...remote("given", { timeout: 200 }), timeout: 0 },
  ];
  const times = async (timeout: number) => {
    const { message } = await batch({ jobs, timeout });
    const ids = (message as { runid: string }[]).map(({ runid }) => runid);
    const found = await Promise.all(
      ids.map((id) => monitoring.mql(`select stime, deadline from /matrix/jobs/jobrun where runid='${id}'`)),
    );
    return found.map(([row]) => (Number(row?.["deadline"]) - Number(row?.["stime"])) / 1_000);
  };
  expect(await times(0)).toEqual([70, 500, 200]);
  expect(await times(100)).toEqual([70, 100, 100]);
  expect(await times(60)).toEqual([60, 60, 60]);
});

test("without a timeout, or with one below 0, the ids of the runs are answered at once", async () => {
  for (const timeout of [undefined, -1]) {
    let letGo = (): void => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    const { dispatch } = monitoring.hosts;
    monitoring.hosts.dispatch = async (...args) => {
      await held;
      return dispatch.apply(monitoring.hosts, args);
    };
    const { message } = await batch({ jobs: [{ name: "one@common/x", timeout: 60 }], timeout });
    const [end] = message as { runid: string }[];
    expect(message).toEqual([{ name: "one@common/x", runid: end?.runid, status: "ok", message: end?.runid }]);
    expect(await rows(end?.runid)).toEqual([{ host: "h1", status: "running" }]);
    letGo();
    monitoring.hosts.dispatch = dispatch;
  }
});

test("when one of them is wrong none is executed, and the error says which", async () => {
  const good = { name: "one@common/x", timeout: 60 };
  const before = await monitoring.mql("select count(*) as n from /matrix/jobs/jobrun");
  for (const [bad, code, reason] of [
    [{ name: "none@x", timeout: 60 }, "not_found", "jobs[1], none@x"],
    [{ ...remote("x"), param: "{" }, "invalid", "jobs[1], remote_command@system/common: param is no JSON"],
    [remote(" "), "invalid", "cmd"],
    [remote("x", { "HOST!": [] }), "invalid", "HOST!"],
    [{ timeout: 60 }, "invalid", "name"],
    [{ ...good, timeout: "soon" }, "invalid", "timeout"],
  ] as const) {
    expect(await batch({ jobs: [good, bad, good], timeout: 60 })).toMatchObject({
      status: "error",
      code,
      message: expect.stringContaining(reason) as string,
    });
  }
  const wide = remote("x", { "HOST!": Array.from({ length: MONITORING_RUNS_MAX }, (_, at) => `h${at}`) });
  expect(await batch({ jobs: [good, wide], timeout: 60 })).toMatchObject({
    status: "error",
    code: "limited",
  });
  const many = Array.from({ length: JOB_BATCH_MAX + 1 }, () => good);
  expect(await batch({ jobs: many, timeout: 60 })).toMatchObject({ status: "error", code: "invalid" });
  expect(await batch({ timeout: 60 })).toMatchObject({ status: "error", code: "invalid" });
  expect(monitoring.hosts.sent).toEqual([]);
  expect(await monitoring.mql("select count(*) as n from /matrix/jobs/jobrun")).toEqual(before);
  expect(await batch({ jobs: [], timeout: 60 })).toEqual({ status: "ok", message: [] });
});

test("a viewer executes nothing, a neighbour finds no jobs of others, a hidden job is not there", async () => {
  const jobs = [{ name: "one@common/x", timeout: 60 }];
  expect(await batch({ jobs }, await monitoring.http.signIn("viewer"))).toMatchObject({ code: "denied" });
  expect(await batch({ jobs }, await monitoring.http.signIn("admin", "second"))).toMatchObject({ code: "not_found" });
  const data = [{ class: "/matrix/jobs/jobdef", access: "read", where: "name = 'two'" }] as const;
  const few = { ...admin, user: "few", grants: ["jobs:run"], data };
  await expect(monitoring.runs.executeAll(few, [{ name: "one@common/x" }])).rejects.toMatchObject({
    code: "not_found",
  });
  expect(monitoring.hosts.sent).toEqual([]);
});

/** A batch of executions that a test provides. */
const over = (begun: readonly Begun[], signal = new AbortController().signal) =>
  runBatch({ executeAll: () => Promise.resolve(begun) }, admin, {
    input: { jobs: begun.map((_, at) => ({ name: `j${at}` })), timeout: 0 },
    signal,
  });
const ending = (output: string): Begun => ({
  execution: { runId: "R", finished: Promise.resolve([{ host: "h", state: "ok", message: "", output }]) },
});

test("what fails after the begin fails alone, and what is not for callers is not told", async () => {
  const broken = Promise.reject(new AppError("deadline", "the controller goes"));
  expect(
    await over([
      { error: new AppError("unavailable", "the store is away") },
      { error: new Error("at line 5") },
      { execution: { runId: "R", finished: broken } },
      ending("fine"),
    ]),
  ).toMatchObject([
    { name: "j0", status: "error", code: "unavailable", message: "the store is away" },
    { name: "j1", status: "error", code: "internal", message: "The job could not be executed." },
    { name: "j2", runid: "R", status: "error", code: "deadline", message: "the controller goes" },
    { name: "j3", runid: "R", status: "ok", message: "fine" },
  ]);
});

test("output beyond what an answer holds is counted, of the last jobs first", async () => {
  const text = "x".repeat(JOB_ANSWER_MAX_BYTES);
  const jobs = Array.from({ length: JOB_BATCH_ANSWER_MAX_BYTES / JOB_ANSWER_MAX_BYTES }, () => ending(text));
  const ends = await over([...jobs.slice(1), ending("short"), ending(text), ending("last")]);
  expect(ends.slice(0, jobs.length).map(({ message }) => message.length)).toEqual([
    ...jobs.slice(1).map(() => text.length),
    "short".length,
  ]);
  expect(ends.slice(jobs.length).map(({ message }) => message.slice(-17))).toEqual(
    [`xx\n[5 more bytes]`, `\n[4 more bytes]`].map((end) => end.slice(-17)),
  );
});

test("a call that ends before its jobs says that they go on", async () => {
  const gone = new AbortController();
  const answer = over([{ execution: { runId: "R", finished: new Promise(() => {}) } }], gone.signal);
  gone.abort();
  await expect(answer).rejects.toMatchObject({ code: "deadline", message: expect.stringContaining("go on") as string });
});
