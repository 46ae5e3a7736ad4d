import { getEventListeners } from "node:events";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeAll, expect, test } from "vitest";
import type { AppError } from "../../common/errors.ts";
import { WORKER_IDLE_MAX_MS } from "../../common/limits.ts";
import { bundle } from "../../test/helpers/programs/bundle.ts";
import { TestClock, testRuntime } from "../../test/helpers/time/runtime.ts";
import type { TestTasks } from "../../test/helpers/programs/worker-tasks.ts";
import { WorkerPool, type PoolOptions } from "./pool.ts";
import type { ShareLimits } from "./shares.ts";

const MIB = 1_024 * 1_024;
const FOR_EVER_MS = 3_600_000;
const MINE = { tenant: "mine", timeoutMs: FOR_EVER_MS };
const OTHER = { tenant: "other", timeoutMs: FOR_EVER_MS };

let file: string;
const pools: WorkerPool<TestTasks>[] = [];

beforeAll(async () => {
  const main = join(import.meta.dirname, "../../test/helpers/programs/worker-tasks.ts");
  file = await bundle(main, `workers/pool-${process.pid}.mjs`);
});

afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close(0);
});

function open(options: Partial<PoolOptions> = {}): WorkerPool<TestTasks> {
  const { log } = testRuntime();
  const pool = new WorkerPool<TestTasks>({ file, threads: 1, clock: new TestClock(), log, ...options });
  pools.push(pool);
  return pool;
}

/** Pool limits with these bounds for a tenant. */
function tenantShare(share: Partial<ShareLimits>): PoolOptions["limits"] {
  return {
    shares: [{ threads: 9, standingThreads: 0, leavesRoom: false, tasks: 99, tasksLimit: "TENANT_MAX", ...share }],
  };
}

interface HeldThread {
  release(): void;
  readonly answer: Promise<string>;
}

/** Starts a task that occupies its thread until it is released. */
async function holdThread(pool: WorkerPool<TestTasks>): Promise<HeldThread> {
  const mark = new SharedArrayBuffer(4);
  const answer = pool.run("hold", mark, MINE);
  await begun(mark);
  const state = new Int32Array(mark);
  return {
    answer,
    release() {
      Atomics.store(state, 0, 2);
      Atomics.notify(state, 0);
    },
  };
}

async function begun(mark: SharedArrayBuffer): Promise<void> {
  while (Atomics.load(new Int32Array(mark), 0) === 0) await turn();
}

function errorOf(answer: Promise<unknown>): Promise<AppError> {
  return answer.then(
    (output) => expect.fail(`It answered ${String(output)}.`),
    (error: unknown) => error as AppError,
  );
}

test("a thread that its task has spent runs no other task, and its end is no fault", async () => {
  const pool = open();
  const first = await pool.run("thread", undefined, MINE);
  expect(await pool.run("thread", undefined, { ...MINE, spendsThread: () => true })).toBe(first);
  expect(await pool.run("thread", undefined, MINE)).not.toBe(first);
  expect(pool).toMatchObject({ threads: 1, ended: 0 });
});

test("a task is run in a thread and answers", async () => {
  const pool = open();
  expect(await pool.run("add", { a: 1, b: 2 }, MINE)).toBe(3);
  expect(pool).toMatchObject({ running: 0, waiting: 0, threads: 1, ended: 0 });
});

test("names, inputs and outputs are checked by the compiler", () => {
  const pool = open();
  const calls = (): void => {
    // @ts-expect-error there is no such task
    void pool.run("subtract", { a: 1, b: 2 }, MINE);
    // @ts-expect-error a text is no number
    void pool.run("add", { a: 1, b: "2" }, MINE);
    // @ts-expect-error the answer is a number
    void (pool.run("add", { a: 1, b: 2 }, MINE) satisfies Promise<string>);
    // @ts-expect-error a function cannot be cloned
    void new WorkerPool<{ call: (input: { run: () => void }) => null }>({} as PoolOptions);
    // @ts-expect-error what has methods cannot be cloned
    void new WorkerPool<{ make: (input: string) => URL }>({} as PoolOptions);
    // @ts-expect-error nor can it when it is promised
    void new WorkerPool<{ make: (input: string) => Promise<URL> }>({} as PoolOptions);
    // @ts-expect-error a promise in the answer cannot be cloned
    void new WorkerPool<{ wait: (input: string) => { readonly all: Promise<string> } }>({} as PoolOptions);
    type Fine = (input: ReadonlyMap<string, readonly { at?: Date }[]>) => Uint8Array | undefined;
    void new WorkerPool<{ fine: Fine }>({} as PoolOptions);
  };
  expect(calls).toBeTypeOf("function");
});

