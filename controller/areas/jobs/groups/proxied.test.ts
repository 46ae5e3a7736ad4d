import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openJobRuns, heldWork, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { jobGroupClass } from "../classes.ts";
import { JobGroups } from "./groups.ts";
import { ProxiedHosts } from "./proxied.ts";
import type { JobRuns } from "../runs/runs.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const KEY = `SHA256:${"K".repeat(43)}`;
const OTHER_KEY = `SHA256:${"O".repeat(43)}`;
const REMOTE = "remote_command@system/common";

let scene: Awaited<ReturnType<typeof openJobRuns>>;
let groups: JobGroups;
let runs: JobRuns;
const sent: SentCommand[] = [];

beforeAll(async () => {
  scene = await openJobRuns();
  groups = new JobGroups({
    stores: scene.engine,
    objects: scene.objects,
    secrets: TEST_SECRETS,
    runtime: testRuntime(realClock),
  });
  scene.objects.registerSystemClass(jobGroupClass(groups));
  runs = scene.controller("one", { dispatch: (each) => (sent.push(each), { code: 0 }) });
  await group("dbs", ["db1", "db2"]);
  await groups.save(admin, { name: "plain", gtype: "group", hosts: [{ host: "h2" }, { host: "db2" }] });
  await scene.jobs.save(admin, { name: "wide", exec: ["work"], host: ["h1"], group: "dbs, plain" });
});
afterAll(() => scene[Symbol.asyncDispose]());
beforeEach(() => {
  sent.length = 0;
});

const group = (name: string, hosts: readonly string[], more: object = {}) => {
  const way = { proxy: "gate", port: "2222", username: "ops", password: "hunter2", ...more };
  return groups.save(admin, { name, gtype: "proxy", hosts: hosts.map((host) => ({ host, ...way })) });
};
const execute = async (name: string, param: object = {}, as = admin) =>
  (await runs.execute(as, name, { param: JSON.stringify(param) })).finished;
const ways = () =>
  Object.fromEntries(sent.map(({ host, behind }) => [host, behind && `${behind.proxy} ${behind.username}`]));

test("a job reaches hosts of its groups of type proxy by what the group says, and its other hosts as ever", async () => {
  expect((await execute("wide")).map(({ host, state }) => [host, state])).toEqual([
    ["h1", "ok"],
    ["db1", "ok"],
    ["db2", "ok"],
    ["h2", "ok"],
  ]);
  expect(ways()).toEqual({ h1: undefined, db1: "gate ops", db2: "gate ops", h2: undefined });
  const behind = sent.find(({ host }) => host === "db1")?.behind;
  expect(behind).toMatchObject({ host: "db1", proxy: "gate", port: 2222, secret: "hunter2", sshkey: "" });
});

test("HOST! takes hosts out of the groups of the job, GROUP! takes the place of its hosts and groups", async () => {
  await execute("wide", { "HOST!": "db2,h7" });
  expect(ways()).toEqual({ db2: "gate ops", h7: undefined });
  sent.length = 0;
  await execute(REMOTE, { cmd: "uptime", "GROUP!": "dbs" });
  expect(ways()).toEqual({ db1: "gate ops", db2: "gate ops" });
  sent.length = 0;
  await execute("wide", { "GROUP!": ["plain", "dbs"], "HOST!": ["db1", "db2"] });
  expect(ways()).toEqual({ db1: "gate ops", db2: undefined });
  sent.length = 0;
  const refused = [
    [{ "GROUP!": "dbs", "HOST!": "h1" }, "invalid", "h1"],
    [{ "GROUP!": "nowhere" }, "not_found", "nowhere"],
    [{ "GROUP!": "nowhere", "HOST!": "db1" }, "not_found", "nowhere"],
    [{ "GROUP!": " , " }, "invalid", "GROUP!"],
    [{ "GROUP!": 7 }, "invalid", "GROUP!"],
  ] as const;
  for (const [param, code, text] of refused)
    await expect(execute("wide", param)).rejects.toMatchObject({ code, message: expect.stringContaining(text) });
  expect(sent).toEqual([]);
});

