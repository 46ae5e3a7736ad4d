import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { bundle } from "../../../../test/helpers/programs/bundle.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { PASSWORD } from "../../../../test/helpers/http/http-app.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { openWorld, type World } from "../../../../test/security/world.ts";
import type { Principal } from "../../permissions/index.ts";
import { OutputFollowing } from "../output/following.ts";
import { JobRuns } from "./runs.ts";
import type { ServerScripts } from "./scripts.ts";
import { NAMED_HOSTS } from "../../../../test/helpers/hosts/named-hosts.ts";

const admin = testPrincipal();
type Ran = Parameters<ServerScripts["runOfJob"]>[1] & { readonly principal: Principal; readonly by: string };

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let controllers = 0;
let present: Set<string>;
/** The scripts and commands that ran, in order, and where they ran. */
let told: string[];
let ran: Ran[];
let onScript: (script: Ran) => Promise<string | undefined>;
let onCommand: (host: string, by: string) => Promise<object>;

const controller = (own: string): JobRuns =>
  new JobRuns({
    targets: NAMED_HOSTS,
    secrets: TEST_SECRETS,
    stores: monitoring.engine,
    runtime: { ...testRuntime(realClock), random: seededRandom(++controllers + 700) },
    jobs: monitoring.jobs,
    hosts: {
      dispatch: async (_principal, host) => {
        told.push(`${own} ${host}`);
        const end = await onCommand(host, own);
        return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2, ...end };
      },
    },
    stored: { outcome: () => Promise.resolve(undefined) },
    objects: monitoring.objects,
    notifications: { publish: () => {} },
    controllers: { own, has: (id) => present.has(id) },
    scripts: {
      runOfJob: (principal, script) => {
        const one = { ...script, principal, by: own };
        told.push(`${own} ${String(inputOf(one)["stage"])}`);
        ran.push(one);
        return onScript(one);
      },
    },
    authors: { present: async (_tenant, user) => (user === admin.user ? admin : undefined) },
  });
const inputOf = ({ input }: Ran) => input as Readonly<Record<string, unknown>>;
const define = (more: object) =>
  monitoring.jobs.save(admin, { name: "scripted", exec: ["run"], host: ["h1", "h2"], ...more });
const rows = (runId: string, columns = "host,status,type,out,err,message") =>
  monitoring.mql(`select ${columns} from /matrix/jobs/jobrun where runid='${runId}' order by host`);
const kv = async () => (await monitoring.engine.tenant("matrix")).kv;
const over = (runId: string) =>
  expect.poll(async () => await (await kv()).get(`jobs/execution/${runId}`), { timeout: 60_000 }).toBeUndefined();
const gate = () => {
  let open = (): void => {};
  let reached = (): void => {};
  const passed = new Promise<void>((resolve) => (open = resolve));
  const atIt = new Promise<void>((resolve) => (reached = resolve));
  return { open, atIt, pass: async () => (reached(), passed) };
};

beforeAll(async () => {
  monitoring = await openMonitoring();
});
afterAll(() => monitoring[Symbol.asyncDispose]());
beforeEach(() => {
  present = new Set(["a", "b"]);
  [told, ran] = [[], []];
  onScript = async () => undefined;
  onCommand = async () => ({});
});

test("a job that runs as a script takes no standard input", async () => {
  await define({ exec: [" serverjs /ns/x.js "], host: [] });
  await expect(controller("a").execute(admin, "scripted", { param: '{"STDIN!":"x"}' })).rejects.toMatchObject({
    code: "invalid",
    message: "The job scripted runs as a script, which has no STDIN!.",
  });
});

