import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { AppError } from "../../../../common/errors.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/entries.ts";
import { decodeStored } from "../../../store/format.ts";
import type { KvTxn } from "../../../store/kv.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { jobClasses } from "../classes.ts";
import { Firings } from "./firings.ts";
import { JobRuns } from "../runs/runs.ts";
import { JobService } from "../service.ts";

const admin = testPrincipal();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

let engine: TestEngine;
let objects: ObjectService;
let clock: TestClock;
let jobs: JobService;
let users: Map<string, Principal>;
let sent: { readonly host: string; readonly commandId: string }[];
let outcome: Promise<Partial<CommandOutcome>>;
let present: Set<string>;
let name: string;
let count = 0;
let startMs: number;

beforeAll(async () => {
  engine = await openTestEngine();
  objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  for (const definition of jobClasses({} as JobService)) objects.registerSystemClass(definition);
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
});
beforeEach(() => {
  // The start of a day, so that all times below are times of `every`.
  startMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  clock = new TestClock(startMs);
  jobs = new JobService({ stores: engine, runtime: testRuntime(clock), objects });
  users = new Map([[admin.user, admin]]);
  sent = [];
  outcome = Promise.resolve({});
  present = new Set(["a", "b"]);
  name = `job${++count}`;
});

interface Controller {
  readonly runs: JobRuns;
  attend(): Promise<number | undefined>;
}

let controllers = 0;

