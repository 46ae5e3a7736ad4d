import { afterAll, beforeAll, expect, test } from "vitest";
import { openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { JobScheduler } from "./scheduler.ts";

const admin = testPrincipal();
const PATIENCE = { timeout: 60_000 };
const LEADER = "jobs/scheduler";

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
beforeAll(async () => {
  monitoring = await openMonitoring();
});
afterAll(() => monitoring[Symbol.asyncDispose]());

/** A scheduler that records the jobs it attends to. Each job is due again at once, as long as it is defined. */
function scheduler(own: string, attended: string[], work: () => Promise<void> = () => Promise.resolve()): JobScheduler {
  return new JobScheduler({
    stores: monitoring.engine,
    runtime: testRuntime(realClock),
    controllers: { own },
    tenants: { list: () => Promise.resolve([{ name: "matrix" }, { name: "second" }]) },
    firings: {
      firstMs: (_name, { schedule, enable }) => (schedule === "" || enable === 0 ? undefined : realClock.nowMs()),
      attend: async (tenant, name) => {
        attended.push(`${own} ${tenant} ${name}`);
        await work();
        return realClock.nowMs() + 10;
      },
    },
  });
}
const leader = async () => {
  const entry = await (await monitoring.engine.system()).kv.get(LEADER);
  return entry && Buffer.from(entry.value).toString();
};
const define = (name: string, more: object = {}, as = admin) =>
  monitoring.jobs.save(as, { name, exec: ["run"], host: ["h1"], schedule: "every 1s", ...more });

test("one of two fires for all tenants, follows what is defined and removed, and the other takes over when it stops", async () => {
  const attended: string[] = [];
  await define("early");
  await define("theirs", {}, testPrincipal("administrator", "second"));
  await define("without", { schedule: "" });
  const one = scheduler("a", attended);
  one.start();
  await expect.poll(leader, PATIENCE).toContain('"a"');
  const other = scheduler("b", attended);
  other.start();
  await define("late");
  const names = (own: string) => new Set(attended.filter((each) => each.startsWith(own)));
  const all = (own: string) => new Set([`${own} matrix early`, `${own} matrix late`, `${own} second theirs`]);
  await expect.poll(() => names("a"), PATIENCE).toEqual(all("a"));
  await monitoring.jobs.remove(admin, "early");
  await expect
    .poll(() => {
      const before = attended.length;
      attended.length = 0;
      return before > 0 && !attended.includes("a matrix early");
    }, PATIENCE)
    .toBe(true);
  expect(names("b")).toEqual(new Set());
  await one.stop();
  attended.length = 0;
  await expect.poll(leader, PATIENCE).toContain('"b"');
  await expect.poll(() => names("b"), PATIENCE).toEqual(new Set(["b matrix late", "b second theirs"]));
  expect(names("a")).toEqual(new Set());
  await other.stop();
  expect(await leader()).toBeUndefined();
});

test("an orderly stop waits for what is being decided; a failure is tried again and keeps no other job from it", async () => {
  const attended: string[] = [];
  let release: () => void = () => undefined;
  let failures = 0;
  await define("held");
  const held = new Promise<void>((resolve) => (release = resolve));
  const one = scheduler("c", attended, async () => {
    if (!attended.at(-1)?.endsWith("held")) return;
    if (failures++ < 1) throw new Error("the store is away");
    await held;
  });
  one.start();
  await expect.poll(() => failures, PATIENCE).toBe(2);
  let stopped = false;
  const stopping = one.stop().then(() => (stopped = true));
  await expect.poll(() => attended.length, PATIENCE).toBeGreaterThan(2);
  expect(stopped).toBe(false);
  release();
  await stopping;
  expect(await leader()).toBeUndefined();
});