test("begin runs before all hosts and end after them, which learns how each ended; both leave rows and output", async () => {
  await define({ begin: "B", end: "E", timeout: 30 });
  onScript = async ({ onSaid, text }) => {
    onSaid(2, `says ${text}`);
    onSaid(4, "and a fault");
    return `answers ${text}`;
  };
  onCommand = async (host) => (host === "h2" ? { state: "failed", code: 7, message: "bad" } : {});
  const runs = controller("a");
  const { runId, finished } = await runs.execute(admin, "scripted", { param: '{"x":"1"}' });
  expect((await finished).map(({ host, state }) => [host, state])).toEqual([
    ["h1", "ok"],
    ["h2", "failed"],
  ]);
  expect([told[0], new Set(told.slice(1, 3)), told[3]]).toEqual(["a begin", new Set(["a h1", "a h2"]), "a end"]);
  const [begin, end] = ran.map(inputOf);
  expect(begin).toMatchObject({ runid: runId, name: "scripted", hosts: ["h1", "h2"], user: admin.user });
  expect(begin?.["env"]).toMatchObject({ ODP_PARAM_X: "1", ODP_RUN_ID: runId });
  expect(end).toMatchObject({
    status: "failed",
    runs: [
      { host: "h1", state: "ok", code: 0 },
      { host: "h2", state: "failed", code: 7, message: "bad" },
    ],
  });
  const said = (text: string) => ({ status: "ok", out: `says ${text}\nanswers ${text}\n`, err: "and a fault\n" });
  expect(await rows(runId)).toMatchObject([
    { host: "-begin", type: "begin", ...said("B") },
    { host: "-end", type: "end", ...said("E") },
    { host: "h1", status: "ok", type: "job" },
    { host: "h2", status: "failed" },
  ]);
  const parts = [];
  const reader = { from: 0, signal: new AbortController().signal, present: async () => admin };
  const following = new OutputFollowing({
    stores: monitoring.engine,
    objects: monitoring.objects,
    clock: realClock,
    appends: runs.appends,
  });
  for await (const part of await following.follow(admin, { runId, host: "-begin" }, reader)) parts.push(part);
  expect(Buffer.from(parts[0]?.data ?? "", "base64").toString()).toBe("says B\nand a fault\nanswers B\n");
  expect(parts.at(-1)).toMatchObject({ end: { state: "ok" } });
});

test("where begin fails no host is given the run, which ends as failed, and end runs all the same", async () => {
  await define({ begin: "B", end: "E" });
  onScript = async ({ text }) => {
    if (text === "B") throw new AppError("invalid", "not today");
    return undefined;
  };
  const { runId, finished } = await controller("a").execute(admin, "scripted", {});
  expect(await finished).toMatchObject([{ host: "-begin", state: "failed", message: "not today" }]);
  expect(told).toEqual(["a begin", "a end"]);
  expect(inputOf(ran[1]!)).toMatchObject({ status: "failed", runs: [{ host: "-begin", state: "failed" }] });
  expect(await rows(runId)).toMatchObject([
    { host: "-begin", status: "failed", message: "not today", err: "not today\n" },
    { host: "-end", status: "ok" },
  ]);
  expect(await (await kv()).get(`jobs/execution/${runId}`)).toBeUndefined();
});

test("a job of serverjs is one script on the controller, with the parameters of its caller, and needs no host", async () => {
  await define({ exec: [" serverjs /ns/x.js "], host: [], end: "E" });
  onScript = async ({ text }) => (text === "E" ? undefined : "done");
  const { runId, finished } = await controller("a").execute(admin, "scripted", { param: '{"a":"b"}' });
  expect(await finished).toMatchObject([{ host: "-serverjs", state: "ok", output: "done\n" }]);
  expect(ran[0]).toMatchObject({ text: "/ns/x.js", isFile: true, input: { env: { ODP_PARAM_A: "b" } } });
  expect(told).toEqual(["a serverjs", "a end"]);
  expect(await rows(runId)).toMatchObject([{ host: "-end" }, { host: "-serverjs", status: "ok", out: "done\n" }]);
  await define({ exec: ["serverjs OUTPUT = 1"], host: [] });
  onScript = ({ signal }) =>
    new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(new AppError("cancelled", "x was cancelled."))),
    );
  const cancel = new AbortController();
  const cancelled = await controller("a").execute(admin, "scripted", { signal: cancel.signal });
  await expect.poll(() => ran.length, { timeout: 30_000 }).toBe(3);
  cancel.abort();
  expect(ran[2]).toMatchObject({ text: "OUTPUT = 1", isFile: false });
  expect(await cancelled.finished).toMatchObject([{ host: "-serverjs", state: "cancelled" }]);
});

test("scripts run with what caller and author have in common, and not for an author who is gone", async () => {
  await define({ begin: "B" });
  const few = { ...admin, user: "few", grants: ["jobs:run", "jobs:read"], paths: ["/script/ns"] };
  await (await controller("a").execute(few, "scripted", {})).finished;
  expect(ran[0]?.principal).toMatchObject({ user: "few", grants: ["jobs:run", "jobs:read"], paths: ["/script/ns"] });
  const other = { ...admin, user: "other" };
  await monitoring.jobs.save(other, { name: "orphan", exec: ["run"], host: ["h1"], begin: "B" });
  const { finished } = await controller("a").execute(admin, "orphan", {});
  expect(await finished).toMatchObject([
    { host: "-begin", state: "failed", message: expect.stringContaining("other") },
  ]);
});