test("a tenant with one task waits for one task of another, not for all", async () => {
  const pool = open();
  const order: string[] = [];
  const run = async (name: string, options: typeof MINE): Promise<void> => {
    await pool.run("add", { a: 0, b: 0 }, options);
    order.push(name);
  };
  const held = await holdThread(pool);
  const mine = Array.from({ length: 5 }, (_, at) => run(`mine ${at}`, MINE));
  const other = [run("other 0", OTHER), run("other 1", OTHER)];
  held.release();
  await Promise.all([...mine, ...other]);
  expect(order).toEqual(["mine 0", "other 0", "mine 1", "other 1", "mine 2", "mine 3", "mine 4"]);
});

test("so many tasks run at once as there are threads", async () => {
  const pool = open({ threads: 2 });
  const held = [await holdThread(pool), await holdThread(pool)];
  const third = pool.run("add", { a: 1, b: 1 }, MINE);
  expect(pool).toMatchObject({ running: 2, waiting: 1, threads: 2 });
  held[1]?.release();
  expect(await third).toBe(2);
  held[0]?.release();
  expect(await Promise.all(held.map(({ answer }) => answer))).toEqual(["released", "released"]);
});

test("a tenant has at most its share of the threads, and others get the rest", async () => {
  const pool = open({ threads: 2, limits: tenantShare({ threads: 1 }) });
  const held = await holdThread(pool);
  const second = pool.run("add", { a: 1, b: 1 }, MINE);
  expect(await pool.run("add", { a: 1, b: 2 }, OTHER)).toBe(3);
  expect(pool).toMatchObject({ running: 1, waiting: 1 });
  held.release();
  expect(await second).toBe(2);
});

test("a task that stands still leaves its thread to others, as far as the limits go", async () => {
  const pool = open({ limits: { ...tenantShare({ threads: 1, standingThreads: 1 }), standingThreads: 2 } });
  const mark = new SharedArrayBuffer(4);
  let stands = false;
  const standing = pool.run("hold", mark, { ...MINE, stands: () => stands });
  await begun(mark);
  const second = new SharedArrayBuffer(4);
  const waiting = pool.run("hold", second, { ...MINE, stands: () => stands });
  expect(pool).toMatchObject({ threads: 1, waiting: 1 });
  stands = true;
  pool.heed();
  await begun(second);
  expect(pool).toMatchObject({ threads: 2, waiting: 0 });
  const third = pool.run("add", { a: 1, b: 1 }, MINE);
  pool.heed();
  expect(pool).toMatchObject({ threads: 2, waiting: 1 });
  expect(await pool.run("add", { a: 1, b: 2 }, OTHER)).toBe(3);
  for (const held of [mark, second]) {
    Atomics.store(new Int32Array(held), 0, 2);
    Atomics.notify(new Int32Array(held), 0);
  }
  expect(await Promise.all([standing, waiting, third])).toEqual(["released", "released", 2]);
});

test("a task that never ends is ended at its deadline, and no other with it", async () => {
  const clock = new TestClock();
  const pool = open({ clock });
  const mark = new SharedArrayBuffer(8);
  const endless = errorOf(pool.run("loop", mark, { tenant: "mine", timeoutMs: 500 }));
  const next = pool.run("add", { a: 1, b: 2 }, MINE);
  await begun(mark);
  clock.advance(499);
  expect(pool.running).toBe(1);
  clock.advance(1);
  expect(await endless).toMatchObject({ code: "deadline", message: "The task loop was not done within 500 ms." });
  expect(await next).toBe(3);
  expect(pool).toMatchObject({ running: 0, threads: 1, ended: 1 });
  const stoppedAt = Atomics.load(new Int32Array(mark), 1);
  await pool.run("add", { a: 1, b: 2 }, MINE);
  expect(Atomics.load(new Int32Array(mark), 1)).toBe(stoppedAt);
});

test("a deadline counts the wait for a thread, and ends no thread while a task waits", async () => {
  const clock = new TestClock();
  const pool = open({ clock });
  const held = await holdThread(pool);
  const late = errorOf(pool.run("add", { a: 1, b: 2 }, { tenant: "mine", timeoutMs: 10 }));
  clock.advance(10);
  expect((await late).code).toBe("deadline");
  held.release();
  expect(await held.answer).toBe("released");
  expect(pool).toMatchObject({ waiting: 0, ended: 0 });
});

