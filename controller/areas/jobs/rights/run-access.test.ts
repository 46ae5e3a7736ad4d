import { afterAll, beforeAll, expect, test } from "vitest";
import { RUN_CONTEXT_TOKEN } from "../../../../common/masking.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { heldWork, openJobRuns, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { realClock, shiftedClock } from "../../../../test/helpers/time/clock.ts";
import { JobContexts } from "../context/contexts.ts";
import { contextRoutes, groupRoutes } from "../routes.ts";
import { JobGroups } from "../groups/groups.ts";
import { RunAccess } from "./run-access.ts";
import type { JobRuns } from "../runs/runs.ts";

const admin = testPrincipal();
const ADDRESS = "https://odp.example";
const DENIED = { status: "error", code: "denied" };

let scene: Awaited<ReturnType<typeof openJobRuns>>;
let http: TestHttp;
let contexts: JobContexts;

beforeAll(async () => {
  scene = await openJobRuns();
  const runtime = testRuntime(realClock);
  contexts = new JobContexts({ stores: scene.engine, runtime });
  const groups = new JobGroups({ stores: scene.engine, objects: scene.objects, secrets: TEST_SECRETS, runtime });
  const access = new RunAccess({ stores: scene.engine, runtime, secrets: TEST_SECRETS });
  http = await openTestHttp({
    endpoints: [...contextRoutes(contexts), ...groupRoutes(groups)],
    byRun: (token, traceparent) => access.byRun(token, traceparent),
  });
  await scene.jobs.save(admin, { name: "shared", exec: ["work"], host: ["h1", "h2"] });
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await scene[Symbol.asyncDispose]();
});

/** A run whose commands wait on their hosts, and the environment given to each of them. */
async function standing(own = "one", more: Parameters<typeof scene.controller>[1] = {}) {
  const held = heldWork({ code: 0 });
  const given = new Map<string, Readonly<Record<string, string>>>();
  let begun: () => void = () => undefined;
  const isWhole = new Promise<void>((resolve) => (begun = resolve));
  const dispatch = async (sent: SentCommand) => {
    given.set(sent.host, environmentOf(sent));
    if (given.size === 2) begun();
    return held.wait();
  };
  const runs: JobRuns = scene.controller(own, { address: ADDRESS, dispatch, ...more });
  const execution = await runs.execute(admin, "shared", { timeoutSeconds: 600 });
  await isWhole;
  const [row] = await scene.rowsOf(execution.runId);
  const end = async () => (held.release(), execution.finished);
  return { runs, runId: execution.runId, sid: String(row?.["sid"]), given, end };
}

function environmentOf({ command }: SentCommand): Readonly<Record<string, string>> {
  return command.kind === "exec" ? (command.environment ?? {}) : {};
}

type Method = "GET" | "POST" | "PUT" | "DELETE";

async function call(token: string, method: Method, path: string, form?: string) {
  const response = await http.app.inject({
    method,
    url: path,
    headers: {
      authorization: `Bearer ${token}`,
      ...(form !== undefined && { "content-type": "application/x-www-form-urlencoded" }),
    },
    ...(form !== undefined && { payload: form }),
  });
  return response.json<{ status: string; code?: string; message: unknown }>();
}

const tokenOf = (environment: Readonly<Record<string, string>> | undefined) => environment?.[RUN_CONTEXT_TOKEN] ?? "";
const pathOf = (environment: Readonly<Record<string, string>> | undefined) =>
  (environment?.["ODP_CONTEXT_URL"] ?? "").replace(ADDRESS, "");

test("commands of a run read and write its context by what they were given, until the run ends on their host", async () => {
  const run = await standing();
  const [h1, h2] = ["h1", "h2"].map((host) => run.given.get(host));
  expect([h1, h2].map((each) => each?.["ODP_CONTEXT_ID"])).toEqual([run.sid, run.sid]);
  expect(h1?.["ODP_CONTEXT_URL"]).toBe(`${ADDRESS}/job/context/${encodeURIComponent(run.sid)}`);
  expect(await call(tokenOf(h1), "PUT", pathOf(h1), "name=step&value=two")).toEqual({ status: "ok", message: "" });
  expect(await call(tokenOf(h2), "GET", pathOf(h2))).toEqual({ status: "ok", message: { step: "two" } });
  expect(await contexts.read(admin, run.sid)).toEqual({ step: "two" });
  expect(await call(tokenOf(h2), "DELETE", `${pathOf(h2)}?clear=true`)).toMatchObject({ status: "ok" });
  expect(await contexts.read(admin, run.sid)).toEqual({});
  await run.end();
  for (const each of [h1, h2]) expect((await call(tokenOf(each), "GET", pathOf(each))).status).toBe("signin");
});

