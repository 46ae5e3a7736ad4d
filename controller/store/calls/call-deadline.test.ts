import { expect, test } from "vitest";
import { CALL_ANSWER_RESERVE_MS } from "../../../common/limits.ts";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { CallDeadline } from "./call-deadline.ts";
import { Deadline } from "../cluster/deadline.ts";

const LENGTH_MS = 10_000;

function open() {
  const clock = new TestClock();
  const ends: string[] = [];
  const call = new CallDeadline({ clock, lengthMs: LENGTH_MS, atEnd: (parts) => ends.push(parts) });
  return { clock, ends, call, leftMs: () => call.leftMs() + CALL_ANSWER_RESERVE_MS };
}

test("what stores that answer take does not count; waits for those that do not are one time", () => {
  const { clock, ends, call, leftMs } = open();
  clock.advance(60_000);
  expect(leftMs()).toBe(LENGTH_MS);
  call.silent("etcd", clock.monotonicMs() - 4_000);
  clock.advance(1_000);
  call.answers("etcd");
  expect(leftMs()).toBe(LENGTH_MS - 5_000);
  clock.advance(60_000);
  call.silent("etcd", clock.monotonicMs());
  call.silent("Cassandra", clock.monotonicMs());
  clock.advance(2_000);
  call.answers("etcd");
  expect(leftMs()).toBe(LENGTH_MS - 7_000);
  clock.advance(2_999);
  expect(ends).toEqual([]);
  clock.advance(1);
  expect(ends).toEqual(["Cassandra"]);
  expect(call.leftMs()).toBe(0);
});

test("every store call made for the call is bounded by what is left, until the call is answered", async () => {
  const { clock, call } = open();
  const { random } = testRuntime(clock);
  const [inside, later] = await call.run(async () => {
    await Promise.resolve();
    return [new Deadline(clock, random), CallDeadline.outside(() => new Deadline(clock, random))];
  });
  const silence = inside?.silence("etcd");
  silence?.attempt();
  clock.advance(4_000);
  silence?.unanswered();
  expect(inside?.leftMs()).toBe(LENGTH_MS - 4_000 - CALL_ANSWER_RESERVE_MS);
  expect(later?.leftMs()).toBe(8_000);
  silence?.over();
  call.run(() => expect(CallDeadline.current()).toBe(call));
  call.end();
  call.run(() => expect(CallDeadline.current()).toBeUndefined());
  expect(inside?.leftMs()).toBe(8_000);
  expect(clock.waiting).toBe(0);
});

test("what is waited for longer is given up by name, a little before the end", async () => {
  const { clock, ends, call } = open();
  const waiting = call.wait("The audit trail", new Promise<void>(() => undefined));
  clock.advance(LENGTH_MS - CALL_ANSWER_RESERVE_MS);
  await expect(waiting).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("audit trail") });
  clock.advance(LENGTH_MS);
  expect(ends).toEqual([]);
  expect(clock.waiting).toBe(0);
});