test("a task that exhausts the memory of its thread fails by that, and no other with it", async () => {
  const pool = open({ limits: { heapBytes: 32 * MIB } });
  const greedy = errorOf(pool.run("exhaust", undefined, MINE));
  const next = pool.run("add", { a: 1, b: 2 }, OTHER);
  expect(await greedy).toMatchObject({ code: "too_large", details: { limit: "WORKER_HEAP_MAX_BYTES" } });
  expect(await next).toBe(3);
  expect(pool.ended).toBe(1);
});

test("a task that ends its thread fails, and no other with it", async () => {
  const pool = open();
  const ending = errorOf(pool.run("exit", undefined, MINE));
  const next = pool.run("add", { a: 1, b: 2 }, MINE);
  expect(await ending).toMatchObject({ code: "internal", message: "The task exit failed: its thread ended." });
  expect(await next).toBe(3);
  expect(pool).toMatchObject({ threads: 1, ended: 1 });
});

const ENDING_LATER = ["exitLater", "failLater"] as const;

test.each(ENDING_LATER)("a thread that ends between two tasks (%s) takes none along", async (name) => {
  const pool = open();
  for (let round = 1; round <= 5; round++) {
    // The second task is sent to the thread before the end of the first one is reported.
    const answers = [pool.run(name, undefined, MINE), pool.run("add", { a: round, b: 1 }, MINE)];
    expect(await Promise.all<unknown>(answers)).toEqual(["answered", round + 1]);
    expect(pool).toMatchObject({ threads: 1, ended: round });
  }
});

const NO_FILES = [
  ["whose file is missing", join(import.meta.dirname, "missing.mjs"), 4],
  ["that cannot even be made", "not-a-path.mjs", 0],
] as const;

test.each(NO_FILES)("threads %s fail their tasks and are not tried for ever", async (_what, missing, ended) => {
  const pool = open({ file: missing });
  const answers = [errorOf(pool.run("add", { a: 1, b: 2 }, MINE)), errorOf(pool.run("add", { a: 1, b: 2 }, OTHER))];
  const unavailable = { code: "unavailable", message: "No thread began the task add." };
  expect(await Promise.all(answers)).toMatchObject([unavailable, unavailable]);
  expect(pool).toMatchObject({ waiting: 0, threads: 0, ended });
});

test("errors come back as they were thrown", async () => {
  const pool = open();
  const refusal = { code: "invalid", message: "No." };
  expect(await errorOf(pool.run("refuse", undefined, MINE))).toMatchObject({ ...refusal, details: { line: 3 } });
  expect(await errorOf(pool.run("refuseOddly", undefined, MINE))).toMatchObject({ ...refusal, details: undefined });
  const bug = await errorOf(pool.run("fail", undefined, MINE));
  expect(bug).toMatchObject({ code: "internal", message: "The task fail failed: a bug" });
  expect((bug.cause as Error).stack).toContain("TypeError: a bug");
  expect(pool.ended).toBe(0);
});

test("what cannot be sent fails its task alone", async () => {
  const pool = open();
  const input = Object.assign({ a: 1, b: 2 }, { run: () => 1 });
  const unsent = await errorOf(pool.run("add", input, MINE));
  expect([unsent.code, unsent.message]).toEqual(["internal", expect.stringContaining("cannot be sent")]);
  expect(await errorOf(pool.run("unsendable", undefined, MINE))).toMatchObject({ code: "internal" });
  expect(await pool.run("add", { a: 1, b: 2 }, MINE)).toBe(3);
  expect(pool).toMatchObject({ threads: 1, ended: 0 });
});

test("a full queue of a tenant refuses that tenant, a full queue of all everybody", async () => {
  const pool = open({ limits: { ...tenantShare({ tasks: 2 }), tasks: 3 } });
  const add = (options: typeof MINE): Promise<number> => pool.run("add", { a: 1, b: 2 }, options);
  const held = await holdThread(pool);
  const waiting = [add(MINE), add(MINE)];
  const limited = (limit: string) => ({ code: "limited", details: { limit } });
  expect(await errorOf(add(MINE))).toMatchObject(limited("TENANT_MAX"));
  waiting.push(add(OTHER));
  expect(await errorOf(add(OTHER))).toMatchObject(limited("WORKER_QUEUE_MAX_TASKS"));
  held.release();
  expect(await Promise.all(waiting)).toEqual([3, 3, 3]);
  expect(await add(MINE)).toBe(3);
});

test("a task whose signal has fired is not begun", async () => {
  const pool = open();
  const refused = await errorOf(pool.run("exit", undefined, { ...MINE, signal: AbortSignal.abort() }));
  expect(refused.code).toBe("cancelled");
  expect(pool.threads).toBe(0);
});

