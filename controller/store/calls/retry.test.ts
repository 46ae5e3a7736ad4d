import { expect, test } from "vitest";
import { AppError, type ErrorCode } from "../../../common/errors.ts";
import { STORE_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { Retry } from "./retry.ts";

/** A clock whose waits end at once. */
const hasty: Clock = {
  nowMs: () => 0,
  monotonicMs: () => 0,
  after(_delayMs, callback) {
    queueMicrotask(callback);
    return () => undefined;
  },
};

function failing(codes: readonly ErrorCode[]): () => Promise<never> {
  let call = 0;
  return () => Promise.reject(new AppError(codes[Math.min(call++, codes.length - 1)] ?? "internal", "no"));
}

const retry = new Retry({ clock: hasty, random: seededRandom(1) });

test("a call that perhaps was done once is not told as not done, however it fails afterwards", async () => {
  await expect(retry.run(failing(["unknown_outcome", "unavailable"]))).rejects.toMatchObject({
    code: "unknown_outcome",
  });
  await expect(retry.run(failing(["unavailable"]))).rejects.toMatchObject({ code: "unavailable" });
});

test("what is no outage is told at once", async () => {
  let calls = 0;
  const refused = (): Promise<never> => (calls++, Promise.reject(new AppError("invalid", "no")));
  await expect(retry.run(refused)).rejects.toMatchObject({ code: "invalid" });
  expect(calls).toBe(1);
});

test("it is given up after so many attempts", async () => {
  let calls = 0;
  await expect(retry.run(() => (calls++, Promise.reject(new AppError("unavailable", "away"))))).rejects.toMatchObject({
    code: "unavailable",
  });
  expect(calls).toBe(STORE_ATTEMPTS_MAX);
});
