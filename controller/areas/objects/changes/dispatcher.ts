import { AppError, errorText } from "../../../../common/errors.ts";
import { CHANGE_BATCH_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { TenantCatalog } from "../definitions/catalog.ts";
import type { SubscriptionDefinition } from "../definitions/definition.ts";
import { covers } from "../definitions/subscriptions.ts";
import type { ChangeSubscription } from "../types.ts";
import { Delivery } from "./delivery.ts";
import type { Intent, Outbox } from "./outbox.ts";

export interface DispatcherDependencies {
  readonly tenant: string;
  readonly runtime: Runtime;
  readonly catalog: TenantCatalog;
  readonly outbox: Outbox;
}

/**
 * Delivers the intents of the outbox to the subscriptions attached to this controller, and removes those that all
 * subscriptions took.
 */
export class ChangeDispatcher {
  readonly #of: DispatcherDependencies;
  readonly #deliveries = new Map<string, Delivery>();
  /** Intents with subscriptions that are not attached here yet. */
  #parked: Intent[] = [];
  #done: Intent[] = [];
  #removing: Promise<void> | undefined;
  #waiting = 0;

  constructor(of: DispatcherDependencies) {
    this.#of = of;
  }

  /** Stored events that at least one subscription has not taken. */
  get waiting(): number {
    return this.#waiting;
  }

  attach(subscription: ChangeSubscription): void {
    const { name } = subscription;
    if (this.#deliveries.has(name))
      throw new AppError("conflict", `[Valid] The subscription ${name} is attached to this controller already.`);
    const { runtime, catalog } = this.#of;
    const isWanted = (): boolean => catalog.current().definitions.subscriptions.has(name);
    this.#deliveries.set(name, new Delivery({ subscription, runtime, isWanted }));
    this.dispatchParked();
  }

  isAttached(name: string): boolean {
    return this.#deliveries.has(name);
  }

  /** Call when the subscription has ended. Its undelivered events then count as delivered. */
  detach(name: string): void {
    this.#deliveries.get(name)?.end();
    this.#deliveries.delete(name);
    this.dispatchParked();
  }

  /** Dispatches parked intents whose subscriptions are attached by now, or have ended. */
  dispatchParked(): void {
    const parked = this.#parked;
    this.#parked = [];
    for (const intent of parked) void this.dispatch(intent);
  }

  /** Call for each intent that is stored or taken over, before `dispatch` and `drop`. */
  hold(intents: readonly Intent[]): void {
    for (const intent of intents) this.#waiting += intent.size;
  }

  /** True if all subscriptions of the intent are attached here. */
  canDispatch(intent: Intent): boolean {
    return this.#addressees(intent).every(({ name }) => this.#deliveries.has(name));
  }

  /**
   * Resolves when all subscriptions took the intent, never if one of them does not. If a subscription is not attached
   * here yet, it parks the intent and resolves at once.
   */
  async dispatch(intent: Intent): Promise<void> {
    if (!this.canDispatch(intent)) return void this.#parked.push(intent);
    await Promise.all(this.#addressees(intent).map((subscription) => this.#send(subscription, intent)));
    this.drop(intent);
  }

  /** Counts the intent as delivered and removes it. */
  drop(intent: Intent): void {
    this.#waiting -= intent.size;
    this.#done.push(intent);
    this.#removing ??= this.#remove();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#deliveries.values()].map((delivery) => delivery.close()));
    await this.#removing;
  }

  #addressees(intent: Intent): SubscriptionDefinition[] {
    const { subscriptions } = this.#of.catalog.current().definitions;
    return [...subscriptions.values()].filter((subscription) =>
      intent.events.some((event) => covers(subscription, event.class)),
    );
  }

  #send(subscription: SubscriptionDefinition, intent: Intent): Promise<void> {
    const { tenant } = this.#of;
    const events = intent.events
      .filter((event) => covers(subscription, event.class))
      .map((event) => ({ ...event, tenant }));
    return new Promise((delivered) => {
      this.#deliveries.get(subscription.name)?.add({ events, delivered });
    });
  }

  async #remove(): Promise<void> {
    while (this.#done.length > 0) {
      const batch = this.#done.splice(0, CHANGE_BATCH_MAX);
      try {
        await this.#of.outbox.remove(batch);
      } catch (error) {
        this.#of.runtime.log.warn(
          { reason: errorText(error) },
          "changes of objects that were told stay behind, and may be told again",
        );
      }
    }
    this.#removing = undefined;
  }
}
