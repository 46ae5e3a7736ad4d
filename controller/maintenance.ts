import { wait } from "../common/time.ts";
import type { Tenants } from "./areas/tenants/index.ts";
import type { Runtime } from "./runtime.ts";

export interface MaintenanceOptions {
  readonly runtime: Runtime;
  readonly tenants: Pick<Tenants, "list">;
  readonly intervalMs: number;
  /** Idempotent, and safe while other controllers do the same. */
  readonly maintain: (tenant: string) => Promise<void>;
}

/** Recurring work for every tenant, every `intervalMs`. A failure is tried again the next time. */
export class Maintenance {
  readonly #options: MaintenanceOptions;
  readonly #stopping = new AbortController();
  #soon = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: MaintenanceOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Starts the next round now, or directly after the current one. */
  soon(): void {
    this.#soon.abort();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** A failure for one tenant, e.g. one that was just deleted, does not affect the other tenants. */
  #warn(error: unknown, tenant?: string): void {
    this.#options.runtime.log.warn({ err: error, tenant }, "maintenance is tried again later");
  }

  async #run(): Promise<void> {
    const { runtime, tenants, intervalMs, maintain } = this.#options;
    const { signal } = this.#stopping;
    for (;;) {
      await wait(runtime.clock, intervalMs, signal, this.#soon.signal);
      if (signal.aborted) return;
      this.#soon = new AbortController();
      try {
        for (const { name } of await tenants.list())
          await maintain(name).catch((error: unknown) => this.#warn(error, name));
      } catch (error) {
        this.#warn(error);
      }
    }
  }
}
