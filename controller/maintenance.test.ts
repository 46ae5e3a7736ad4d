import { expect, it } from "vitest";
import { TestClock, testRuntime } from "../test/helpers/time/runtime.ts";
import { Maintenance } from "./maintenance.ts";

const TENANTS = {
  list: () =>
    Promise.resolve(
      ["one", "two"].map((name) => ({ name, ospace: `/${name}`, fullname: name, title: name, createdMs: 0 })),
    ),
};

it("does its work for every tenant each time the interval has passed, also after a failure, and no more once stopped", async () => {
  const clock = new TestClock();
  const done: string[] = [];
  const maintenance = new Maintenance({
    runtime: testRuntime(clock),
    tenants: TENANTS,
    intervalMs: 1_000,
    maintain(tenant) {
      done.push(tenant);
      return done.length === 1 ? Promise.reject(new Error("the store is away")) : Promise.resolve();
    },
  });
  maintenance.start();
  clock.advance(999);
  expect(done).toEqual([]);
  clock.advance(1);
  await expect.poll(() => clock.waiting).toBe(1);
  expect(done, "what fails for one keeps no other from its turn").toEqual(["one", "two"]);
  clock.advance(1_000);
  await expect.poll(() => clock.waiting).toBe(1);
  expect(done).toEqual(["one", "two", "one", "two"]);
  await maintenance.stop();
  clock.advance(10_000);
  expect(done).toHaveLength(4);
});

it("does its work at once when it is asked to, once for however many asked", async () => {
  const clock = new TestClock();
  const done: string[] = [];
  const maintenance = new Maintenance({
    runtime: testRuntime(clock),
    tenants: TENANTS,
    intervalMs: 1_000,
    maintain: (tenant) => (done.push(tenant), Promise.resolve()),
  });
  maintenance.start();
  for (let asked = 0; asked < 3; asked++) maintenance.soon();
  await expect.poll(() => done).toEqual(["one", "two"]);
  await expect.poll(() => clock.waiting).toBe(1);
  await maintenance.stop();
  expect(done).toHaveLength(2);
});
