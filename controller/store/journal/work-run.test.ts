import { expect, test } from "vitest";
import { AppError, type ErrorCode } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { InFlightWork } from "./in-flight.ts";
import type { OpenWork, Versioned } from "./journal.ts";
import { WorkRun, type Attempt, type WorkEnd } from "./work-run.ts";

/** Runs of work over a journal in memory. The journal itself is proved in journal.test.ts. */

interface Work extends OpenWork {
  readonly at?: string;
  readonly end?: WorkEnd;
}

/** Waits end at once. */
const hasty: Clock = { ...realClock, after: (_delayMs, callback) => realClock.after(0, callback) };

interface Options extends Partial<Pick<Work, "attempt" | "end">> {
  readonly clock?: Clock;
}

function running(attempts = 3, { attempt = 0, end, clock = hasty }: Options = {}) {
  let stored: Versioned<Work> | undefined = {
    open: { id: "w", owner: "one", attempt, ...(end && { end }) },
    revision: 1,
  };
  let taken = false;
  const write = ({ open, revision }: Versioned<Work>, changes: Partial<Work>) => {
    if (taken || stored?.revision !== revision) return Promise.resolve(undefined);
    stored = { open: { ...open, ...changes }, revision: revision + 1 };
    return Promise.resolve(stored);
  };
  const inFlight = new InFlightWork(hasty);
  const journal = {
    inFlight,
    step: write,
    decide: (held: Versioned<Work>, end: WorkEnd) => write(held, { end }),
    end: () => Promise.resolve(void (stored = undefined)),
  };
  const run = new WorkRun<Work>(stored, { journal, clock, attempts, retryMs: 1_000 });
  return { run, inFlight, stored: () => stored?.open, take: () => void (taken = true) };
}

const failing = (code: ErrorCode) => () => Promise.reject(new AppError(code, "as told"));

test("work that is done, or fails for good, has its end and is no longer in the journal", async () => {
  const one = running();
  expect(await one.run.run(() => Promise.resolve({ message: "done" }))).toMatchObject({ end: { message: "done" } });
  const other = running();
  const end = { code: "denied", message: "as told" };
  expect(await other.run.run(failing("denied"))).toMatchObject({ end });
  expect([one.stored(), other.stored()]).toEqual([undefined, undefined]);
});

test("a temporary failure is repeated from the last step, and the work then pauses in the journal", async () => {
  const { run, stored } = running(3);
  const seen: Attempt[] = [];
  const open = await run.run(async (attempt) => {
    seen.push(attempt);
    await run.step({ at: `${seen.length}` });
    return failing("unavailable")();
  });
  expect(seen).toEqual([
    { isRepeated: false, isLast: false },
    { isRepeated: true, isLast: false },
    { isRepeated: true, isLast: true },
  ]);
  expect(stored()).toEqual(open);
  expect(open).toMatchObject({ at: "3" });
  expect(open).not.toHaveProperty("end");
  const taken = running(1, { attempt: 1 });
  await taken.run.run(({ isRepeated }) => Promise.resolve({ message: `${isRepeated}` }));
  expect(taken.run.open.end).toEqual({ message: "true" });
});

test("work pauses at once after an internal error and at an orderly stop", async () => {
  for (const code of ["internal", "cancelled"] as const) {
    const { run, inFlight, stored } = running();
    let attempts = 0;
    await run.run(async () => {
      attempts += 1;
      if (code === "cancelled") await inFlight.close();
      return failing(code)();
    });
    expect(attempts, code).toBe(1);
    expect(stored(), code).not.toHaveProperty("end");
  }
});

test("work that another controller took is left to it, and a fault of the program is thrown", async () => {
  const { run, take, stored } = running();
  await run.run(async () => {
    take();
    await run.step({ at: "late" });
    return { message: "" };
  });
  expect(stored()).toEqual({ id: "w", owner: "one", attempt: 0 });
  await expect(running().run.run(() => Promise.reject(new TypeError("fault")))).rejects.toThrow("fault");
});

test("work whose end is decided is not done again", async () => {
  const { run, stored } = running(1, { attempt: 1, end: { message: "decided" } });
  expect(await run.run(failing("unavailable"))).toMatchObject({ end: { message: "decided" } });
  expect(stored()).toBeUndefined();
});

test("the wait before each attempt is longer, and an orderly stop ends it", async () => {
  const waits: number[] = [];
  const noted: Clock = { ...hasty, after: (delayMs, callback) => hasty.after(waits.push(delayMs), callback) };
  await running(4, { clock: noted }).run.run(failing("unavailable"));
  expect(waits).toEqual([1_000, 2_000, 3_000]);
  let stop = (): void => undefined;
  const endless: Clock = { ...realClock, after: () => (queueMicrotask(stop), () => undefined) };
  const { run, inFlight, stored } = running(4, { clock: endless });
  stop = () => void inFlight.close();
  await run.run(failing("unavailable"));
  expect(stored()).not.toHaveProperty("end");
});
