import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { JOB_QUEUE_MAX } from "../../../../common/limits.ts";
import { openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { encodeJson } from "../../../store/format.ts";
import { JobRuns } from "../runs/runs.ts";
import { NAMED_HOSTS } from "../../../../test/helpers/hosts/named-hosts.ts";

const admin = testPrincipal();
const neighbour = testPrincipal("administrator", "second");
const QUEUE = "jobs/queue/named/q";

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let controllers = 0;
let present: Set<string>;
/** Ends the command of each host that was sent one and has not finished it, by host. */
let going: Map<string, () => void>;
let order: string[];

beforeAll(async () => {
  monitoring = await openMonitoring();
  for (const name of ["one", "two", "three"])
    await monitoring.jobs.save(admin, { name, exec: [name], host: ["h1"], queue: "q" });
});
afterAll(() => monitoring[Symbol.asyncDispose]());
beforeEach(() => {
  present = new Set(["a", "b"]);
  going = new Map();
  order = [];
});

const controller = (own: string): JobRuns =>
  new JobRuns({
    targets: NAMED_HOSTS,
    secrets: TEST_SECRETS,
    stores: monitoring.engine,
    runtime: { ...testRuntime(realClock), random: seededRandom(++controllers) },
    jobs: monitoring.jobs,
    hosts: {
      dispatch: async (_principal, host, command) => {
        const line = command.kind === "exec" ? command.line : "";
        order.push(line);
        await new Promise<void>((resolve) => going.set(line, resolve));
        going.delete(line);
        return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2 };
      },
    },
    stored: { outcome: () => Promise.resolve(undefined) },
    objects: monitoring.objects,
    notifications: { publish: () => {} },
    controllers: { own, has: (id) => present.has(id) },
  });
const kv = async () => (await monitoring.engine.tenant("matrix")).kv;
const begun = (line: string) => expect.poll(() => going.has(line), { timeout: 30_000 }).toBe(true);
const end = async (line: string) => {
  await begun(line);
  going.get(line)?.();
};

test("jobs of one queue run one after another in the order they were asked for, on all controllers", async () => {
  const [one, other] = [controller("a"), controller("b")];
  const all = [];
  for (const [runs, name] of [
    [one, "one"],
    [other, "two"],
    [one, "three"],
  ] as const)
    all.push(await runs.execute(admin, name, {}));
  for (const line of ["one", "two", "three"]) {
    await begun(line);
    expect([...going.keys()]).toEqual([line]);
    await end(line);
  }
  const ended = await Promise.all(all.map(({ finished }) => finished));
  expect(ended.flat().map(({ state }) => state)).toEqual(["ok", "ok", "ok"]);
  expect(order).toEqual(["one", "two", "three"]);
  expect(await (await kv()).get(QUEUE)).toBeUndefined();
});

test("who waits for a controller that is gone goes on when its run was taken over and has ended", async () => {
  const [one, other] = [controller("a"), controller("b")];
  await one.execute(admin, "one", {});
  await begun("one");
  const second = await other.execute(admin, "two", {});
  await one.close();
  present.delete("a");
  await other.maintain("matrix");
  await expect.poll(() => order.filter((line) => line === "one").length, { timeout: 30_000 }).toBe(2);
  await end("one");
  await end("two");
  expect((await second.finished).map(({ state }) => state)).toEqual(["ok"]);
});

test("what waits where its controller ends is gone on with by another, in its turn", async () => {
  const [one, other] = [controller("a"), controller("b")];
  const first = await other.execute(admin, "one", {});
  await begun("one");
  const second = await one.execute(admin, "two", {});
  const letGo = expect(second.finished).rejects.toMatchObject({ code: "deadline" });
  await one.close();
  await letGo;
  present.delete("a");
  await other.maintain("matrix");
  expect(order).toEqual(["one"]);
  await end("one");
  await first.finished;
  await end("two");
  await expect
    .poll(
      async () => (await monitoring.mql(`select status from /matrix/jobs/jobrun where runid='${second.runId}'`))[0],
      {
        timeout: 30_000,
      },
    )
    .toMatchObject({ status: "ok" });
});

test("what is left in a queue by an execution that is over keeps nobody waiting, and a neighbour has queues of his own", async () => {
  await (await kv()).put(QUEUE, encodeJson(["01ARZ3NDEKTSV4RRFFQ69G5FAV"]));
  const one = controller("a");
  await monitoring.jobs.save(neighbour, { name: "theirs", exec: ["theirs"], host: ["h1"], queue: "q" });
  const [mine, theirs] = [await one.execute(admin, "one", {}), await one.execute(neighbour, "theirs", {})];
  await begun("one");
  await end("theirs");
  await theirs.finished;
  await end("one");
  await mine.finished;
});

test("a queue has a bound", async () => {
  const full = Array.from({ length: JOB_QUEUE_MAX }, (_, at) => `r${at}`);
  await (await kv()).put(QUEUE, encodeJson(full));
  await expect(controller("a").execute(admin, "one", {})).rejects.toMatchObject({
    code: "limited",
    details: { limit: "JOB_QUEUE_MAX" },
  });
  await (await kv()).delete(QUEUE);
});