test("the credentials of a group are used by those who see it, and by no neighbour", async () => {
  const narrow = (where: string) => ({
    ...testPrincipal(),
    grants: ["jobs:run"],
    data: [
      { class: "/", access: "read" as const },
      { class: "/matrix/jobs/jobgroup", access: "read" as const, where },
    ],
  });
  await execute(REMOTE, { cmd: "id", "GROUP!": "dbs" }, narrow("name = 'dbs'"));
  expect(ways()).toEqual({ db1: "gate ops", db2: "gate ops" });
  sent.length = 0;
  const hidden = narrow("name = 'other'");
  for (const [name, param] of [
    [REMOTE, { cmd: "id", "GROUP!": "dbs" }],
    ["wide", {}],
  ] as const)
    await expect(execute(name, param, hidden)).rejects.toMatchObject({ code: "not_found" });
  await execute("wide", { "HOST!": "db1" }, hidden);
  expect(ways()).toEqual({ db1: undefined });
  await expect(execute(REMOTE, { cmd: "id", "GROUP!": "dbs" }, neighbour)).rejects.toMatchObject({ code: "not_found" });
});

test("a host that its group cannot reach any more ends as unreachable, with the reason", async () => {
  const { warnings } = await group("thin", ["a"], { password: "" });
  expect(warnings).toEqual(["Jobs do not reach a: it has no password."]);
  expect(await execute(REMOTE, { cmd: "id", "GROUP!": "thin" })).toMatchObject([
    { host: "a", state: "unreachable", message: "The group thin has no password for a." },
  ]);
  await group("gone", ["a", "b"]);
  await scene.jobs.save(admin, { name: "slow", exec: ["work"], group: "gone", groupmode: "sequence" });
  const held = heldWork({ code: 0 });
  const first = scene.controller("two", { dispatch: held.wait });
  const execution = await first.execute(admin, "slow", {});
  await held.asleep;
  await group("gone", ["a"]);
  held.release();
  expect(await execution.finished).toMatchObject([
    { host: "a", state: "ok" },
    { host: "b", state: "unreachable", message: "The group gone of type proxy has no host b any more." },
  ]);
});

test("the first key that a host shows is on its group, another one is refused, and so is one of a group that moved", async () => {
  await group("keyed", ["k"]);
  await execute(REMOTE, { cmd: "id", "GROUP!": "keyed" });
  const note = sent[0]?.behind?.noteKey ?? (() => Promise.reject(new Error("nothing was sent")));
  await note(KEY);
  await note(KEY);
  await expect(note(OTHER_KEY)).rejects.toMatchObject({ code: "denied" });
  await execute(REMOTE, { cmd: "id", "GROUP!": "keyed" });
  expect(sent[1]?.behind?.sshkey).toBe(KEY);
  await group("keyed", ["k"], { proxy: "elsewhere" });
  await expect(note(KEY)).rejects.toMatchObject({ code: "conflict" });
});

test("an agent is led where its group says now, and nowhere else", async () => {
  const hosts = { dispatchBehind: () => Promise.reject(new Error("nothing is run")) };
  const runtime = testRuntime(realClock);
  const proxied = new ProxiedHosts({
    stores: scene.engine,
    runtime,
    objects: scene.objects,
    secrets: TEST_SECRETS,
    hosts,
  });
  await group("led", ["l"]);
  const place = { tenant: "matrix", host: "gate", group: "led", address: "l", port: 2222 };
  expect(await proxied.leads(place)).toBe(true);
  for (const other of [{ tenant: "second" }, { host: "h1" }, { group: "dbs" }, { address: "127.0.0.1" }, { port: 22 }])
    expect(await proxied.leads({ ...place, ...other })).toBe(false);
  await group("led", ["l"], { port: "" });
  expect([await proxied.leads(place), await proxied.leads({ ...place, port: 22 })]).toEqual([false, true]);
});

test("whoever takes a run over reaches its hosts by the same group", async () => {
  const held = heldWork({ code: 0 });
  const execution = await scene
    .controller("dies", { dispatch: held.wait })
    .execute(admin, REMOTE, { param: JSON.stringify({ cmd: "id", "GROUP!": "dbs", "HOST!": "db1" }) });
  await held.asleep;
  const heir = scene.controller("heir", { dispatch: (each) => (sent.push(each), { code: 0 }) });
  await heir.maintain("matrix");
  // The second controller carries on the host that the closed one had begun; this run follows its decision.
  held.release();
  expect(await execution.finished).toMatchObject([{ host: "db1", state: "ok" }]);
  await heir.close();
  expect(ways()).toEqual({ db1: "gate ops" });
});
