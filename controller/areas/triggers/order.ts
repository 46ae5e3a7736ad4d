import { TRIGGER_ORDER_OBJECTS, TRIGGER_ORDER_WAIT_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { objectOf, type ClassTriggers } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import type { Aside } from "./aside.ts";
import { laneOf, type Earlier, type Errand, type Named } from "./errand.ts";

interface Dependencies {
  readonly objects: Pick<ClassTriggers, "foreignChanges">;
  readonly aside: Pick<Aside, "isEmpty" | "waitingOf">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  readonly clock: Pick<Clock, "nowMs">;
}

/** Finds earlier changes of the same object that are not finished for the same trigger. */
export class ChangeOrder {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Errands without an earlier change are not in the result. */
  async earlier(errands: readonly Errand[]): Promise<ReadonlyMap<Errand, Earlier>> {
    const found = new Map<Errand, Earlier>();
    for (const tenant of new Set(errands.map(({ event }) => event.tenant))) {
      const some = errands.filter(({ event }) => event.tenant === tenant);
      // Read before the stored changes, because a change is stored before it leaves its controller's outbox.
      const elsewhere = await this.#elsewhere(tenant, some);
      const kept = await this.#kept(tenant, some);
      for (const errand of some) {
        const [isElsewhere, before] = [elsewhere.has(errand), kept.get(errand) ?? []];
        if (isElsewhere || before.length > 0) found.set(errand, { isElsewhere, kept: before });
      }
    }
    return found;
  }

  async #elsewhere(tenant: string, errands: readonly Errand[]): Promise<ReadonlySet<Errand>> {
    const { objects, ospaceOf, clock } = this.#with;
    const earliest = await objects.foreignChanges(systemPrincipal(tenant, await ospaceOf(tenant), ""));
    // An entry of an outbox may be a change that was never made, so old entries do not block.
    const fromMs = clock.nowMs() - TRIGGER_ORDER_WAIT_MS;
    const isBehind = ({ event }: Errand): boolean =>
      event.timeMs > fromMs && (earliest.get(objectOf(event)) ?? Infinity) < event.timeMs;
    return new Set(errands.filter(isBehind));
  }

  async #kept(tenant: string, errands: readonly Errand[]): Promise<ReadonlyMap<Errand, readonly Named[]>> {
    const { aside } = this.#with;
    const before = new Map<Errand, Named[]>();
    if (await aside.isEmpty(tenant)) return before;
    const byLane = new Map<string, Errand[]>();
    for (const errand of errands) byLane.set(laneOf(errand), [...(byLane.get(laneOf(errand)) ?? []), errand]);
    const ids = [...new Set(errands.map(({ event }) => event.id))];
    for (let from = 0; from < ids.length; from += TRIGGER_ORDER_OBJECTS)
      for await (const kept of aside.waitingOf(tenant, ids.slice(from, from + TRIGGER_ORDER_OBJECTS)))
        for (const errand of byLane.get(laneOf(kept)) ?? [])
          if (kept.event.timeMs < errand.event.timeMs) before.set(errand, [...(before.get(errand) ?? []), kept]);
    return before;
  }
}
