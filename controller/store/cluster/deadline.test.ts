import { expect, test } from "vitest";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { Deadline } from "./deadline.ts";

const fault = (): Error => new Error("too late");

function deadlineOf(lengthMs: number): { readonly clock: TestClock; readonly deadline: Deadline } {
  const clock = new TestClock();
  return { clock, deadline: new Deadline(clock, testRuntime(clock).random, lengthMs) };
}

test.each([
  ["answers", () => Promise.resolve("an answer"), "an answer"],
  ["fails", () => Promise.reject(new Error("a failure")), "a failure"],
])("what work %s in time is what it comes to, and nothing is left to fire", async (_, begin, expected) => {
  const { clock, deadline } = deadlineOf(100);
  const outcome = await deadline.bound<string>(begin(), fault, () => undefined).catch((error: Error) => error.message);
  expect(outcome).toBe(expected);
  expect(clock.waiting).toBe(0);
});

test("work that takes longer is given up, and its end is told when it comes", async () => {
  const { clock, deadline } = deadlineOf(100);
  const { promise, resolve } = withResolver();
  let ended = false;
  const bound = deadline.bound(promise, fault, () => (ended = true));
  clock.advance(100);
  await expect(bound).rejects.toThrow("too late");
  expect(ended).toBe(false);
  resolve();
  await promise;
  expect(ended).toBe(true);
});

function withResolver(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}