test("a signal takes a waiting task out of the queue, and ends no thread", async () => {
  const pool = open();
  const abort = new AbortController();
  const held = await holdThread(pool);
  const waiting = errorOf(pool.run("exit", undefined, { ...MINE, signal: abort.signal }));
  const next = pool.run("add", { a: 1, b: 2 }, MINE);
  abort.abort();
  expect((await waiting).code).toBe("cancelled");
  expect(pool.waiting).toBe(1);
  held.release();
  expect(await next).toBe(3);
  expect(pool.ended).toBe(0);
});

test("a signal ends a running task with its thread", async () => {
  const pool = open();
  const abort = new AbortController();
  const mark = new SharedArrayBuffer(8);
  const running = errorOf(pool.run("loop", mark, { ...MINE, signal: abort.signal }));
  const next = pool.run("add", { a: 1, b: 2 }, MINE);
  await begun(mark);
  abort.abort();
  expect((await running).code).toBe("cancelled");
  expect(await next).toBe(3);
  expect(pool.ended).toBe(1);
});

test("a close lets what runs finish, fails what waits and takes nothing new", async () => {
  const pool = open();
  const held = await holdThread(pool);
  const waiting = errorOf(pool.run("add", { a: 1, b: 2 }, MINE));
  const closed = pool.close(FOR_EVER_MS);
  expect((await waiting).code).toBe("unavailable");
  expect((await errorOf(pool.run("add", { a: 1, b: 2 }, MINE))).code).toBe("unavailable");
  held.release();
  expect(await held.answer).toBe("released");
  await closed;
  expect(pool).toMatchObject({ running: 0, waiting: 0, threads: 0, ended: 0 });
});

test("a close ends at its deadline what still runs", async () => {
  const clock = new TestClock();
  const pool = open({ clock });
  const mark = new SharedArrayBuffer(8);
  const endless = errorOf(pool.run("loop", mark, MINE));
  await begun(mark);
  const closed = pool.close(1_000);
  clock.advance(1_000);
  expect((await endless).code).toBe("unavailable");
  await closed;
  await pool.close(0);
  expect(pool).toMatchObject({ running: 0, threads: 0 });
});

test("a thread without a task ends after a while, and a new one begins with the next task", async () => {
  const clock = new TestClock();
  const pool = open({ clock });
  const add = (): Promise<number> => pool.run("add", { a: 1, b: 2 }, MINE);
  for (let round = 0; round < 3; round++) {
    await add();
    clock.advance(WORKER_IDLE_MAX_MS - 1);
  }
  expect(pool.threads).toBe(1);
  clock.advance(1);
  // The ending thread still occupies the only slot.
  expect(await add()).toBe(3);
  expect(pool).toMatchObject({ threads: 1, ended: 0 });
  clock.advance(WORKER_IDLE_MAX_MS);
  while (pool.threads > 0) await turn();
  expect(clock.waiting).toBe(0);
  expect(await add()).toBe(3);
});

test("a thread at a task is never idle", async () => {
  const clock = new TestClock();
  const pool = open({ clock });
  await pool.run("add", { a: 1, b: 2 }, MINE);
  const held = await holdThread(pool);
  clock.advance(WORKER_IDLE_MAX_MS);
  held.release();
  expect(await held.answer).toBe("released");
  expect(pool.ended).toBe(0);
});

test("a thread has nothing of the controller's environment", async () => {
  expect(await open().run("environment", undefined, MINE)).toEqual([]);
});

test("after ten thousand tasks of two tenants nothing is left of them", async () => {
  const clock = new TestClock();
  const pool = open({ clock, threads: 2 });
  const signals = Array.from({ length: 50 }, () => new AbortController().signal);
  const lane = async (signal: AbortSignal, first: number): Promise<void> => {
    for (let at = first; at < 10_000; at += signals.length) {
      const options = { tenant: at % 2 === 0 ? "mine" : "other", timeoutMs: 1_000, signal };
      if (at % 100 === 99) expect((await errorOf(pool.run("refuse", undefined, options))).code).toBe("invalid");
      else expect(await pool.run("add", { a: at, b: 1 }, options)).toBe(at + 1);
    }
  };
  await Promise.all(signals.map(lane));
  expect(pool).toMatchObject({ running: 0, waiting: 0, threads: 2, ended: 0 });
  // The idle timers of the threads.
  expect(clock.waiting).toBe(2);
  expect(signals.flatMap((signal) => getEventListeners(signal, "abort"))).toEqual([]);
});
