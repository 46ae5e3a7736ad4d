import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  TRIGGER_AGAIN_MAX_MS,
  TRIGGER_AGAIN_MIN_MS,
  TRIGGER_ATTEMPTS_MAX,
  TRIGGER_PATIENCE_MS,
  TRIGGER_RUNS_AT_ONCE,
  TRIGGER_WAITING_MAX,
} from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import type { TriggerDefinition } from "../objects/index.ts";
import type { TriggerTask } from "./trigger-task.ts";
import { TriggerQueues, type LanesDependencies } from "./trigger-queues.ts";

function task(name: string, id: string, timeMs = 1): TriggerTask {
  const trigger = { class: "/m/box", name } as TriggerDefinition;
  const event = { tenant: "m", class: "/m/box", id, timeMs, action: "INSERT", fields: {}, traceparent: "" } as const;
  return { event, trigger };
}

const nameOf = ({ trigger, event }: TriggerTask): string =>
  `${trigger.name} ${event.id}${event.timeMs === 1 ? "" : `@${event.timeMs}`}`;

/**
 * Queues whose runs end when the test says so, and a log of their actions. `earlier` finds earlier changes elsewhere.
 * `stored` resolves when changes are in the store.
 */
function queues(
  outcomes: Readonly<Record<string, () => Promise<void>>> = {},
  earlier: LanesDependencies["earlier"] = () => Promise.resolve(new Map()),
  stored: () => Promise<void> = () => Promise.resolve(),
) {
  const clock = new TestClock();
  const did: string[] = [];
  const kept = new Set<TriggerTask>();
  const note = (what: string) => async (one: TriggerTask) => {
    did.push(`${what} ${nameOf(one)}`);
    // The answer of a store arrives later than the write takes effect.
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  };
  const opened: TriggerQueues = new TriggerQueues({
    runtime: { clock },
    run: async (one) => {
      did.push(`run ${nameOf(one)}`);
      await outcomes[nameOf(one)]?.();
    },
    earlier,
    keep: async (some) => {
      await stored();
      for (const one of some) kept.add(one);
      for (const one of some) did.push(`keep ${nameOf(one)}`);
    },
    done: note("done"),
    failed: note("failed"),
    takeUp: (): Promise<void> =>
      opened.scan(async () => {
        for (const one of await opened.ready([...kept])) opened.resume(one);
      }),
  });
  return { queues: opened, clock, did };
}

function held(): { readonly until: () => Promise<void>; readonly end: () => void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => (end = resolve));
  return { until: () => over, end };
}

