import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isAppError } from "../../../../common/errors.ts";
import { STORE_CALL_DEADLINE_MS, STORE_WRITE_TURN_MAX_MS } from "../../../../common/limits.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import { THREAD_TURNS } from "../../../turns/turns.ts";
import { Environment } from "./environment.ts";
import { textBytes } from "../bytes/keys.ts";
import { WriteQueue } from "./write-queue.ts";

/** A queue whose transactions run as soon as they are requested, and end as `commit` decides. */
function queueOf(commit: (transaction: number) => Promise<void> = () => Promise.resolve()) {
  const clock = new TestClock();
  const ran: string[][] = [];
  const queue = new WriteQueue(clock, async (work) => {
    // Like the library: not in the same turn as the request.
    await Promise.resolve();
    const number = ran.push([]);
    work();
    await commit(number);
  });
  const add = (name: string, lastsMs = 0): Promise<string> =>
    queue.add(() => {
      clock.advance(lastsMs);
      ran.at(-1)?.push(name);
      return name;
    });
  return { queue, add, ran };
}

test("actions that wait share a commit, in their order, until they have lasted as long as a turn may", async () => {
  const { add, ran } = queueOf();
  const half = STORE_WRITE_TURN_MAX_MS / 2;
  const all = [add("a"), add("b", half), add("c", half), add("d", 1), add("e", 10 * half), add("f")];
  expect(await Promise.all(all)).toEqual(["a", "b", "c", "d", "e", "f"]);
  expect(ran).toEqual([["a", "b", "c"], ["d", "e"], ["f"]]);
});

test("a transaction begins after the callers of the one before know their outcome", async () => {
  const seen: string[] = [];
  let second: Promise<unknown> = Promise.resolve();
  const { queue, add } = queueOf((number) => {
    if (number === 1) second = queue.add(() => seen.push("b runs"));
    return Promise.resolve();
  });
  await add("a").then(() => seen.push("a is known"));
  await second;
  expect(seen).toEqual(["a is known", "b runs"]);
});

test("what an action throws is its own; what a commit rejects with concerns the actions of that transaction", async () => {
  const failing = (number: number) => (number === 2 ? Promise.reject(new Error("no disk")) : Promise.resolve());
  const { queue, add } = queueOf(failing);
  const wrong = queue.add(() => {
    throw new Error("wrong");
  });
  const outcomes = Promise.allSettled([
    wrong,
    add("a", STORE_WRITE_TURN_MAX_MS),
    add("b", STORE_WRITE_TURN_MAX_MS),
    add("c"),
  ]);
  expect(await outcomes).toMatchObject([
    { reason: { message: "wrong" } },
    { value: "a" },
    { reason: { message: "no disk" } },
    { value: "c" },
  ]);
});

test("a transaction that is refused fails all that wait, and later ones are tried again", async () => {
  let isRefused = true;
  const queue = new WriteQueue(new TestClock(), (work) => {
    if (isRefused) return Promise.reject(new Error("closed"));
    work();
    return Promise.resolve();
  });
  const outcomes = await Promise.allSettled([queue.add(() => 1), queue.add(() => 2)]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  isRefused = false;
  expect(await queue.add(() => 3)).toBe(3);
});

test("an action that is not committed by its deadline is of unknown outcome; its commit is still announced", async () => {
  const clock = new TestClock();
  const commits: (() => void)[] = [];
  const queue = new WriteQueue(clock, (work) => {
    work();
    return new Promise<void>((resolve) => commits.push(resolve));
  });
  const announced: string[] = [];
  const ended: string[] = [];
  const add = (name: string): Promise<void> =>
    queue
      .add(
        () => name,
        () => announced.push(name),
      )
      .then(
        () => void ended.push(`${name} ok`),
        (error: unknown) => void ended.push(`${name} ${isAppError(error) ? error.code : "another error"}`),
      );
  const first = add("a");
  clock.advance(STORE_CALL_DEADLINE_MS / 2);
  const second = add("b");
  // One timer serves both; the later action has its own whole time.
  expect(clock.waiting).toBe(1);
  clock.advance(STORE_CALL_DEADLINE_MS / 2);
  await first;
  expect({ ended, announced, isIdle: queue.isIdle }).toEqual({
    ended: ["a unknown_outcome"],
    announced: [],
    isIdle: false,
  });
  clock.advance(STORE_CALL_DEADLINE_MS / 2 - 1);
  commits[0]?.();
  await new Promise((resolve) => setImmediate(resolve));
  commits[1]?.();
  await second;
  await queue.idle();
  expect(ended).toEqual(["a unknown_outcome", "b ok"]);
  expect(announced).toEqual(["a", "b"]);
  expect({ isIdle: queue.isIdle, timers: clock.waiting }).toEqual({ isIdle: true, timers: 0 });
});

test("over LMDB, others have the thread between transactions, and closing waits for all of them", async () => {
  const folder = await storeFolder("odp-writes-");
  const clock = new TestClock();
  const env = new Environment(join(folder, "lmdb"), clock);
  const turns: number[] = [];
  const writes = Array.from({ length: 4 }, (_, at) =>
    env.write(() => {
      clock.advance(STORE_WRITE_TURN_MAX_MS);
      turns.push(THREAD_TURNS.number);
      void env.tables.meta.put(textBytes(`test${at}`), textBytes("x"));
      return at;
    }),
  );
  await env.close();
  expect(await Promise.all(writes)).toEqual([0, 1, 2, 3]);
  expect(new Set(turns).size).toBe(4);
  await rm(folder, { recursive: true });
});

test("a callback that throws fails its own write, and no other one of the commit", async () => {
  const { queue } = queueOf();
  const fault = new Error("told badly");
  const outcomes = await Promise.allSettled([
    queue.add(() => 1),
    queue.add(
      () => 2,
      () => {
        throw fault;
      },
    ),
    queue.add(() => 3),
  ]);
  expect(outcomes).toEqual([
    { status: "fulfilled", value: 1 },
    { status: "rejected", reason: fault },
    { status: "fulfilled", value: 3 },
  ]);
  expect(queue.isIdle).toBe(true);
});
