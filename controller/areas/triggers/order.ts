import { TRIGGER_ORDER_OBJECTS, TRIGGER_ORDER_WAIT_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { objectOf, type ClassTriggers } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import type { StoredTasks } from "./stored-tasks.ts";
import { queueOf, type Earlier, type TriggerTask, type Named } from "./trigger-task.ts";

interface Dependencies {
  readonly objects: Pick<ClassTriggers, "foreignChanges">;
  readonly storedTasks: Pick<StoredTasks, "isEmpty" | "waitingOf">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  readonly clock: Pick<Clock, "nowMs">;
}

/** Finds earlier changes of the same object that are not finished for the same trigger. */
export class ChangeOrder {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Tasks without an earlier change are not in the result. */
  async earlier(tasks: readonly TriggerTask[]): Promise<ReadonlyMap<TriggerTask, Earlier>> {
    const found = new Map<TriggerTask, Earlier>();
    for (const tenant of new Set(tasks.map(({ event }) => event.tenant))) {
      const some = tasks.filter(({ event }) => event.tenant === tenant);
      // Read before the stored changes, because a change is stored before it is removed from the outbox of its
      // controller.
      const elsewhere = await this.#elsewhere(tenant, some);
      const kept = await this.#kept(tenant, some);
      for (const task of some) {
        const [isElsewhere, before] = [elsewhere.has(task), kept.get(task) ?? []];
        if (isElsewhere || before.length > 0) found.set(task, { isElsewhere, kept: before });
      }
    }
    return found;
  }

  async #elsewhere(tenant: string, tasks: readonly TriggerTask[]): Promise<ReadonlySet<TriggerTask>> {
    const { objects, ospaceOf, clock } = this.#with;
    const earliest = await objects.foreignChanges(systemPrincipal(tenant, await ospaceOf(tenant), ""));
    // An entry of an outbox may be a change that was never made. So it blocks a later change only until that change is
    // `TRIGGER_ORDER_WAIT_MS` old.
    const fromMs = clock.nowMs() - TRIGGER_ORDER_WAIT_MS;
    const isBehind = ({ event }: TriggerTask): boolean =>
      event.timeMs > fromMs && (earliest.get(objectOf(event)) ?? Infinity) < event.timeMs;
    return new Set(tasks.filter(isBehind));
  }

  async #kept(tenant: string, tasks: readonly TriggerTask[]): Promise<ReadonlyMap<TriggerTask, readonly Named[]>> {
    const { storedTasks } = this.#with;
    const before = new Map<TriggerTask, Named[]>();
    if (await storedTasks.isEmpty(tenant)) return before;
    const byLane = new Map<string, TriggerTask[]>();
    for (const task of tasks) byLane.set(queueOf(task), [...(byLane.get(queueOf(task)) ?? []), task]);
    const ids = [...new Set(tasks.map(({ event }) => event.id))];
    for (let from = 0; from < ids.length; from += TRIGGER_ORDER_OBJECTS)
      for await (const kept of storedTasks.waitingOf(tenant, ids.slice(from, from + TRIGGER_ORDER_OBJECTS)))
        for (const task of byLane.get(queueOf(kept)) ?? [])
          if (kept.event.timeMs < task.event.timeMs) before.set(task, [...(before.get(task) ?? []), kept]);
    return before;
  }
}
