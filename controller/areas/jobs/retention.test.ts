import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { heldWork, openJobRuns, said, type SentCommand } from "../../../test/helpers/job-runs.ts";
import { testPrincipal } from "../../../test/helpers/runtime.ts";
import type { CommandOutcome } from "../hosts/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import { emptyJob } from "./definition.ts";
import { RunRetention } from "./retention.ts";

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

  // One that never ran the job looks after it with its first run, and does what another does at the same time.
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
  await scene.objects.insert(
    systemPrincipal("matrix", "/matrix", ""),
    "/matrix/jobs/jobrun",
    Array.from({ length: count }, (_, n) => row(n)),
  );
  let isAway = true;
  const retention = new RunRetention({
    stores: scene.engine,
    objects: {
      read: (...call) => scene.objects.read(...call),
      remove: (...call) =>
        isAway ? Promise.reject(new AppError("unavailable", "away")) : scene.objects.remove(...call),
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

test("runs are found by when they began, their job, host and state without a look at all of them", async () => {
  for (const where of ["stime >= ago('1 hour')", "name = 'kept'", "host = 'h1'", "status = 'failed'"]) {
    const text = `EXPLAIN SELECT runid FROM /matrix/jobs/jobrun WHERE ${where}`;
    const [first] = await scene.query.rows(ADMIN, text, []);
    expect(String(first?.["work"])).toMatch(/^(index|range) /);
  }
});