/** Lets all promises that wait only for their turn settle. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("changes of one object are run one after the other by their times, and keep no other object or trigger waiting", async () => {
  const slow = held();
  const { queues: all, did } = queues({ "a 1@2": slow.until });
  const first = all.take([task("a", "1", 2)]);
  await settle();
  const taken = all.take([task("a", "1", 4), task("a", "1", 3), task("a", "2"), task("b", "1", 3)]);
  await settle();
  expect(did).toEqual(["run a 1@2", "run a 2", "run b 1@3"]);
  slow.end();
  await Promise.all([first, taken]);
  expect(did).toEqual(["run a 1@2", "run a 2", "run b 1@3", "run a 1@3", "run a 1@4"]);
});

test("of one trigger TRIGGER_RUNS_AT_ONCE run at once, and those that wait to be run again are not among them", async () => {
  const slow = held();
  const fail = (): Promise<void> => Promise.reject(new AppError("unavailable", "away"));
  const ids = Array.from({ length: TRIGGER_RUNS_AT_ONCE + 3 }, (_, at) => String(at));
  const until = Object.fromEntries(ids.map((id) => [`a ${id}`, slow.until]));
  const { queues: all, did } = queues({ ...until, "a 0": fail });
  const taken = all.take(ids.map((id) => task("a", id)));
  await settle();
  expect(did).toEqual(ids.slice(0, TRIGGER_RUNS_AT_ONCE + 1).map((id) => `run a ${id}`));
  slow.end();
  const closed = all.close();
  await expect(taken).rejects.toMatchObject({ code: "unavailable" });
  await closed;
});

test("an earlier change that comes while a later one of its object waits to be run again is run first", async () => {
  let isAway = true;
  const fail = (): Promise<void> => (isAway ? Promise.reject(new AppError("unavailable", "away")) : Promise.resolve());
  const { queues: all, did, clock } = queues({ "a 1@3": fail });
  const later = all.take([task("a", "1", 3)]);
  await settle();
  const earlier = all.take([task("a", "1", 2)]);
  await settle();
  isAway = false;
  clock.advance(TRIGGER_AGAIN_MIN_MS);
  await Promise.all([earlier, later]);
  expect(did).toEqual(["run a 1@3", "run a 1@2", "run a 1@3"]);
});

test("what takes long is kept durably, and goes on; told again meanwhile, it runs once", async () => {
  const slow = held();
  const { queues: all, did, clock } = queues({ "a 1": slow.until });
  const taken = all.take([task("a", "1"), task("a", "1", 2)]);
  const again = all.take([task("a", "1")]);
  await settle();
  clock.advance(TRIGGER_PATIENCE_MS);
  await Promise.all([taken, again]);
  expect(did.filter((what) => what.startsWith("keep"))).toContain("keep a 1@2");
  slow.end();
  await settle();
  await all.close();
  expect(did.filter((what) => what === "run a 1")).toHaveLength(1);
  expect(did.slice(-3)).toEqual(["done a 1", "run a 1@2", "done a 1@2"]);
});

test.each([
  ["succeeds", 1, "done a 1"],
  ["fails", TRIGGER_ATTEMPTS_MAX, "failed a 1"],
])("what is stored at the moment when its last run %s does not stay waiting", async (outcome, runs, last) => {
  const ended = async (turns: number): Promise<string | undefined> => {
    const [slow, stored] = [held(), held()];
    let count = 0;
    const run = async (): Promise<void> => {
      if (++count === runs) await slow.until();
      if (outcome === "fails") throw new AppError("invalid", "no");
    };
    const { queues: all, clock, did } = queues({ "a 1": run }, undefined, stored.until);
    const taken = all.take([task("a", "1")]);
    do {
      await settle();
      clock.advance(TRIGGER_PATIENCE_MS);
    } while (count < runs);
    const [first, second] = turns < 0 ? [stored, slow] : [slow, stored];
    first.end();
    for (let turn = Math.abs(turns); turn > 0; turn--) await Promise.resolve();
    second.end();
    await taken;
    await settle();
    await all.close();
    return did.at(-1);
  };
  // Each of the two ends first, by each number of turns that the other needs to notice it.
  const turns = Array.from({ length: 41 }, (_, at) => at - 20);
  const ends = await Promise.all(turns.map(async (count) => [count, await ended(count)]));
  expect(ends).toEqual(turns.map((count) => [count, last]));
});

test("a change with an earlier one elsewhere is kept, and run when that is over; so is the next one of its object", async () => {
  let isElsewhere = true;
  const earlier: LanesDependencies["earlier"] = (tasks) => {
    const behind = tasks.filter((one) => isElsewhere && nameOf(one) === "a 1@2");
    return Promise.resolve(new Map(behind.map((one) => [one, { isElsewhere: true, kept: [] }])));
  };
  const { queues: all, did, clock } = queues({}, earlier);
  const taken = all.take([task("a", "1", 2), task("a", "2"), task("a", "1", 3)]);
  await taken;
  expect([...did].sort()).toEqual(["keep a 1@2", "keep a 1@3", "run a 2"]);
  isElsewhere = false;
  clock.advance(TRIGGER_AGAIN_MAX_MS);
  await settle();
  expect(did.slice(3)).toEqual(["run a 1@2", "done a 1@2", "run a 1@3", "done a 1@3"]);
  await all.close();
});

test("a change waits for a kept one before it, unless that one is under way here", async () => {
  const slow = held();
  const first = task("a", "1", 1);
  const earlier: LanesDependencies["earlier"] = (tasks) =>
    Promise.resolve(
      new Map(tasks.filter((one) => one !== first).map((one) => [one, { isElsewhere: false, kept: [first] }])),
    );
  const { queues: all, did, clock } = queues({ "a 1": slow.until }, earlier);
  const taken = all.take([task("a", "1", 2)]);
  await settle();
  await taken;
  expect(did).toEqual(["keep a 1@2"]);
  all.resume(first);
  clock.advance(TRIGGER_AGAIN_MIN_MS);
  await settle();
  expect(did).toEqual(["keep a 1@2", "run a 1"]);
  slow.end();
  await settle();
  expect(did.slice(2)).toEqual(["done a 1", "run a 1@2", "done a 1@2"]);
  await all.close();
});

test("what ended while kept changes are read is not resumed", async () => {
  const { queues: all, did } = queues();
  await all.scan(async () => {
    await all.take([task("a", "1")]);
    expect(await all.ready([task("a", "1")])).toEqual([]);
    all.resume(task("a", "1"));
  });
  await settle();
  expect(did).toEqual(["run a 1"]);
});

test("a change that failed too often is failed, and only then the next one of its object is run", async () => {
  const fail = (): Promise<void> => Promise.reject(new AppError("invalid", "no"));
  const { queues: all, did, clock } = queues({ "a 1": fail });
  const taken = all.take([task("a", "1"), task("a", "1", 2)]);
  for (let step = 0; step < 10 * TRIGGER_ATTEMPTS_MAX; step++) {
    await settle();
    clock.advance(250);
  }
  await taken;
  const runs = did.filter((what) => !/^(keep|done)/.test(what));
  const failing = Array.from({ length: TRIGGER_ATTEMPTS_MAX }, () => "run a 1");
  expect(runs).toEqual([...failing, "failed a 1", "run a 1@2"]);
});

test("failures of the platform do not count", async () => {
  let away = 20;
  const passing = (): Promise<void> =>
    away-- > 0 ? Promise.reject(new AppError("unavailable", "away")) : Promise.resolve();
  const { queues: all, did, clock } = queues({ "a 0": passing });
  const taken = all.take([task("a", "0")]);
  while (away >= 0) {
    await settle();
    clock.advance(TRIGGER_AGAIN_MAX_MS);
  }
  await taken;
  expect(did.filter((what) => what.startsWith("failed"))).toEqual([]);
});

test("a trigger with too many changes leaves the others where they are kept, and takes them up when half are over", async () => {
  const slow = held();
  const many = Array.from({ length: TRIGGER_WAITING_MAX + 1 }, (_, at) => task("a", String(at)));
  const { queues: all, did, clock } = queues(Object.fromEntries(many.map((one) => [nameOf(one), slow.until])));
  const taken = all.take(many);
  await settle();
  expect(await all.ready([task("a", "more")])).toEqual([]);
  clock.advance(TRIGGER_PATIENCE_MS);
  await taken;
  const last = `a ${TRIGGER_WAITING_MAX}`;
  expect(did).toContain(`keep ${last}`);
  expect(did).not.toContain(`run ${last}`);
  slow.end();
  for (let step = 0; step < 10; step++) {
    await settle();
    clock.advance(TRIGGER_AGAIN_MAX_MS);
  }
  expect(did).toContain(`done ${last}`);
  await all.close();
});

test("what does not run because the controller ends was not taken", async () => {
  const slow = held();
  const { queues: all } = queues({ "a 1": slow.until });
  const refused = expect(all.take([task("a", "1"), task("a", "1", 2)])).rejects.toMatchObject({ code: "unavailable" });
  await settle();
  const closed = all.close();
  slow.end();
  await closed;
  await refused;
});
