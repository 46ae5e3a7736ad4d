import { expect, test } from "vitest";
import { TRIGGER_ORDER_WAIT_MS } from "../../../common/limits.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { objectOf, type TriggerDefinition } from "../objects/index.ts";
import type { TriggerTask } from "./trigger-task.ts";
import { ChangeOrder } from "./order.ts";

test("a change waits for an earlier one at another controller, but not for ever, as that may never have been made", async () => {
  const clock = new TestClock();
  const foreign = new Map([[objectOf({ class: "/m/box", id: "a" }), clock.nowMs() - 10]]);
  const order = new ChangeOrder({
    objects: { foreignChanges: () => Promise.resolve(foreign) },
    storedTasks: {
      isEmpty: () => Promise.resolve(true),
      waitingOf: () => {
        throw new Error("nothing waits");
      },
    },
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
    clock,
  });
  const task = (id: string, timeMs: number): TriggerTask => ({
    trigger: { class: "/m/box", name: "tell" } as TriggerDefinition,
    event: { tenant: "m", class: "/m/box", id, timeMs, action: "INSERT", fields: {}, traceparent: "" },
  });
  const [behind, before, other] = [task("a", clock.nowMs()), task("a", clock.nowMs() - 10), task("b", clock.nowMs())];
  const waits = async (): Promise<readonly TriggerTask[]> => [...(await order.earlier([behind, before, other])).keys()];
  expect(await waits()).toEqual([behind]);
  clock.advance(TRIGGER_ORDER_WAIT_MS - 1);
  expect(await waits()).toEqual([behind]);
  clock.advance(1);
  expect(await waits()).toEqual([]);
});
