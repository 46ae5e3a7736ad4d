import { expect, test } from "vitest";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import type { Stores } from "../../../store/engine.ts";
import {
  admin,
  MINUTE_MS,
  HOUR_MS,
  engine,
  clock,
  jobs,
  users,
  sent,
  name,
  startMs,
  useFirings,
  answerWith,
  nextJob,
  defineOver,
  controller,
  define,
  rows,
  told,
  fireAll,
  over,
} from "../../../../test/helpers/jobs/firing-world.ts";

useFirings();

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
  defineOver(counting);
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
    nextJob();
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
    nextJob();
    let end: () => void = () => undefined;
    answerWith(new Promise((resolve) => (end = () => resolve({}))));
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

test("what a controller has no room for is fired all the same, and begins when there is room", async () => {
  await define("every 1m;overlap=allow", { timeout: 3_600 });
  let end: () => void = () => undefined;
  answerWith(new Promise((resolve) => (end = () => resolve({}))));
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