test("a token opens nothing but the context of its run", async () => {
  const [one, other] = [await standing(), await standing("other")];
  const h1 = one.given.get("h1");
  await contexts.set(admin, other.sid, { name: "secret", value: "of another run" });
  for (const [method, path, form] of [
    ["GET", pathOf(other.given.get("h1")), undefined],
    ["PUT", pathOf(other.given.get("h1")), "name=secret&value=taken"],
    ["DELETE", `${pathOf(other.given.get("h1"))}?clear=true`, undefined],
  ] as const)
    expect(await call(tokenOf(h1), method, path, form)).toMatchObject(DENIED);
  expect(await contexts.read(admin, other.sid)).toEqual({ secret: "of another run" });
  for (const path of ["/group", "/user/tokens", "/user/sessions"])
    expect(await call(tokenOf(h1), "GET", path)).toMatchObject({ status: "signin" });
  expect(await http.users.byToken(tokenOf(h1), "")).toBeUndefined();
  await Promise.all([one.end(), other.end()]);
});

test("what is no token, was changed, is of another key or of a tenant that is not there opens nothing", async () => {
  const run = await standing();
  const token = tokenOf(run.given.get("h1"));
  const access = new RunAccess({
    stores: scene.engine,
    runtime: { clock: realClock },
    secrets: TEST_SECRETS,
    address: ADDRESS,
  });
  const of = { runId: run.runId, host: "h1", tenant: "matrix", ospace: "/matrix", user: "admin", sid: run.sid };
  const forged = [
    "",
    "odprun.",
    `${token}x`,
    token.slice(0, -2),
    token.replace("odprun.", "odp_"),
    `odprun.${TEST_SECRETS.seal(JSON.stringify(of), "matrix/jobs/run/environment")}`,
    ...[{ tenant: "gone" }, { tenant: "second" }, { host: "h3" }, { runId: "0" }].map((wrong) =>
      tokenOf(access.environmentOf({ ...of, ...wrong })),
    ),
  ];
  for (const text of forged) expect([text, await access.byRun(text, "")]).toEqual([text, undefined]);
  expect(await access.byRun(token, "")).toMatchObject({ context: run.sid, grants: [], data: [] });
  await run.end();
});

test("a token is over with the time of its run, also where nobody ends that", async () => {
  const run = await standing();
  const token = tokenOf(run.given.get("h1"));
  const late = { stores: scene.engine, secrets: TEST_SECRETS, runtime: { clock: shiftedClock(realClock, 601_000) } };
  expect(await new RunAccess(late).byRun(token, "")).toBeUndefined();
  await run.end();
});

test("at a controller that takes the run over the token of a command goes on, until that one ends the run", async () => {
  const run = await standing("dying");
  const token = tokenOf(run.given.get("h1"));
  const [path, held] = [pathOf(run.given.get("h1")), heldWork({ code: 0 })];
  // The first controller finds its entries taken, like one that was paused.
  const heir = scene.controller("heir", { address: ADDRESS, dispatch: () => held.wait() });
  const taken = heir.maintain("matrix");
  await held.asleep;
  expect(await call(token, "PUT", path, "name=after&value=takeover")).toMatchObject({ status: "ok" });
  held.release();
  await taken;
  await expect.poll(() => scene.openKeys(run.runId), { timeout: 30_000 }).toEqual([]);
  expect((await call(token, "GET", path)).status).toBe("signin");
  expect(await contexts.read(admin, run.sid)).toEqual({ after: "takeover" });
  await run.end();
});

test("where nobody said how hosts reach the controller, commands are told so and get no token", async () => {
  const run = await standing("silent", { address: "" });
  const { ODP_CONTEXT_PROBLEM: problem, ...others } = run.given.get("h1") ?? {};
  expect(problem).toContain("ODP_HTTP_URL");
  expect(Object.keys(others).sort()).toEqual(["ODP_CONTEXT_ID", "ODP_RUN_ID"]);
  expect(others["ODP_CONTEXT_ID"]).toBe(run.sid);
  await run.end();
});

test("what a command sets goes with the row of its run, however long it asks for", async () => {
  const run = await standing();
  const h1 = run.given.get("h1");
  for (const form of ["name=a&value=1", `name=b&value=2&ttl=${400 * 86_400}`, "name=c&value=3&ttl=60"])
    expect(await call(tokenOf(h1), "PUT", pathOf(h1), form)).toMatchObject({ status: "ok" });
  const readAfter = (days: number) =>
    new JobContexts({
      stores: scene.engine,
      runtime: testRuntime(shiftedClock(realClock, days * 86_400_000)),
    }).read(admin, run.sid);
  expect(await readAfter(29)).toEqual({ a: "1", b: "2" });
  expect(await readAfter(31)).toEqual({});
  await run.end();
});
