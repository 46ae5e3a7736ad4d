import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import { encodeJson } from "../../../store/format.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { JobRuns } from "../runs/runs.ts";
import type { Execution } from "../types.ts";
import { NAMED_HOSTS } from "../../../../test/helpers/hosts/named-hosts.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const NAME = "narrow@d";
const LIMITED = { code: "limited" };

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let controllers = 0;
/** Controllers that are alive. */
let present: Set<string>;
let one: JobRuns;
let other: JobRuns;
/** Lets present and future commands end. */
let letGo: () => void;

const controller = (own: string, stores: Stores = monitoring.engine): JobRuns =>
  new JobRuns({
    targets: NAMED_HOSTS,
    secrets: TEST_SECRETS,
    stores,
    // A seed of its own, so that no two controllers give a run the same id.
    runtime: { ...testRuntime(realClock), random: seededRandom(++controllers) },
    jobs: monitoring.jobs,
    hosts: monitoring.hosts,
    stored: { outcome: () => Promise.resolve(undefined) },
    objects: monitoring.objects,
    notifications: { publish: () => {} },
    controllers: { own, has: (id) => present.has(id) },
  });

beforeAll(async () => {
  monitoring = await openMonitoring();
  const { hosts } = monitoring;
  const dispatch = hosts.dispatch.bind(hosts);
  let held = Promise.resolve();
  hosts.dispatch = async (...args) => {
    await held;
    return dispatch(...args);
  };
  hold = () => {
    held = new Promise((resolve) => (letGo = resolve));
  };
});
afterAll(() => monitoring[Symbol.asyncDispose]());

/** Commands do not end until `letGo`. */
let hold: () => void;
beforeEach(async () => {
  hold();
  present = new Set(["a", "b"]);
  [one, other] = [controller("a"), controller("b")];
  await monitoring.jobs.save(admin, { name: "narrow", dir: "d", exec: ["run"], host: ["h1", "h2"], limit: 2 });
});

const limit = (most: number, more: object = {}) =>
  monitoring.jobs.edit(admin, { name: "narrow", dir: "d", limit: most, ...more });
const start = (runs: JobRuns, as = admin) => runs.execute(as, NAME, {});
const kv = async () => (await monitoring.engine.tenant("matrix")).kv;
const places = async () => {
  const keys: string[] = [];
  for await (const { key } of entriesUnder(await kv(), "jobs/places/")) keys.push(key);
  return keys;
};

test("a job is executed as often at once as its limit says, by all controllers together", async () => {
  const begun = [await start(one), await start(other)];
  for (const runs of [one, other]) await expect(start(runs)).rejects.toMatchObject(LIMITED);
  await limit(3);
  begun.push(await start(other));
  await limit(1);
  await expect(start(one)).rejects.toMatchObject(LIMITED);
  letGo();
  await Promise.all(begun.map(({ finished }) => finished));
  expect(await places()).toEqual([]);
  for (let count = 0; count < 50; count++) await (await start(count % 2 === 0 ? one : other)).finished;
  expect(await places()).toEqual([]);
});

test("of many that begin side by side at two controllers just as many begin as may, and the others leave nothing", async () => {
  await limit(3);
  const starts = await Promise.allSettled(Array.from({ length: 20 }, (_, at) => start(at % 2 === 0 ? one : other)));
  const begun = starts.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const refused = starts.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
  expect(begun).toHaveLength(3);
  for (const reason of refused) expect(reason).toMatchObject(LIMITED);
  const open: string[] = [];
  for await (const { key } of entriesUnder(await kv(), "jobs/open/")) open.push(key.split("/")[2] ?? "");
  expect(new Set(open)).toEqual(new Set(begun.map(({ runId }) => runId)));
  letGo();
  await Promise.all(begun.map(({ finished }) => finished));
});

test("who read the places before another controller took the last one begins nothing", async () => {
  await limit(1);
  let taken: Promise<Execution> | undefined;
  const late = controller("b", {
    system: () => monitoring.engine.system(),
    tenant: async (name) => {
      const store = await monitoring.engine.tenant(name);
      const get: typeof store.kv.get = async (key) => {
        const entry = await store.kv.get(key);
        if (key.startsWith("jobs/places/")) await (taken ??= start(one));
        return entry;
      };
      return { ...store, kv: wrappedKv(store.kv, { get }) };
    },
  });
  await expect(start(late)).rejects.toMatchObject(LIMITED);
  const begun = await taken;
  const open: string[] = [];
  for await (const { key } of entriesUnder(await kv(), `jobs/open/`)) open.push(key.split("/")[2] ?? "");
  expect(new Set(open)).toEqual(new Set([begun?.runId]));
  letGo();
  await begun?.finished;
});

test("a batch begins as many of one job as may be, and says so of the others", async () => {
  const begun = await one.executeAll(admin, [{ name: NAME }, { name: NAME }, { name: NAME }]);
  expect(begun.filter((each) => "error" in each)).toMatchObject([{ error: LIMITED }]);
  letGo();
  await Promise.all(begun.flatMap((each) => ("execution" in each ? [each.execution.finished] : [])));
});

test("what a controller that is gone left open counts, and what it left behind does not", async () => {
  await limit(1);
  const { runId, finished } = await start(one);
  present.delete("a");
  await expect(start(other)).rejects.toMatchObject(LIMITED);
  letGo();
  await finished;
  await (await kv()).put("jobs/places/narrow@d", encodeJson([{ runId }]));
  await (await start(other)).finished;
  expect(await places()).toEqual([]);
});

test("in mode one an execution counts until its last host, and a neighbour's job of that name does not", async () => {
  await limit(1, { groupmode: "one", host: ["gone", "h1"] });
  const { finished } = await start(one);
  await expect(start(one)).rejects.toMatchObject(LIMITED);
  await monitoring.jobs.save(neighbour, { name: "narrow", dir: "d", exec: ["run"], host: ["h1"], limit: 1 });
  const theirs = await start(one, neighbour);
  letGo();
  expect((await finished).map(({ host }) => host)).toEqual(["gone", "h1"]);
  await theirs.finished;
  await (await start(other)).finished;
});

// Must be last: it leaves a run open.
test("an execution whose controller lets go of it keeps its place", async () => {
  await limit(1);
  await start(one);
  await one.close();
  await expect(start(other)).rejects.toMatchObject(LIMITED);
  present.delete("a");
  await expect(start(other)).rejects.toMatchObject(LIMITED);
  letGo();
});
