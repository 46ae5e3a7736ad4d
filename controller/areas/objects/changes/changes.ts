import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { CHANGE_EVENTS_WAITING_MAX, CHANGE_FOREIGN_EVENTS_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { TenantStore } from "../../../store/engine.ts";
import type { Retry } from "../../../store/calls/retry.ts";
import type { TenantCatalog } from "../definitions/catalog.ts";
import type { WriteDefinitions } from "../definitions/confirm.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import { triggersAfter } from "../definitions/triggers.ts";
import { covers } from "../definitions/subscriptions.ts";
import type { ChangeSubscription } from "../types.ts";
import { objectOf, storedEvent, type PublishedEvent } from "../values/events.ts";
import { committedEvents } from "./committed.ts";
import { ChangeDispatcher } from "./dispatcher.ts";
import { Outbox, type Intent } from "./outbox.ts";
import { Takeover } from "./takeover.ts";

export interface ChangesDependencies {
  readonly tenant: string;
  readonly store: TenantStore;
  readonly runtime: Runtime;
  readonly retry: Retry;
  readonly catalog: TenantCatalog;
}

/** A write and its events. */
export interface PublishedWrite {
  readonly definitions: WriteDefinitions;
  readonly traceparent: string;
  /** Triggers that led to the write. */
  readonly steps: number;
  /** Called before the write, and only if a subscription or a listener wants the events. */
  readonly events: () => readonly PublishedEvent[];
  readonly write: () => Promise<void>;
}

/**
 * Delivers every answered write to the durable subscriptions that cover it, at least once. Before a write, its events
 * are stored as intents. They are removed after all subscriptions took them. The controller that makes the write
 * dispatches it. If that controller fails, another one takes over its outbox and dispatches the events of committed
 * writes.
 */
export class Changes {
  readonly #of: ChangesDependencies;
  readonly #outbox: Outbox;
  readonly #dispatcher: ChangeDispatcher;
  readonly #takeover: Takeover;

  constructor(of: ChangesDependencies) {
    this.#of = of;
    this.#outbox = new Outbox(of);
    this.#dispatcher = new ChangeDispatcher({ ...of, outbox: this.#outbox });
    this.#takeover = new Takeover({
      ...of,
      outbox: this.#outbox,
      dispatcher: this.#dispatcher,
      committed: (intent) => this.#committed(intent),
    });
  }

  /**
   * Events that this controller has stored or taken over and not yet delivered to all subscriptions. At most
   * `CHANGE_EVENTS_WAITING_MAX` plus one batch.
   */
  get waiting(): number {
    return this.#dispatcher.waiting;
  }

  /** Delivers to the subscription from now on. Call it after the definitions have the subscription. */
  attach(subscription: ChangeSubscription): void {
    this.#dispatcher.attach(subscription);
    this.#takeover.start();
  }

  /** True if this controller delivers to the subscription. */
  isAttached(name: string): boolean {
    return this.#dispatcher.isAttached(name);
  }

  /** Stops the delivery. Call it after the definitions lost the subscription. */
  detach(name: string): void {
    this.#dispatcher.detach(name);
  }

  /**
   * Stores the intents of the events, makes the write and dispatches the events. Stores the intents again if this
   * controller lost its lease of the definitions or of an outbox meanwhile, as in a pause. If that fails, it is an
   * `AppError("unknown_outcome")`.
   */
  async publish(change: PublishedWrite): Promise<void> {
    const { snapshot } = change.definitions;
    let intents = isSubscribed(snapshot) ? await this.#intend(change, snapshot) : NO_INTENTS;
    try {
      await change.write();
    } catch (error) {
      await this.#settle(intents, isAppError(error) && error.code !== "unknown_outcome");
      throw error;
    }
    if (!change.definitions.held.isHeld() || intents.some(({ box }) => !box.lease.held()))
      intents = await this.#intendAnew(change, intents);
    for (const intent of intents) void this.#dispatcher.dispatch(intent);
  }

  /**
   * The earliest time of each object's changes in the outboxes of other controllers, by object (`objectOf`). Includes
   * outboxes of controllers that are gone. These changes are not delivered to all subscriptions yet, and some may never
   * be made. Only the first `CHANGE_FOREIGN_EVENTS_MAX` are looked at.
   */
  async foreign(): Promise<ReadonlyMap<string, number>> {
    const earliest = new Map<string, number>();
    let seen = 0;
    for await (const event of this.#outbox.foreignEvents()) {
      const object = objectOf(event);
      earliest.set(object, Math.min(event.timeMs, earliest.get(object) ?? Infinity));
      seen += 1;
      if (seen >= CHANGE_FOREIGN_EVENTS_MAX) break;
    }
    return earliest;
  }

  /** Undelivered intents stay in the outbox for the controller that takes it over. */
  async close(): Promise<void> {
    await this.#takeover.close();
    await this.#dispatcher.close();
    await this.#outbox.close(this.waiting === 0);
  }

  async #intend({ events, traceparent, steps }: PublishedWrite, snapshot: Snapshot): Promise<readonly Intent[]> {
    if (!isSubscribed(snapshot)) return NO_INTENTS;
    const subscriptions = [...snapshot.definitions.subscriptions.values()];
    const wanted = events().filter((event) => subscriptions.some((subscription) => covers(subscription, event.class)));
    if (wanted.length === 0) return NO_INTENTS;
    if (this.waiting >= CHANGE_EVENTS_WAITING_MAX) throw backlog();
    const whole = subscriptions.filter((subscription) => subscription.whole);
    const stored = wanted.map((event) => {
      const isWhole = whole.some((subscription) => covers(subscription, event.class));
      const triggers = triggersAfter(snapshot, event.class);
      const chain = { traceparent, ...(steps > 0 && { steps }) };
      return { ...storedEvent(event, isWhole), ...chain, ...(triggers.length > 0 && { triggers }) };
    });
    const intents = await this.#outbox.put(stored);
    this.#dispatcher.hold(intents);
    return intents;
  }

  /** Stores the intents again after a pause: for the current subscriptions, in an outbox that this controller holds. */
  async #intendAnew(change: PublishedWrite, before: readonly Intent[]): Promise<readonly Intent[]> {
    try {
      const intents = await this.#intend(change, (await change.definitions.resumed()).snapshot);
      for (const intent of before) this.#dispatcher.drop(intent);
      return intents;
    } catch (error) {
      for (const intent of before) void this.#dispatcher.dispatch(intent);
      throw new AppError(
        "unknown_outcome",
        "It was written, but it could not be stored who is to be told of it. Repeating it is safe.",
        { cause: error },
      );
    }
  }

  /**
   * Handles the intents after a failed write, which may be made in part. `isOver`: the write can have no further
   * effect. Intents whose writes may still take effect stay in the outbox until this controller ends.
   */
  async #settle(intents: readonly Intent[], isOver: boolean): Promise<void> {
    for (const intent of intents) {
      try {
        const made = await this.#committed(intent);
        if (isOver || made.events.length === intent.events.length) void this.#dispatcher.dispatch(made);
      } catch (error) {
        this.#of.runtime.log.warn(
          { reason: errorText(error) },
          "whether a write happened is found out by whoever takes over its intent",
        );
      }
    }
  }

  async #committed(intent: Intent): Promise<Intent> {
    const { store, catalog } = this.#of;
    return {
      ...intent,
      events: await committedEvents(intent.events, { store: store.objects, snapshot: catalog.current() }),
    };
  }
}

const NO_INTENTS: readonly Intent[] = [];

/** True if some class has a durable subscription. */
function isSubscribed({ definitions }: Snapshot): boolean {
  return definitions.subscriptions.size > 0;
}

function backlog(): AppError {
  const text = `[Exec] ${CHANGE_EVENTS_WAITING_MAX} changes wait to be taken by their subscribers: nothing was changed, try again.`;
  return new AppError("unavailable", text, { details: { limit: "CHANGE_EVENTS_WAITING_MAX" } });
}