describe("a controller that is gone", () => {
  /** Begins a run at `a`, which stops at `asleep`; `b` ends the run; then `a` continues. */
  const takenOver = async (asleep: ReturnType<typeof gate>) => {
    const { runId, finished } = await controller("a").execute(admin, "scripted", {});
    await asleep.atIt;
    present.delete("a");
    await controller("b").maintain("matrix");
    await over(runId);
    asleep.open();
    return { runId, ended: await finished };
  };

  test("during begin: another runs it again, hosts are run once, and the one that wakes tells what that one did", async () => {
    await define({ begin: "B", end: "E" });
    const asleep = gate();
    onScript = async ({ by, text }) => {
      if (by === "a" && text === "B") await asleep.pass();
      return `${by} ${text}`;
    };
    const { runId, ended } = await takenOver(asleep);
    expect(ended.map(({ host, state }) => [host, state])).toEqual([
      ["h1", "ok"],
      ["h2", "ok"],
    ]);
    expect(told.filter((each) => !each.includes("h"))).toEqual(["a begin", "b begin", "b end"]);
    expect(told.filter((each) => each.includes("h")).sort()).toEqual(["b h1", "b h2"]);
    expect(await rows(runId, "host,out")).toMatchObject([{ out: "b B\n" }, { out: "b E\n" }, {}, {}]);
  });

  test("while hosts run: begin is not run again, each host ends once, and end learns of all of them", async () => {
    await define({ begin: "B", end: "E", groupmode: "sequence" });
    const asleep = gate();
    onCommand = async (host, by) => (by === "a" && host === "h2" ? asleep.pass().then(() => ({})) : {});
    await takenOver(asleep);
    expect(told).toEqual(["a begin", "a h1", "a h2", "b h2", "b end"]);
    expect(inputOf(ran.at(-1)!)).toMatchObject({ runs: [{ host: "h1", state: "ok" }, { host: "h2" }], status: "ok" });
  });

  test("during end: another runs it again, and nothing else", async () => {
    await define({ begin: "B", end: "E" });
    const asleep = gate();
    onScript = async ({ by, text }) => {
      if (by === "a" && text === "E") await asleep.pass();
      return `${by} ${text}`;
    };
    const { runId } = await takenOver(asleep);
    expect(told.filter((each) => each.startsWith("b"))).toEqual(["b end"]);
    expect(await rows(runId, "host,out")).toMatchObject([{ out: "a B\n" }, { out: "b E\n" }, {}, {}]);
  });
});

describe("on the engine of scripts", () => {
  let world: World;
  beforeAll(async () => {
    const file = await bundle(
      join(import.meta.dirname, "../../../script-worker.ts"),
      `scripts/jobs-${process.pid}.mjs`,
    );
    world = await openWorld({ scripts: pathToFileURL(file) });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  test("a script finds the run as INPUT, its error ends it, and one of few rights reaches nothing by it", async () => {
    const { jobs, runs, users } = world.assembly;
    const rights = { grants: ["jobs:run", "jobs:read"], data: [{ class: "/matrix/jobs", access: "read" }] } as const;
    await users.create(testPrincipal("administrator"), { username: "few", password: PASSWORD, rights });
    const owner = await users.present("matrix", "admin");
    const few = await users.present("matrix", "few");
    const saved = { name: "js", exec: ["serverjs OUTPUT = INPUT.stage + INPUT.env.ODP_PARAM_A"] };
    await jobs.save(owner!, saved);
    const run = async (as: Principal) => (await runs.execute(as, "js", { param: '{"a":"!"}' })).finished;
    expect(await run(owner!)).toMatchObject([{ state: "ok", output: "serverjs!\n" }]);
    await jobs.save(owner!, { ...saved, exec: ['serverjs throw new Error("no " + INPUT.user)'] });
    expect(await run(owner!)).toMatchObject([{ state: "failed", message: expect.stringContaining("no admin") }]);
    await jobs.save(owner!, { ...saved, exec: ['serverjs OUTPUT = odb.mql("select * from /matrix/jobs/jobdef")'] });
    expect(await run(owner!)).toMatchObject([{ state: "ok" }]);
    expect(await run(few!)).toMatchObject([{ state: "failed" }]);
  });
});
