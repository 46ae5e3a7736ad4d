import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import { Agenda } from "./agenda.ts";

const clock = { nowMs: () => 0 };

test("jobs are given in the order of their times, each until it is done, whatever was added and removed between", () => {
  const random = seededRandom(7);
  const agenda = new Agenda(clock);
  const wanted = new Map<string, number>();
  for (let change = 0; change < 10_000; change++) {
    const name = `j${Math.floor(random.next() * 2_000)}`;
    if (random.next() < 0.2) {
      agenda.remove("t", name);
      wanted.delete(name);
    } else {
      const atMs = Math.floor(random.next() * 1_000_000);
      agenda.add("t", name, atMs);
      wanted.set(name, atMs);
    }
  }
  const given: number[] = [];
  for (let job = agenda.take(1_000_000); job; job = agenda.take(1_000_000)) {
    given.push(wanted.get(job.name) ?? -1);
    wanted.delete(job.name);
  }
  expect(wanted.size).toBe(0);
  expect(given).toEqual([...given].sort((a, b) => a - b));
});

test("nothing is given before its time, nor twice before it is done", () => {
  const agenda = new Agenda(clock);
  agenda.add("t", "a", 10);
  expect(agenda.take(9)).toBeUndefined();
  expect(agenda.take(10)).toMatchObject({ tenant: "t", name: "a" });
  expect(agenda.take(99)).toBeUndefined();
  agenda.done("t", "a", 20);
  expect(agenda.nextMs).toBe(20);
  agenda.take(20);
  agenda.done("t", "a", undefined);
  expect(agenda.nextMs).toBeUndefined();
});

test("what changes while it is attended to is attended to again at once; what is removed then is not", () => {
  const agenda = new Agenda({ nowMs: () => 30 });
  agenda.add("t", "a", 10);
  agenda.take(10);
  agenda.add("t", "a", 30);
  agenda.done("t", "a", 1_000);
  expect(agenda.nextMs).toBe(30);
  agenda.take(30);
  agenda.remove("t", "a");
  agenda.done("t", "a", 1_000);
  expect(agenda.nextMs).toBeUndefined();
  expect(agenda.take(2_000)).toBeUndefined();
});

test("who waits is woken by what is added", () => {
  const agenda = new Agenda(clock);
  const changed = agenda.changed();
  expect(changed.aborted).toBe(false);
  agenda.add("t", "a", 10);
  expect(changed.aborted).toBe(true);
  expect(agenda.changed().aborted).toBe(false);
});
