import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { CHANGE_EVENTS_WAITING_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { TenantStore } from "../../store/engine.ts";
import type { TenantCatalog } from "./catalog.ts";
import type { WriteDefinitions } from "./confirm.ts";
import type { WriteEvent } from "./events.ts";
import { happened } from "./happened.ts";
import { Outbox, type Intent } from "./outbox.ts";
import type { Patience } from "./patience.ts";
import type { Snapshot } from "./snapshot.ts";
import { covers } from "./subscriptions.ts";
import { Takeover } from "./takeover.ts";
import { Teller } from "./teller.ts";
import type { ChangeSubscription } from "./types.ts";

export interface ChangesDependencies {
  readonly tenant: string;
  readonly store: TenantStore;
  readonly runtime: Runtime;
  readonly patience: Patience;
  readonly catalog: TenantCatalog;
}

/** A write that is to be told of. */
export interface ToldWrite {
  readonly definitions: WriteDefinitions;
  readonly traceparent: string;
  /** Asked for only when somebody wants them, before the write. */
  readonly events: () => readonly WriteEvent[];
  readonly write: () => Promise<void>;
}

/**
 * Tells durable subscriptions of every write that was answered, at least once. Before a write that one of them covers its events are stored as
 * intents, which are removed when all were told. Who makes the write tells of it; when that controller goes, another takes over its box of
 * intents and tells of those that happened.
 */
export class Changes {
  readonly #of: ChangesDependencies;
  readonly #outbox: Outbox;
  readonly #teller: Teller;
  readonly #takeover: Takeover;

  constructor(of: ChangesDependencies) {
    this.#of = of;
    this.#outbox = new Outbox(of);
    this.#teller = new Teller({ ...of, outbox: this.#outbox });
    this.#takeover = new Takeover({
      ...of,
      outbox: this.#outbox,
      teller: this.#teller,
      happened: (intent) => this.#happened(intent),
    });
  }

  /** Events that this controller has stored or taken over, and that not everybody was told. At most `CHANGE_EVENTS_WAITING_MAX` and one batch. */
  get waiting(): number {
    return this.#teller.waiting;
  }

  /** This controller tells the subscription from now on; to be called when it is among the definitions. */
  attach(subscription: ChangeSubscription): void {
    this.#teller.attach(subscription);
    this.#takeover.start();
  }

  /** To be called when the subscription is not among the definitions any more. */
  detach(name: string): void {
    this.#teller.detach(name);
  }

  /** Makes the write, with what has to be stored before and after it so that it is told. */
  async publish(told: ToldWrite): Promise<void> {
    let intents = await this.#intend(told, told.definitions.snapshot);
    try {
      await told.write();
    } catch (error) {
      await this.#settle(intents, isAppError(error) && error.code !== "unknown_outcome");
      throw error;
    }
    if (!told.definitions.held.isHeld() || intents.some(({ box }) => !box.lease.held()))
      intents = await this.#intendAnew(told, intents);
    for (const intent of intents) void this.#teller.tell(intent);
  }

  /** What was not told is left to whoever takes over. */
  async close(): Promise<void> {
    await this.#takeover.close();
    await this.#teller.close();
    await this.#outbox.close(this.waiting === 0);
  }

  async #intend({ events, traceparent }: ToldWrite, snapshot: Snapshot): Promise<readonly Intent[]> {
    if (snapshot.definitions.subscriptions.size === 0) return [];
    const subscriptions = [...snapshot.definitions.subscriptions.values()];
    const wanted = events().filter((event) => subscriptions.some((subscription) => covers(subscription, event.class)));
    if (wanted.length === 0) return [];
    if (this.waiting >= CHANGE_EVENTS_WAITING_MAX) throw backlog();
    const intents = await this.#outbox.put(wanted.map((event) => ({ ...event, traceparent })));
    this.#teller.hold(intents);
    return intents;
  }

  /** After a pause: for the subscriptions of now, in a box that nobody took over meanwhile. */
  async #intendAnew(told: ToldWrite, before: readonly Intent[]): Promise<readonly Intent[]> {
    try {
      const intents = await this.#intend(told, (await told.definitions.resumed()).snapshot);
      for (const intent of before) this.#teller.drop(intent);
      return intents;
    } catch (error) {
      for (const intent of before) void this.#teller.tell(intent);
      throw new AppError(
        "unknown_outcome",
        "It was written, but it could not be stored who is to be told of it. Repeating it is safe.",
        { cause: error },
      );
    }
  }

  /** A write that failed may have happened in part. What may still come to pass stays in the outbox until this controller ends. */
  async #settle(intents: readonly Intent[], isOver: boolean): Promise<void> {
    for (const intent of intents) {
      try {
        const made = await this.#happened(intent);
        if (isOver || made.events.length === intent.events.length) void this.#teller.tell(made);
      } catch (error) {
        this.#of.runtime.log.warn(
          { reason: errorText(error) },
          "whether a write happened is found out by whoever takes over its intent",
        );
      }
    }
  }

  async #happened(intent: Intent): Promise<Intent> {
    const { store, patience, catalog } = this.#of;
    return {
      ...intent,
      events: await happened(intent.events, { store: store.objects, patience, snapshot: catalog.current() }),
    };
  }
}

function backlog(): AppError {
  const text = `[Exec] ${CHANGE_EVENTS_WAITING_MAX} changes wait to be taken by their subscribers: nothing was changed, try again.`;
  return new AppError("unavailable", text, { details: { limit: "CHANGE_EVENTS_WAITING_MAX" } });
}
