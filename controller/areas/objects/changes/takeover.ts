import { errorText } from "../../../../common/errors.ts";
import { CHANGE_TAKEOVER_INTERVAL_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { ChangeDispatcher } from "./dispatcher.ts";
import type { Box, Intent, Outbox } from "./outbox.ts";

export interface TakeoverDependencies {
  readonly runtime: Runtime;
  readonly outbox: Outbox;
  readonly dispatcher: ChangeDispatcher;
  /** Returns the intent with only those events whose writes were committed. */
  readonly committed: (intent: Intent) => Promise<Intent>;
}

/** Dispatches the intents that other controllers left. One controller at a time holds an outbox, under a lease. */
export class Takeover {
  readonly #of: TakeoverDependencies;
  readonly #closing = new AbortController();
  #soon = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(of: TakeoverDependencies) {
    this.#of = of;
  }

  /** Looks for orphaned outboxes now, when a controller is gone, and every `CHANGE_TAKEOVER_INTERVAL_MS`. */
  start(): void {
    if (this.#running.length === 0) this.#running = [this.#look(), this.#listen()];
    this.#soon.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running);
  }

  async #look(): Promise<void> {
    const { runtime, outbox, dispatcher } = this.#of;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      // Comes before the search, so that an event during the search starts the next one.
      this.#soon = new AbortController();
      dispatcher.dispatchParked();
      try {
        for await (const box of outbox.orphans()) await this.#empty(box);
      } catch (error) {
        runtime.log.warn({ reason: errorText(error) }, "changes that another controller left are told later");
      }
      await wait(runtime.clock, CHANGE_TAKEOVER_INTERVAL_MS, signal, this.#soon.signal);
    }
  }

  async #listen(): Promise<void> {
    const { runtime, outbox } = this.#of;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        await outbox.watch(signal, () => this.#soon.abort());
      } catch (error) {
        runtime.log.debug({ reason: errorText(error) }, "boxes of changes are watched anew");
        await wait(runtime.clock, CHANGE_TAKEOVER_INTERVAL_MS, signal);
      }
    }
  }

  async #empty(box: Box): Promise<void> {
    let isEmpty = true;
    for await (const intents of this.#of.outbox.intents(box)) {
      const mine = intents.filter((intent) => this.#of.dispatcher.canDispatch(intent));
      if (mine.length < intents.length || !(await this.#dispatch(mine))) isEmpty = false;
      if (this.#closing.signal.aborted || !box.lease.held()) break;
    }
    await this.#of.outbox.release(box, isEmpty && !this.#closing.signal.aborted);
  }

  /** False when it was closed before all were dispatched. */
  async #dispatch(intents: readonly Intent[]): Promise<boolean> {
    const { dispatcher, committed } = this.#of;
    const { signal } = this.#closing;
    if (signal.aborted) return false;
    dispatcher.hold(intents);
    const dispatched = Promise.all(intents.map(async (intent) => dispatcher.dispatch(await committed(intent)))).then(
      () => true,
    );
    let close = (): void => undefined;
    const closed = new Promise<boolean>((resolve) => (close = () => resolve(false)));
    signal.addEventListener("abort", close, { once: true });
    try {
      return await Promise.race([dispatched, closed]);
    } finally {
      signal.removeEventListener("abort", close);
    }
  }
}
