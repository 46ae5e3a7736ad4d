import { errorText } from "../../../common/errors.ts";
import { CHANGE_TAKEOVER_INTERVAL_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Box, Intent, Outbox } from "./outbox.ts";
import type { Teller } from "./teller.ts";

export interface TakeoverDependencies {
  readonly runtime: Runtime;
  readonly outbox: Outbox;
  readonly teller: Teller;
  /** The intent with just those events that tell of writes that were made. */
  readonly happened: (intent: Intent) => Promise<Intent>;
}

/** Tells what controllers that are gone left in their boxes. Each box is one controller's at a time, under a lease. */
export class Takeover {
  readonly #of: TakeoverDependencies;
  readonly #closing = new AbortController();
  #soon = new AbortController();
  #running: readonly Promise<void>[] = [];

  constructor(of: TakeoverDependencies) {
    this.#of = of;
  }

  /** Looks now, again when a controller goes, and every `CHANGE_TAKEOVER_INTERVAL_MS`. */
  start(): void {
    if (this.#running.length === 0) this.#running = [this.#look(), this.#listen()];
    this.#soon.abort();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#running);
  }

  async #look(): Promise<void> {
    const { runtime, outbox, teller } = this.#of;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      // Before the look: what comes during it is looked at next.
      this.#soon = new AbortController();
      teller.tellParked();
      try {
        for await (const box of outbox.orphans()) await this.#empty(box);
      } catch (error) {
        runtime.log.warn({ reason: errorText(error) }, "changes that another controller left are told later");
      }
      await wait(runtime.clock, CHANGE_TAKEOVER_INTERVAL_MS, AbortSignal.any([signal, this.#soon.signal]));
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
      const mine = intents.filter((intent) => this.#of.teller.canTell(intent));
      if (mine.length < intents.length || !(await this.#tell(mine))) isEmpty = false;
      if (this.#closing.signal.aborted || !box.lease.held()) break;
    }
    await this.#of.outbox.release(box, isEmpty && !this.#closing.signal.aborted);
  }

  /** False when it was closed before all were told. */
  async #tell(intents: readonly Intent[]): Promise<boolean> {
    const { teller, happened } = this.#of;
    const { signal } = this.#closing;
    if (signal.aborted) return false;
    teller.hold(intents);
    const told = Promise.all(intents.map(async (intent) => teller.tell(await happened(intent)))).then(() => true);
    const closed = new Promise<boolean>((resolve) =>
      signal.addEventListener("abort", () => resolve(false), { once: true }),
    );
    return Promise.race([told, closed]);
  }
}
