import { errorText } from "../../../../common/errors.ts";
import { TARGET_CHANGED_HOSTS_MAX, TARGET_GATHER_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";

type Changed = Set<string> | "many";

interface Dependencies {
  readonly runtime: Pick<Runtime, "clock" | "log">;
  /** Without hosts: all. */
  readonly evaluate: (tenant: string, hosts?: readonly string[]) => Promise<void>;
}

/**
 * Gathers the hosts that this controller changed, and evaluates the policies of their tenants soon after. A failure is
 * left to the next maintenance, which evaluates all hosts.
 */
export class ChangedHosts {
  readonly #with: Dependencies;
  readonly #changed = new Map<string, Changed>();
  #running: Promise<void> | undefined;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  add(tenant: string, host: string): void {
    const known = this.#changed.get(tenant) ?? new Set();
    const hosts = known === "many" || known.size >= TARGET_CHANGED_HOSTS_MAX ? "many" : known.add(host);
    this.#changed.set(tenant, hosts);
    this.#later();
  }

  leave(tenant: string): void {
    this.#changed.delete(tenant);
  }

  /** Resolves when the evaluation in progress has ended. The hosts that still wait are left to the next maintenance. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.#running;
  }

  /** Resolves when all hosts that were added have been evaluated. For tests. */
  async settled(): Promise<void> {
    while (this.#running || this.#changed.size > 0) {
      await this.#running;
      if (this.#changed.size > 0) await this.#run();
    }
  }

  #later(): void {
    if (this.#isClosed || this.#cancel || this.#running) return;
    this.#cancel = this.#with.runtime.clock.after(TARGET_GATHER_MS, () => {
      this.#cancel = undefined;
      void this.#run();
    });
  }

  #run(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#running ??= this.#evaluateAll().finally(() => {
      this.#running = undefined;
      if (this.#changed.size > 0) this.#later();
    });
    return this.#running;
  }

  async #evaluateAll(): Promise<void> {
    const { evaluate, runtime } = this.#with;
    const taken = [...this.#changed];
    this.#changed.clear();
    for (const [tenant, hosts] of taken) {
      try {
        await evaluate(tenant, hosts === "many" ? undefined : [...hosts]);
      } catch (error) {
        runtime.log.warn({ tenant, reason: errorText(error) }, "targets are evaluated by the next maintenance");
      }
    }
  }
}
