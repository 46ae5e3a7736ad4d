import type { Unrestricted } from "../../objects/index.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Value } from "typebox/value";
import { JobInput } from "../../../../common/api/jobs.ts";
import { AppError } from "../../../../common/errors.ts";
import { JOB_RETENTION_LOOK_MS, JOB_RUN_TTL_DAYS } from "../../../../common/limits.ts";
import { heldWork, openJobRuns, said, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { TestClock, testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import { systemPrincipal } from "../../permissions/index.ts";
import { emptyJob } from "../definitions/definition.ts";
import { RunRetention } from "./retention.ts";
import { RunAges } from "./ages.ts";

const ADMIN = testPrincipal();
const LOG = { warn: () => undefined } as never;

let scene: Awaited<ReturnType<typeof openJobRuns>>;
beforeAll(async () => {
  scene = await openJobRuns();
});
afterAll(() => scene[Symbol.asyncDispose]());

type Controller = ReturnType<typeof scene.controller>;
const speaking = ({ onOutput }: SentCommand): Partial<CommandOutcome> => (onOutput?.(said("done")), { code: 0 });

async function define(name: string, keep: number, host: readonly string[] = ["h1", "h2"]) {
  return (await scene.jobs.save(ADMIN, { name, exec: ["x"], host: [...host], keep })).job;
}

async function run(controller: Controller, name: string, times: number): Promise<string[]> {
  const ids: string[] = [];
  for (let left = times; left > 0; left--) {
    const { runId, finished } = await controller.execute(ADMIN, name, {});
    await finished;
    ids.push(runId);
  }
  return ids.sort();
}

const rowsOf = (name: string) =>
  scene.query.rows(ADMIN, "SELECT runid, host FROM /matrix/jobs/jobrun WHERE name = ? LIMIT -1", [name]);
const runsOf = async (name: string) => [...new Set((await rowsOf(name)).map(({ runid }) => String(runid)))].sort();

test("of a job the newest runs stay that it keeps, with their outputs; those of others are untouched", async () => {
  await define("kept", 3);
  await define("whole", 0);
  const a = scene.controller("a", { dispatch: speaking });
  const [ids, others] = [await run(a, "kept", 7), await run(a, "whole", 5)];
  await a.retention.sweep("matrix");
  expect(await runsOf("kept")).toEqual(ids.slice(-3));
  expect(await runsOf("whole")).toEqual(others);
  expect(await rowsOf("kept")).toHaveLength(6);
  const outputs = await Promise.all(ids.map((id) => scene.outputOf(id, "h1")));
  expect(outputs).toEqual(["", "", "", "", "done", "done", "done"]);
  const commands = await scene.query.rows(
    ADMIN,
    "SELECT runid FROM /matrix/jobs/cmdrun WHERE name = 'kept' LIMIT -1",
    [],
  );
  expect(commands.map(({ runid }) => runid).sort()).toEqual(ids.slice(-3).flatMap((id) => [id, id]));
  const { kv } = await scene.engine.tenant("matrix");
  const notes = (await kv.list("jobs/output/")).entries.map(({ key }) => key.split("/").at(-2));
  for (const id of ids) expect(notes.filter((note) => note === id)).toHaveLength(ids.indexOf(id) < 4 ? 0 : 2);

  // A controller that never ran the job checks it at its first run, and may remove the same runs at the same time.
  const b = scene.controller("b", { dispatch: speaking });
  const more = [...ids, ...(await run(a, "kept", 2)), ...(await run(b, "kept", 2))].sort();
  await Promise.all([a.retention.sweep("matrix"), b.retention.sweep("matrix")]);
  expect(await runsOf("kept")).toEqual(more.slice(-3));
});

test("a run that goes on stays, however many come after it", async () => {
  await define("long", 1, ["h1"]);
  const held = heldWork<Partial<CommandOutcome>>({ code: 0 });
  const slow = await scene.controller("a", { dispatch: () => held.wait() }).execute(ADMIN, "long", {});
  const b = scene.controller("b");
  const ids = await run(b, "long", 3);
  await b.retention.sweep("matrix");
  expect(await runsOf("long")).toEqual([slow.runId, ids.at(-1)].sort());
  held.release();
  await slow.finished;
  const [last] = await run(b, "long", 1);
  await b.retention.sweep("matrix");
  expect(await runsOf("long")).toEqual([last]);
});

test("what one step leaves, because it is much or the store was away, the next one does", async () => {
  const job = await define("busy", 2, ["h1"]);
  const [count, rowsPerSweep] = [60, 40];
  const row = (n: number) => {
    const runid = `01M8${String(n).padStart(22, "0")}`;
    return { runid, host: "h1", name: "busy", status: "ok", stime: n };
  };
  await scene.objects.unrestricted.insert(
    systemPrincipal("matrix", "/matrix", ""),
    "/matrix/jobs/jobrun",
    Array.from({ length: count }, (_, n) => row(n)),
  );
  let isAway = true;
  const retention = new RunRetention({
    stores: scene.engine,
    objects: {
      unrestricted: {
        read: (...call) => scene.objects.unrestricted.read(...call),
        remove: (...call) =>
          isAway ? Promise.reject(new AppError("unavailable", "away")) : scene.objects.unrestricted.remove(...call),
      },
    },
    runtime: { log: LOG },
    rowsPerSweep,
  });
  retention.ran(ADMIN, { ...emptyJob({ name: "busy", dir: "" }), keep: job.keep });
  await retention.sweep("matrix");
  expect((await rowsOf("busy")).length).toBe(count);
  isAway = false;
  await retention.sweep("matrix");
  expect((await rowsOf("busy")).length).toBe(count - rowsPerSweep);
  await retention.sweep("matrix");
  expect(await runsOf("busy")).toEqual([row(count - 2).runid, row(count - 1).runid]);
});

test("a neighbour's job of the same name keeps its runs", async () => {
  const neighbour = testPrincipal("administrator", "second");
  await scene.jobs.save(neighbour, { name: "same", exec: ["x"], host: ["h1"] });
  await define("same", 1, ["h1"]);
  const a = scene.controller("a");
  for (let left = 3; left > 0; left--) await (await a.execute(neighbour, "same", {})).finished;
  await run(a, "same", 3);
  for (const tenant of ["matrix", "second"]) await a.retention.sweep(tenant);
  const theirs = await scene.query.rows(neighbour, "SELECT runid FROM /second/jobs/jobrun WHERE name = 'same'", []);
  expect([theirs.length, (await runsOf("same")).length]).toEqual([3, 1]);
});

const DAY_MS = 86_400_000;
const keptFor = (name: string, keepdays: number, host: readonly string[] = ["h1"]) =>
  scene.jobs.save(ADMIN, { name, exec: ["x"], host: [...host], keepdays });

/** Removes old runs, with a clock that stands still; `step` advances it to the next check of all jobs. */
function agesAt(nowMs: number, more: Partial<ConstructorParameters<typeof RunAges>[0]> = {}) {
  const clock = new TestClock(nowMs);
  const { engine: stores, objects } = scene;
  const ages = new RunAges({
    ...{ stores, objects, runtime: { log: LOG, clock } },
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
    ...more,
  });
  return {
    sweep: (tenant = "matrix") => ages.sweep(tenant),
    step: () => clock.advance(JOB_RETENTION_LOOK_MS),
  };
}

const agesAhead = (days: number, more?: Parameters<typeof agesAt>[1]) => agesAt(Date.now() + days * DAY_MS, more);

test("runs go when they are older than the days of their job, output first, also where none ran since", async () => {
  await keptFor("week", 7, ["h1", "h2"]);
  await keptFor("month", 0);
  const a = scene.controller("a", { dispatch: speaking });
  const [ids, others] = [await run(a, "week", 3), await run(a, "month", 2)];
  await agesAhead(6.9).sweep();
  expect(await runsOf("week")).toEqual(ids);
  await agesAhead(7.1).sweep();
  expect([await runsOf("week"), await runsOf("month")]).toEqual([[], others]);
  expect(await Promise.all(ids.map((id) => scene.outputOf(id, "h2")))).toEqual(["", "", ""]);
  const left = await scene.query.rows(ADMIN, "SELECT runid FROM /matrix/jobs/cmdrun WHERE name = 'week'", []);
  const { kv } = await scene.engine.tenant("matrix");
  const notes = (await kv.list("jobs/output/")).entries.filter(({ key }) => ids.some((id) => key.includes(id)));
  expect([left, notes]).toEqual([[], []]);
});

test("a neighbour's job of the same name keeps its runs for its own days, and new runs of a job stay", async () => {
  const neighbour = testPrincipal("administrator", "second");
  await scene.jobs.save(neighbour, { name: "aging", exec: ["x"], host: ["h1"], keepdays: 20 });
  await keptFor("aging", 2);
  const a = scene.controller("a");
  await (await a.execute(neighbour, "aging", {})).finished;
  await run(a, "aging", 1);
  const ahead = scene.controller("ahead", { aheadMs: 3 * DAY_MS });
  const [fresh] = await run(ahead, "aging", 1);
  const ages = agesAhead(3);
  for (const tenant of ["matrix", "second"]) await ages.sweep(tenant);
  const theirs = await scene.query.rows(neighbour, "SELECT runid FROM /second/jobs/jobrun WHERE name = 'aging'", []);
  expect([theirs.length, await runsOf("aging")]).toEqual([1, [fresh]]);
});

test("a run that goes on stays however old it is, and goes with the first look after its end", async () => {
  await keptFor("endless", 1);
  const held = heldWork<Partial<CommandOutcome>>({ code: 0 });
  const { runId, finished } = await scene
    .controller("a", { dispatch: () => held.wait() })
    .execute(ADMIN, "endless", {});
  const ages = agesAhead(2);
  await ages.sweep();
  expect(await runsOf("endless")).toEqual([runId]);
  held.release();
  await finished;
  await ages.sweep();
  expect(await runsOf("endless"), "before its time").toEqual([runId]);
  ages.step();
  await ages.sweep();
  expect(await runsOf("endless")).toEqual([]);
});

test("controllers that remove old runs side by side remove each once, in steps; one job that fails holds up no other", async () => {
  await keptFor("aa-broken", 1);
  await keptFor("piled", 1);
  const a = scene.controller("a");
  const broken = await run(a, "aa-broken", 1);
  await run(a, "piled", 12);
  const stuck = await scene.query.rows(ADMIN, "SELECT id FROM /matrix/jobs/jobrun WHERE name = 'aa-broken'", []);
  const objects: Unrestricted<"read" | "remove"> = {
    unrestricted: {
      read: (...call) => scene.objects.unrestricted.read(...call),
      remove: (principal, removed) =>
        removed.some(({ id }) => id === stuck[0]?.["id"])
          ? Promise.reject(new AppError("unavailable", "away"))
          : scene.objects.unrestricted.remove(principal, removed),
    },
  };
  const [one, other] = [agesAhead(2, { objects, rowsPerSweep: 5 }), agesAhead(2, { objects, rowsPerSweep: 5 })];
  await Promise.all([one.sweep(), other.sweep()]);
  expect((await runsOf("piled")).length).toBeGreaterThanOrEqual(12 - 2 * 5);
  for (let steps = 0; steps < 4; steps++) await Promise.all([one.sweep(), other.sweep()]);
  expect([await runsOf("piled"), await runsOf("aa-broken")]).toEqual([[], broken]);
});

test.each([-1, 1.5, JOB_RUN_TTL_DAYS + 1])("a job is not kept for %d days", (keepdays) => {
  expect(Value.Check(JobInput, { name: "x", exec: ["x"], keepdays })).toBe(false);
});

test("runs are found by when they began, their job, host and state without a look at all of them", async () => {
  for (const where of ["stime >= ago('1 hour')", "name = 'kept'", "host = 'h1'", "status = 'failed'"]) {
    const text = `EXPLAIN SELECT runid FROM /matrix/jobs/jobrun WHERE ${where}`;
    const [first] = await scene.query.rows(ADMIN, text, []);
    expect(String(first?.["work"])).toMatch(/^(index|range) /);
  }
});
