import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { TRIGGER_ATTEMPTS_MAX, TRIGGER_PATIENCE_MS, TRIGGER_WAITING_MAX } from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/runtime.ts";
import type { TriggerDefinition } from "../objects/index.ts";
import { Lanes, type Errand } from "./lanes.ts";

function errand(name: string, id: string): Errand {
  const trigger = { class: "/m/box", name } as TriggerDefinition;
  const event = { tenant: "m", class: "/m/box", id, timeMs: 1, action: "INSERT", fields: {}, traceparent: "" } as const;
  return { event, trigger };
}

const nameOf = ({ trigger, event }: Errand): string => `${trigger.name} ${event.id}`;

/** Lanes whose runs end when they are told to, and what they did. */
function lanes(outcomes: Readonly<Record<string, () => Promise<void>>> = {}) {
  const clock = new TestClock();
  const did: string[] = [];
  const note = (what: string) => (one: Errand) => Promise.resolve(void did.push(`${what} ${nameOf(one)}`));
  const opened = new Lanes({
    runtime: { clock },
    run: async (one) => {
      did.push(`run ${nameOf(one)}`);
      await outcomes[nameOf(one)]?.();
    },
    keep: (one, isMine) => note(isMine ? "keep" : "leave")(one),
    done: note("done"),
    failed: note("failed"),
  });
  return { lanes: opened, clock, did };
}

function held(): { readonly until: () => Promise<void>; readonly end: () => void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => (end = resolve));
  return { until: () => over, end };
}

/** Lets everything that waits for nothing but its turn go on. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a trigger takes one change after the other, and keeps no other trigger waiting", async () => {
  const slow = held();
  const { lanes: all, did } = lanes({ "a 1": slow.until });
  const taken = all.take([errand("a", "1"), errand("a", "2"), errand("b", "1"), errand("b", "2")]);
  await settle();
  expect(did).toEqual(["run a 1", "run b 1", "run b 2"]);
  slow.end();
  await taken;
  expect(did).toEqual(["run a 1", "run b 1", "run b 2", "run a 2"]);
});

test("what takes long is kept durably, and goes on; told again meanwhile, it runs once", async () => {
  const slow = held();
  const { lanes: all, did, clock } = lanes({ "a 1": slow.until });
  const taken = all.take([errand("a", "1"), errand("a", "2")]);
  const again = all.take([errand("a", "1")]);
  await settle();
  clock.advance(TRIGGER_PATIENCE_MS);
  await Promise.all([taken, again]);
  expect(did.filter((what) => what.startsWith("keep"))).toContain("keep a 2");
  slow.end();
  await all.close();
  expect(did.filter((what) => what === "run a 1")).toHaveLength(1);
  expect(did).toContain("done a 1");
});

test("a change that failed too often is failed, and the next one is run", async () => {
  const fail = (): Promise<void> => Promise.reject(new AppError("invalid", "no"));
  const { lanes: all, did, clock } = lanes({ "a 1": fail });
  const taken = all.take([errand("a", "1"), errand("a", "2")]);
  for (let step = 0; step < 10 * TRIGGER_ATTEMPTS_MAX; step++) {
    await settle();
    clock.advance(250);
  }
  await taken;
  expect(did.filter((what) => what === "run a 1")).toHaveLength(TRIGGER_ATTEMPTS_MAX);
  expect(did).toContain("failed a 1");
  expect(did).toContain("run a 2");
});

test("failures of the platform do not count; a trigger with too many changes leaves them where they are kept", async () => {
  let away = 20;
  const passing = (): Promise<void> =>
    away-- > 0 ? Promise.reject(new AppError("unavailable", "away")) : Promise.resolve();
  const { lanes: all, did, clock } = lanes({ "a 0": passing });
  const many = Array.from({ length: TRIGGER_WAITING_MAX + 1 }, (_, at) => errand("a", String(at)));
  const taken = all.take(many);
  expect(all.canResume(errand("a", "more"))).toBe(false);
  while (away > 0) {
    await settle();
    clock.advance(2_000);
  }
  await taken;
  await settle();
  expect(did).toContain(`leave a ${TRIGGER_WAITING_MAX}`);
  expect(did.filter((what) => what.startsWith("failed"))).toEqual([]);
  expect(all.canResume(errand("a", "more"))).toBe(true);
});

test("what does not run because the controller ends was not taken", async () => {
  const slow = held();
  const { lanes: all } = lanes({ "a 1": slow.until });
  const taken = all.take([errand("a", "1"), errand("a", "2")]);
  await settle();
  const closed = all.close();
  slow.end();
  await closed;
  await expect(taken).rejects.toMatchObject({ code: "unavailable" });
});
