import { afterAll, beforeAll, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { JOB_ROW_WRITES_AT_ONCE } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openJobRuns } from "../../../../test/helpers/jobs/job-runs.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { CallDeadline } from "../../../store/calls/call-deadline.ts";
import type { UnrestrictedObjects } from "../../objects/index.ts";
import { JOB_RUN_PATH } from "../classes.ts";
import { RunRows } from "./rows.ts";

const ADMIN = testPrincipal();
const NEIGHBOUR = testPrincipal("administrator", "second");

let scene: Awaited<ReturnType<typeof openJobRuns>>;
beforeAll(async () => {
  scene = await openJobRuns();
  await scene.engine.createTenant("second");
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Rows, and the run ids of each write. */
function rows(before: (names: readonly unknown[]) => void = () => undefined) {
  const writes: string[][] = [];
  const insert: UnrestrictedObjects["insert"] = async (principal, path, given, options) => {
    const names = given.map(({ runid }) => String(runid));
    writes.push(names);
    before(names);
    return scene.objects.unrestricted.insert(principal, path, given, options);
  };
  return { writes, rows: new RunRows({ unrestricted: { insert } }) };
}

const NOW_MS = Date.now();
/** `atMs`: milliseconds after now. */
const timed = (runid: string, atMs: number, status = "running") => ({
  row: { runid, host: "h1", name: "j", status, stime: NOW_MS },
  atMs: NOW_MS + atMs,
});
const states = async (beginning: string) =>
  (await scene.query.rows(ADMIN, `SELECT runid, status FROM /matrix/jobs/jobrun WHERE name = 'j' LIMIT -1`, []))
    .filter(({ runid }) => String(runid).startsWith(beginning))
    .map(({ runid, status }) => `${String(runid)} ${String(status)}`)
    .sort();
const names = (beginning: string, count: number) => Array.from({ length: count }, (_, n) => `${beginning}${n}`);

test("rows that are asked for while others are written go together, each with the time of its own run", async () => {
  const { writes, rows: of } = rows();
  const runs = names("tick", 6);
  await Promise.all(runs.map((runid, n) => of.write(ADMIN, JOB_RUN_PATH, [timed(runid, 10_000 + n)])));
  expect(writes.map(({ length }) => length)).toEqual([
    ...Array.from({ length: JOB_ROW_WRITES_AT_ONCE }, () => 1),
    6 - JOB_ROW_WRITES_AT_ONCE,
  ]);
  // By its own time, an end that is older than the start of its run changes nothing; a later one does.
  await Promise.all(runs.map((runid, n) => of.write(ADMIN, JOB_RUN_PATH, [timed(runid, 10_003, `end ${n}`)])));
  expect(await states("tick")).toEqual([
    ...runs.slice(0, 3).map((runid, n) => `${runid} end ${n}`),
    expect.stringContaining("tick3 "),
    ...runs.slice(4).map((runid) => `${runid} running`),
  ]);
});

test("a row that cannot be written fails alone; where the store is away all are told", async () => {
  const broken = rows((given) => {
    if (given.includes("one4")) throw new AppError("too_large", "It is too large.");
  });
  const asked = names("one", 6).map((runid) => broken.rows.write(ADMIN, JOB_RUN_PATH, [timed(runid, 1)]));
  const told = await Promise.allSettled(asked);
  expect(told.map(({ status }) => status)).toEqual([0, 1, 2, 3, 4, 5].map((n) => (n === 4 ? "rejected" : "fulfilled")));
  expect(await states("one")).toHaveLength(5);
  const away = rows(() => {
    throw new AppError("unavailable", "The store is away.");
  });
  const all = await Promise.allSettled(
    names("away", 6).map((runid) => away.rows.write(ADMIN, JOB_RUN_PATH, [timed(runid, 1)])),
  );
  expect(all.every(({ status }) => status === "rejected")).toBe(true);
  expect(away.writes).toHaveLength(JOB_ROW_WRITES_AT_ONCE + 1);
});

test("a row with half of a character in a text is written, with what JSON writes for it", async () => {
  const { rows: of } = rows();
  await of.write(ADMIN, JOB_RUN_PATH, [timed("half", 1, "a\ud83d")]);
  expect(await states("half")).toEqual(["half a\\ud83d"]);
});

test("tenants do not wait for each other, and a call writes by itself, in the time that it has", async () => {
  const { writes, rows: of } = rows();
  const call = new CallDeadline({ clock: realClock, lengthMs: 60_000, atEnd: () => undefined });
  await Promise.all([
    ...names("mine", 4).map((runid) => of.write(ADMIN, JOB_RUN_PATH, [timed(runid, 1)])),
    of.write(NEIGHBOUR, JOB_RUN_PATH, [timed("theirs", 1)]),
    call.run(() => of.write(ADMIN, JOB_RUN_PATH, [timed("called", 1)])),
  ]);
  expect(writes.slice(0, 4)).toEqual([["mine0"], ["mine1"], ["theirs"], ["called"]]);
  expect(await states("mine")).toHaveLength(4);
  const theirs = await scene.query.rows(NEIGHBOUR, "SELECT runid FROM /second/jobs/jobrun", []);
  expect(theirs).toEqual([{ runid: "theirs" }]);
});