function controller(own: string, stores: Stores = engine, runsInFlightMax = 1_000): Controller {
  const runtime = { ...testRuntime(clock), random: seededRandom(++controllers) };
  const runs = new JobRuns({
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

const define = (schedule: string, more: object = {}, as = admin) =>
  jobs.save(as, { name, exec: ["run"], host: ["h1"], schedule, ...more });

async function rows() {
  const found: Readonly<Record<string, unknown>>[] = [];
  const where = [{ kind: "equals", column: "name", values: [name] }] as const;
  for await (const page of objects.read(admin, { class: "/matrix/jobs/jobrun", subtree: false, where }))
    found.push(...page.map(({ values }) => values));
  return found.sort((one, other) => Number(one["due"]) - Number(other["due"]));
}
const told = async () =>
  (await rows()).map(({ due, status }) => `${(Number(due) - startMs) / MINUTE_MS} ${String(status)}`);

/** Attends like the controller that fires, until nothing is due any more. */
async function fireAll({ attend }: Controller): Promise<number | undefined> {
  for (;;) {
    const nextMs = await attend();
    if (nextMs === undefined || nextMs > clock.nowMs()) return nextMs;
  }
}

/** Waits until all begun work is over; `meanwhile` advances the time for work that waits for it. */
const over = async (meanwhile: () => void = () => undefined) => {
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

test("each time is fired once, though ten controllers attend to it side by side, and its run says when it was due", async () => {
  await define("every 10m");
  const all = Array.from({ length: 10 }, (_, at) => controller(at % 2 === 0 ? "a" : "b"));
  for (let time = 1; time <= 3; time++) {
    clock.advance(10 * MINUTE_MS);
    await Promise.all(all.map((each) => each.attend()));
    await over();
  }
  expect(await told()).toEqual(["10 ok", "20 ok", "30 ok"]);
  expect(sent).toHaveLength(3);
  expect(await fireAll(all[0]!)).toBe(startMs + 40 * MINUTE_MS);
});

test("a firing reads the definition once, and fires nothing that its author does not see any more", async () => {
  let reads = 0;
  const counting: Stores = {
    system: () => engine.system(),
    tenant: async (tenant) => {
      const own = await engine.tenant(tenant);
      const get: typeof own.kv.get = (key) => {
        if (key.startsWith("jobs/definition/")) reads++;
        return own.kv.get(key);
      };
      return { ...own, kv: wrappedKv(own.kv, { get }) };
    },
  };
  jobs = new JobService({ stores: counting, runtime: testRuntime(clock), objects });
  await define("every 10m");
  const a = controller("a", counting);
  clock.advance(10 * MINUTE_MS);
  reads = 0;
  await a.attend();
  expect(reads).toBe(1);
  await over();
  const rule = { class: "/matrix/jobs/jobdef", access: "read", where: "name = 'another'" } as const;
  users.set(admin.user, { ...admin, data: [rule] });
  clock.advance(10 * MINUTE_MS);
  await a.attend();
  expect([await told(), sent.length]).toEqual([["10 ok", "20 failed"], 1]);
});

test("after an outage the missed times are run, or left out and told, as missed says", async () => {
  const outcomes: Record<string, readonly string[]> = {
    "every 1h;missed=all": ["60 ok", "120 ok", "180 ok"],
    "every 1h;missed=last": ["60 skipped", "180 ok"],
    "every 1h;missed=skip": ["180 skipped"],
  };
  for (const [schedule, expected] of Object.entries(outcomes)) {
    name = `job${++count}`;
    clock = new TestClock(startMs);
    jobs = new JobService({ stores: engine, runtime: testRuntime(clock), objects });
    await define(`${schedule};overlap=allow`);
    clock.advance(3 * HOUR_MS + 5 * MINUTE_MS);
    expect(await fireAll(controller("a"))).toBe(startMs + 4 * HOUR_MS);
    await over();
    expect(await told(), schedule).toEqual(expected);
  }
});

test("a clock that is set hours forward and back leaves nothing out untold and fires no time twice", async () => {
  await define("every 1h;missed=all;overlap=allow");
  const a = controller("a");
  for (const hours of [1, 4]) {
    clock.advance(hours * HOUR_MS);
    await fireAll(a);
    await over();
  }
  clock.advance(-4 * HOUR_MS);
  expect(await fireAll(a)).toBe(startMs + 6 * HOUR_MS);
  clock.advance(HOUR_MS);
  expect(await fireAll(controller("b"))).toBe(startMs + 6 * HOUR_MS);
  expect(await told()).toEqual(["60 ok", "120 ok", "180 ok", "240 ok", "300 ok"]);
  clock.advance(4 * HOUR_MS);
  await fireAll(a);
  await over();
  expect((await told()).slice(-1)).toEqual(["360 ok"]);
});

test("while a run goes on the next is left out, waits or begins, as overlap says", async () => {
  for (const [overlap, during, after] of [
    ["skip", ["1 running", "2 skipped"], ["1 ok", "2 skipped"]],
    ["allow", ["1 running", "2 running"], ["1 ok", "2 ok"]],
    ["queue", ["1 running"], ["1 ok", "2 ok"]],
  ] as const) {
    name = `job${++count}`;
    clock = new TestClock(startMs);
    jobs = new JobService({ stores: engine, runtime: testRuntime(clock), objects });
    let end: () => void = () => undefined;
    outcome = new Promise((resolve) => (end = () => resolve({})));
    await define(`every 1m;overlap=${overlap}`, { timeout: 3_600 });
    const one = controller("a");
    for (let time = 0; time < 2; time++) {
      clock.advance(MINUTE_MS);
      await fireAll(one);
      await expect.poll(told, { timeout: 30_000 }).toHaveLength(Math.min(time + 1, during.length));
    }
    await expect.poll(told, { timeout: 30_000 }).toEqual(during);
    end();
    await over();
    expect(await told(), overlap).toEqual(after);
  }
});

test("a time for once is fired once; what is switched off, removed or has no schedule any more is not fired", async () => {
  const at = new Date(startMs + 5 * MINUTE_MS).toISOString();
  await define(`at ${at}`);
  const one = controller("a");
  clock.advance(5 * MINUTE_MS);
  expect(await fireAll(one)).toBeUndefined();
  await over();
  expect(await told()).toEqual(["5 ok"]);
  await define("every 1m");
  await jobs.enable(admin, name, false);
  clock.advance(HOUR_MS);
  expect(await fireAll(one)).toBeUndefined();
  await jobs.enable(admin, name, true);
  expect(await fireAll(one), "what came while it was off does not count").toBe(clock.nowMs() + MINUTE_MS);
  await jobs.edit(admin, { name, schedule: "" });
  clock.advance(HOUR_MS);
  expect(await fireAll(one)).toBeUndefined();
  await jobs.remove(admin, name);
  expect(await fireAll(one)).toBeUndefined();
  const { kv } = await engine.tenant("matrix");
  expect(await kv.get(`jobs/schedule/${name}`)).toBeUndefined();
  expect(sent).toHaveLength(1);
});

test("it runs with the present rights of the user who saved it, and says so when there is none", async () => {
  const bob = { ...admin, user: "bob" };
  users.set("bob", bob);
  await define("every 1m;missed=all", {}, bob);
  const one = controller("a");
  const minute = async () => {
    clock.advance(MINUTE_MS);
    await fireAll(one);
    await over();
  };
  await minute();
  users.set("bob", { ...bob, grants: ["jobs:read", "jobs:write"] });
  await minute();
  users.delete("bob");
  await minute();
  await jobs.merge(admin, { name, host: ["h1"] });
  await minute();
  expect(await told()).toEqual(["1 ok", "2 failed", "3 skipped", "4 ok"]);
  const found = await rows();
  expect(found.map(({ source }) => source)).toEqual(["bob", "bob", "bob", admin.user]);
  expect(found.map(({ message }) => message)).toEqual([
    "",
    expect.stringContaining("jobs:run"),
    expect.stringContaining("The user bob"),
    "",
  ]);
});

test("what cannot be run is told, and the next time is tried anew", async () => {
  await define("every 1m", { host: [], group: "none" });
  const one = controller("a");
  clock.advance(MINUTE_MS);
  await fireAll(one);
  await jobs.edit(admin, { name, host: ["h1"], group: "" });
  clock.advance(MINUTE_MS);
  await fireAll(one);
  await over();
  expect(await told()).toEqual(["1 failed", "2 ok"]);
});

/** The stores of a controller, with `look` called before each of its transactions. */
const before = (look: (txn: KvTxn) => Promise<void>): Stores => ({
  system: () => engine.system(),
  tenant: async (tenant) => {
    const store = await engine.tenant(tenant);
    const txn: typeof store.kv.txn = async (request) => {
      await look(request);
      return store.kv.txn(request);
    };
    return { ...store, kv: wrappedKv(store.kv, { txn }) };
  },
});

test("who read what is due and wakes after another one fired it fires nothing", async () => {
  await define("every 1m;overlap=allow");
  const other = controller("b");
  let slept = false;
  const late = controller(
    "a",
    before(async () => {
      if (slept) return;
      slept = true;
      await fireAll(other);
      await over();
    }),
  );
  clock.advance(MINUTE_MS);
  await late.attend();
  expect(slept).toBe(true);
  await over();
  expect(await told()).toEqual(["1 ok"]);
  expect(sent).toHaveLength(1);
});

test("a definition that changes between the look and the firing is not fired as it was", async () => {
  await define("every 1m");
  let changed = false;
  const one = controller(
    "a",
    before(async () => {
      if (changed) return;
      changed = true;
      await jobs.edit(admin, { name, host: ["h2"] });
    }),
  );
  clock.advance(MINUTE_MS);
  await one.attend();
  expect(sent).toEqual([]);
  await fireAll(one);
  await over();
  expect(sent.map(({ host }) => host)).toEqual(["h2"]);
});

test.each([0, 1, 2, 3])(
  "a controller that dies after %i of the transactions that open 100 hosts leaves them to another, and each runs once",
  async (portions) => {
    const hosts = Array.from({ length: 100 }, (_, at) => `h${at}`);
    await define("every 1m", { host: hosts, timeout: 3_600 });
    let opened = -1;
    const dying = controller(
      "a",
      before(({ then }) => {
        if (!then.some(({ key }) => key.startsWith("jobs/execution/"))) return Promise.resolve();
        opened += 1;
        return opened > portions ? Promise.reject(new AppError("internal", "it died")) : Promise.resolve();
      }),
    );
    const began = clock.nowMs();
    clock.advance(MINUTE_MS);
    await dying.attend();
    // No controller carries out the runs that it had opened, either.
    await expect.poll(() => opened > portions || sent.length === 100, { timeout: 30_000 }).toBe(true);
    await dying.runs.close();
    present.delete("a");
    const next = controller("b");
    await expect
      .poll(
        async () => {
          clock.advance(1_000);
          await next.runs.maintain("matrix");
          return (await rows()).filter(({ status }) => status === "ok").length;
        },
        { timeout: 60_000 },
      )
      .toBe(100);
    // An execution checks from time to time if hosts that were taken over have ended.
    await over(() => clock.advance(1_000));
    expect(clock.nowMs()).toBeGreaterThan(began);
    expect(new Set(sent.map(({ commandId }) => commandId)).size).toBe(100);
    expect(new Set((await rows()).map(({ runid }) => runid)).size).toBe(1);
  },
);

test("a run on an only host is on record with the write that decides it, and who dies then leaves it to another", async () => {
  await define("every 1m", { timeout: 3_600 });
  const written: (readonly string[])[] = [];
  const dying = controller(
    "a",
    before(({ then }) => {
      written.push(then.map(({ key }) => key.split("/", 2).join("/")));
      return written.length > 1 ? Promise.reject(new AppError("internal", "it died")) : Promise.resolve();
    }),
  );
  clock.advance(MINUTE_MS);
  await dying.attend();
  await expect.poll(() => written.length, { timeout: 30_000 }).toBeGreaterThan(1);
  expect([...written[0]!].sort()).toEqual(["jobs/open", "jobs/output", "jobs/schedule"]);
  await dying.runs.close();
  present.delete("a");
  await controller("b").runs.maintain("matrix");
  await over();
  expect(await told()).toEqual(["1 ok"]);
  expect(new Set(sent.map(({ commandId }) => commandId)).size).toBe(1);
});

test("what a controller has no room for is fired all the same, and begins when there is room", async () => {
  await define("every 1m;overlap=allow", { timeout: 3_600 });
  let end: () => void = () => undefined;
  outcome = new Promise((resolve) => (end = () => resolve({})));
  const one = controller("a", engine, 1);
  for (let time = 0; time < 2; time++) {
    clock.advance(MINUTE_MS);
    await fireAll(one);
  }
  await expect.poll(told, { timeout: 30_000 }).toEqual(["1 running"]);
  end();
  await over(() => clock.advance(1_000));
  expect(await told()).toEqual(["1 ok", "2 ok"]);
});

/** The stores of a controller, with `look` called before it gets the answer to a firing's transaction. */
const after = (look: () => Promise<void>): Stores => ({
  system: () => engine.system(),
  tenant: async (of) => {
    const store = await engine.tenant(of);
    const txn: typeof store.kv.txn = async (request) => {
      const answer = await store.kv.txn(request);
      if (request.then.some(({ key }) => key.startsWith("jobs/schedule/"))) await look();
      return answer;
    };
    return { ...store, kv: wrappedKv(store.kv, { txn }) };
  },
});

test("a firing whose answer is lost is not fired again", async () => {
  await define("every 1m;overlap=allow");
  let lost = 0;
  const one = controller(
    "a",
    after(() => (lost++ === 0 ? Promise.reject(new AppError("unknown_outcome", "done, not told")) : Promise.resolve())),
  );
  clock.advance(MINUTE_MS);
  await fireAll(one);
  await over();
  expect(lost).toBeGreaterThan(0);
  expect(await told()).toEqual(["1 ok"]);
});

test("a run on an only host that was written and not begun yet is not taken over by its own controller", async () => {
  await define("every 1m", { timeout: 3_600 });
  const one: Controller = controller(
    "a",
    after(() => one.runs.maintain("matrix")),
  );
  clock.advance(MINUTE_MS);
  await one.attend();
  await over();
  expect(await told()).toEqual(["1 ok"]);
  expect(sent).toHaveLength(1);
});
