import { withinTime } from "../../../../common/concurrency.ts";
import { errorText } from "../../../../common/errors.ts";
import {
  CHANGE_DELIVERY_AGAIN_MAX_MS,
  CHANGE_DELIVERY_AGAIN_MIN_MS,
  CHANGE_DELIVERY_DEADLINE_MS,
  CHANGE_DELIVERY_EVENTS,
} from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { ChangeSubscription, ObjectChangeEvent } from "../types.ts";

export interface DeliveryBatch {
  readonly events: readonly ObjectChangeEvent[];
  readonly delivered: () => void;
}

export interface DeliveryDependencies {
  readonly subscription: ChangeSubscription;
  readonly runtime: Runtime;
  /** False when the subscription has ended. Waiting events then count as delivered. */
  readonly isWanted: () => boolean;
}

/**
 * Events for one subscription on this controller, in the order of the writes. A failed delivery is repeated and blocks
 * the events after it.
 */
export class Delivery {
  readonly #subscription: ChangeSubscription;
  readonly #runtime: Runtime;
  readonly #isWanted: () => boolean;
  readonly #closing = new AbortController();
  readonly #ending = new AbortController();
  #waiting: DeliveryBatch[] = [];
  #running: Promise<void> | undefined;

  constructor(of: DeliveryDependencies) {
    this.#subscription = of.subscription;
    this.#runtime = of.runtime;
    this.#isWanted = of.isWanted;
  }

  add(parcel: DeliveryBatch): void {
    this.#waiting.push(parcel);
    this.#running ??= this.#run();
  }

  /** Ends the delivery because the subscription has ended. Waiting events count as delivered. */
  end(): void {
    this.#ending.abort();
  }

  /** Undelivered events stay in the outbox. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    let pauseMs = CHANGE_DELIVERY_AGAIN_MIN_MS;
    while (this.#waiting.length > 0 && !this.#closing.signal.aborted) {
      const count = this.#batch();
      if (await this.#deliver(this.#waiting.slice(0, count).flatMap((parcel) => parcel.events))) {
        for (const parcel of this.#waiting.splice(0, count)) parcel.delivered();
        pauseMs = CHANGE_DELIVERY_AGAIN_MIN_MS;
      } else {
        const signal = AbortSignal.any([this.#closing.signal, this.#ending.signal]);
        await wait(this.#runtime.clock, pauseMs * (0.5 + this.#runtime.random.next() / 2), signal);
        pauseMs = Math.min(2 * pauseMs, CHANGE_DELIVERY_AGAIN_MAX_MS);
      }
    }
    this.#running = undefined;
  }

  /** Number of events to deliver in one call; at least one. */
  #batch(): number {
    const { eventsAtOnce = CHANGE_DELIVERY_EVENTS } = this.#subscription;
    let events = 0;
    let count = 0;
    for (const parcel of this.#waiting) {
      events += parcel.events.length;
      if (count > 0 && events > eventsAtOnce) break;
      count++;
    }
    return count;
  }

  async #deliver(events: readonly ObjectChangeEvent[]): Promise<boolean> {
    const { name, deliver } = this.#subscription;
    if (this.#ending.signal.aborted || !this.#isWanted()) return true;
    try {
      const done = deliver(events).then(() => true);
      if ((await withinTime(this.#runtime.clock, done, CHANGE_DELIVERY_DEADLINE_MS)) === true) return true;
      this.#runtime.log.warn(
        { subscription: name },
        "a subscriber does not take changes of objects in time; they are told again",
      );
    } catch (error) {
      this.#runtime.log.warn(
        { subscription: name, reason: errorText(error) },
        "a subscriber does not take changes of objects; they are told again",
      );
    }
    return false;
  }
}
