import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { noClasses } from "../../../../test/helpers/objects/memory/objects.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { JobService } from "../service.ts";
import { JobStore } from "../store.ts";
import { NAMED_HOSTS } from "../../../../test/helpers/hosts/named-hosts.ts";

const admin = testPrincipal();
const other = { ...admin, user: "other" };
const START_MS = Date.UTC(2026, 2, 28, 12);
const HOUR_MS = 3_600_000;

let engine: TestEngine;
let clock: TestClock;
let jobs: JobService;

beforeAll(async () => {
  engine = await openTestEngine();
  clock = new TestClock(START_MS);
  const runtime = testRuntime(clock);
  jobs = new JobService({ targets: NAMED_HOSTS, stores: engine, runtime, objects: noClasses(), zone: "Europe/Berlin" });
});
afterAll(() => engine[Symbol.asyncDispose]());

const define = (schedule: string, more: object = {}) =>
  jobs.save(admin, { name: "timed", exec: ["run"], host: ["h1"], schedule, ...more });
const stored = async () => (await new JobStore(engine).definition("matrix", "timed"))!.job;

test("a definition answers its next times, in the zone of the controller or its own, unless it is switched off", async () => {
  const { job } = await define("30 2 * * *");
  const due = ["2026-03-29T01:00Z", "2026-03-30T00:30Z", "2026-03-31T00:30Z", "2026-04-01T00:30Z", "2026-04-02T00:30Z"];
  expect(job.next).toEqual(due.map((text) => Date.parse(text)));
  expect(await jobs.get(admin, "timed")).toMatchObject({ next: job.next });
  expect((await define("30 2 * * *;tz=UTC")).job.next?.[0]).toBe(Date.parse("2026-03-29T02:30Z"));
  expect((await jobs.enable(admin, "timed", false)).job).not.toHaveProperty("next");
  expect((await jobs.edit(admin, { name: "timed", enable: 1, schedule: "" })).job).not.toHaveProperty("next");
  const hidden = { class: "/matrix/jobs/jobdef", access: "write", hidden: ["schedule"] } as const;
  await define("30 2 * * *");
  expect(await jobs.get({ ...admin, data: [hidden] }, "timed")).not.toHaveProperty("next");
});

test("a schedule that cannot be read, or never comes, is refused, and one that is over is told", async () => {
  await define("every 1h");
  for (const [schedule, reason] of [
    ["cron * * *", "five or six fields"],
    ["0 0 31 2 *", "never come"],
    ["every 1m;tz=Nowhere", "no time zone"],
  ] as const) {
    await expect(define(schedule)).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining(reason) });
    await expect(jobs.edit(admin, { name: "timed", schedule })).rejects.toMatchObject({ code: "invalid" });
  }
  expect(await stored()).toMatchObject({ schedule: "every 1h" });
  expect((await define("at 2026-03-28 12:00")).warnings).toContainEqual(expect.stringContaining("is over"));
  expect((await define("at 2026-03-28 14:00")).warnings).not.toContainEqual(expect.stringContaining("is over"));
});

test("a definition stored before schedules had to be readable is read, changed and mended", async () => {
  await define("every 1h");
  const store = new JobStore(engine);
  const { revision, job } = (await store.definition("matrix", "timed"))!;
  await store.putDefinition("matrix", "timed", { job: { ...job, schedule: "now and then" }, ifRevision: revision });
  expect(await jobs.get(admin, "timed")).not.toHaveProperty("next");
  expect(await jobs.edit(admin, { name: "timed", description: "d" })).toMatchObject({ job: { description: "d" } });
  expect(await jobs.edit(admin, { name: "timed", schedule: "every 2h" })).toMatchObject({ job: { description: "d" } });
});

test("who saves what is executed answers for it; who switches, describes or tags it does not", async () => {
  await define("every 1h");
  expect(await stored()).toMatchObject({ savedBy: "administrator" });
  await jobs.enable(other, "timed", false);
  await jobs.edit(other, { name: "timed", description: "d", tag: ["a"] });
  await jobs.retag(other, "timed", () => ["b"]);
  expect(await stored()).toMatchObject({ savedBy: "administrator", tag: ["b"] });
  await jobs.edit(other, { name: "timed", exec: ["other"] });
  expect(await stored()).toMatchObject({ savedBy: "other" });
  await jobs.merge(admin, { name: "timed", host: ["h2"] });
  expect(await stored()).toMatchObject({ savedBy: "administrator" });
});

test("who deletes a user is told of the schedules that stop, as far as they may be seen", async () => {
  await define("every 1h");
  expect(await jobs.endsWith(other, "administrator")).toEqual(["Schedules stop until another user saves them: timed."]);
  expect(await jobs.endsWith(admin, "other")).toEqual([]);
  expect(await jobs.endsWith({ ...other, grants: ["users:write"] }, "administrator")).toEqual([]);
  expect(await jobs.endsWith({ ...other, data: [] }, "administrator")).toEqual([]);
});

test("a token with a part of its user's grants schedules nothing, as that would run with all of them", async () => {
  const part = { ...admin, grants: ["jobs:read", "jobs:write"], byToken: "part" as const };
  const refused = { code: "denied", message: expect.stringContaining("of which the token has a part") as string };
  await define("every 1h");
  await expect(jobs.edit(part, { name: "timed", exec: ["other"] })).rejects.toMatchObject(refused);
  await expect(jobs.edit(part, { name: "timed", schedule: "every 2h" })).rejects.toMatchObject(refused);
  await jobs.edit(part, { name: "timed", schedule: "" });
  await jobs.edit(part, { name: "timed", exec: ["other"] });
  await expect(jobs.merge(part, { name: "timed", schedule: "every 2h" })).rejects.toMatchObject(refused);
  await jobs.edit({ ...part, byToken: "whole" }, { name: "timed", schedule: "every 2h" });
});

test("times count from when the schedule was set or switched on, and no other change", async () => {
  await jobs.remove(admin, "timed");
  await define("every 1h");
  expect(await stored()).toMatchObject({ scheduledMs: START_MS });
  clock.advance(HOUR_MS);
  await jobs.edit(admin, { name: "timed", exec: ["other"], enable: 1 });
  expect(await stored()).toMatchObject({ scheduledMs: START_MS });
  await jobs.enable(admin, "timed", false);
  clock.advance(HOUR_MS);
  await jobs.enable(admin, "timed", true);
  expect(await stored()).toMatchObject({ scheduledMs: START_MS + 2 * HOUR_MS });
  clock.advance(HOUR_MS);
  await define("every 2h");
  expect(await stored()).toMatchObject({ scheduledMs: START_MS + 3 * HOUR_MS });
});
