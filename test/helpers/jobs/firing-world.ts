import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { realClock, seededRandom } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../time/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { entriesUnder } from "../../../controller/store/kv/entries.ts";
import { decodeStored } from "../../../controller/store/format.ts";
import type { CommandOutcome } from "../../../controller/areas/hosts/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import { jobClasses } from "../../../controller/areas/jobs/classes.ts";
import { Firings } from "../../../controller/areas/jobs/schedule/firings.ts";
import { JobRuns } from "../../../controller/areas/jobs/runs/runs.ts";
import { JobService } from "../../../controller/areas/jobs/service.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";
import { NAMED_HOSTS } from "../hosts/named-hosts.ts";

/** Controllers that fire the times of one job, on a clock of each test. */

export const admin = testPrincipal();
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Stores that all tests of the calling file share. */
export let engine: TestEngine;
let objects: ObjectService;
export let clock: TestClock;
export let jobs: JobService;
/** Users that exist, by name. */
export let users: Map<string, Principal>;
/** Commands that hosts were sent. */
export let sent: { readonly host: string; readonly commandId: string }[];
let outcome: Promise<Partial<CommandOutcome>>;
/** Ids of the controllers that are alive. */
export let present: Set<string>;
/** The job of the running test. */
export let name: string;
let count = 0;
/** When the running test began, in milliseconds: the start of a day. */
export let startMs: number;

/** Opens one engine for all tests of the calling file, and a clock and a job for each. */
export function useFirings(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(realClock) });
    for (const definition of jobClasses({} as JobService)) objects.registerSystemClass(definition);
  });
  afterAll(async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    // The start of a day, so that all times of the tests are times of `every`.
    startMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    nextJob();
    users = new Map([[admin.user, admin]]);
    sent = [];
    outcome = Promise.resolve({});
    present = new Set(["a", "b"]);
  });
}

/** Goes back to the start of the day, with another name for the job. */
export function nextJob(): void {
  name = `job${++count}`;
  clock = new TestClock(startMs);
  defineOver(engine);
}

/** Lets jobs be defined, and read by controllers made from now on, through these stores. */
export function defineOver(stores: Stores): void {
  jobs = new JobService({ targets: NAMED_HOSTS, stores, runtime: testRuntime(clock), objects });
}

/** Lets hosts end their commands by this promise. */
export function answerWith(ended: Promise<Partial<CommandOutcome>>): void {
  outcome = ended;
}

export interface Controller {
  readonly runs: JobRuns;
  attend(): Promise<number | undefined>;
}

let controllers = 0;

/** Returns a controller of the job. */
export function controller(own: string, stores: Stores = engine, runsInFlightMax = 1_000): Controller {
  const runtime = { ...testRuntime(clock), random: seededRandom(++controllers) };
  const runs = new JobRuns({
    targets: NAMED_HOSTS,
    stores,
    runtime,
    jobs,
    objects,
    secrets: TEST_SECRETS,
    hosts: {
      dispatch: async (_principal, host, _command, { commandId = "" }) => {
        sent.push({ host, commandId });
        return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2, ...(await outcome) };
      },
    },
    stored: { outcome: () => Promise.resolve(undefined) },
    notifications: { publish: () => undefined },
    controllers: { own, has: (id) => present.has(id) },
    runsInFlightMax,
  });
  const firings = new Firings({
    stores,
    runtime,
    runs,
    endings: runs.endings,
    authors: { present: (_tenant, user) => Promise.resolve(users.get(user)) },
    ospaceOf: () => Promise.resolve("/matrix"),
    zone: "UTC",
  });
  return { runs, attend: () => firings.attend("matrix", name) };
}

/** Saves the job. */
export const define = (schedule: string, more: object = {}, as = admin) =>
  jobs.save(as, { name, exec: ["run"], host: ["h1"], schedule, ...more });

/** Returns the rows of the job's runs, in the order of their times. */
export async function rows() {
  const found: Readonly<Record<string, unknown>>[] = [];
  const where = [{ kind: "equals", column: "name", values: [name] }] as const;
  for await (const page of objects.unrestricted.read(admin, { class: "/matrix/jobs/jobrun", subtree: false, where }))
    found.push(...page.map(({ values }) => values));
  return found.sort((one, other) => Number(one["due"]) - Number(other["due"]));
}
/** Returns minute and status of each run. */
export const told = async () =>
  (await rows()).map(({ due, status }) => `${(Number(due) - startMs) / MINUTE_MS} ${String(status)}`);

/** Attends like the controller that fires, until nothing is due any more. */
export async function fireAll({ attend }: Controller): Promise<number | undefined> {
  for (;;) {
    const nextMs = await attend();
    if (nextMs === undefined || nextMs > clock.nowMs()) return nextMs;
  }
}

/** Waits until all begun work is over; `meanwhile` advances the time for work that waits for it. */
export const over = async (meanwhile: () => void = () => undefined) => {
  const { kv } = await engine.tenant("matrix");
  const open = async (): Promise<number> => {
    meanwhile();
    let mine = 0;
    for (const prefix of ["jobs/execution/", "jobs/open/"])
      for await (const { value } of entriesUnder(kv, prefix))
        mine += decodeStored<{ order: { name: string } }>(value).order.name === name ? 1 : 0;
    return mine;
  };
  await expect.poll(open, { timeout: 30_000 }).toBe(0);
};
