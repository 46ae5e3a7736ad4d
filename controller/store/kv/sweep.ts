import { errorText } from "../../../common/errors.ts";
import { KV_SWEEP_EVERY_MS, KV_SWEEP_MAX_ENTRIES } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { KvStore } from "../kv.ts";

export interface KvSweepOptions {
  readonly kv: Pick<KvStore, "list">;
  readonly runtime: Pick<Runtime, "clock"> & Partial<Pick<Runtime, "log">>;
}

/**
 * Removes expired entries that are never read. It lists `KV_SWEEP_MAX_ENTRIES` entries every `KV_SWEEP_EVERY_MS`, page
 * by page through the whole store, then from the start again. An engine runs one sweep per open store; several
 * controllers may sweep one store.
 */
export class KvSweep {
  readonly #with: KvSweepOptions;
  #after: string | undefined;
  #cancel: () => void = () => {};
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: KvSweepOptions) {
    this.#with = options;
    this.#schedule();
  }

  /** Reads the next page; after the last one it starts again. */
  async step(): Promise<void> {
    const after = this.#after === undefined ? {} : { after: this.#after };
    this.#after = (await this.#with.kv.list("", { limit: KV_SWEEP_MAX_ENTRIES, ...after })).next;
  }

  /** Resolves when the running step has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#running;
  }

  #schedule(): void {
    if (this.#closed) return;
    const { clock, log } = this.#with.runtime;
    this.#cancel = clock.after(KV_SWEEP_EVERY_MS, () => {
      // After a failure the same page is read again.
      this.#running = this.step()
        .catch((error: unknown) => log?.debug({ reason: errorText(error) }, "expired entries could not be swept"))
        .then(() => this.#schedule());
    });
  }
}
