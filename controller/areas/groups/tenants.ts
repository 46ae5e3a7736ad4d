import type { Runtime } from "../../runtime.ts";
import { CurrentDefinitions, type ToldChange } from "./current.ts";
import type { GroupStore } from "./store.ts";

/** A possible change of the definitions of one tenant. */
export type TenantChange = ToldChange & { readonly tenant: string };

interface Dependencies {
  readonly store: GroupStore;
  readonly runtime: Runtime;
}

/** The current definitions of every tenant that was asked for, and the listeners to their changes. */
export class TenantDefinitions {
  readonly #with: Dependencies;
  readonly #current = new Map<string, CurrentDefinitions>();
  readonly #listeners: ((change: TenantChange) => void)[] = [];

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  of(tenant: string): CurrentDefinitions {
    let current = this.#current.get(tenant);
    if (current === undefined) {
      const told = (change: ToldChange): void => this.#tell({ ...change, tenant });
      current = new CurrentDefinitions({ ...this.#with, tenant, told });
      this.#current.set(tenant, current);
    }
    return current;
  }

  /** Drops everything cached of the tenant, and tells the listeners to do the same. */
  refresh(tenant: string): void {
    this.of(tenant).drop();
    this.#tell({ tenant, isRefresh: true });
  }

  /** Calls the listener when definitions of a tenant may have changed, on any controller. */
  onChange(listener: (change: TenantChange) => void): void {
    this.#listeners.push(listener);
  }

  /** Drops the cached data of a tenant that is deleted. */
  async leave(tenant: string): Promise<void> {
    const current = this.#current.get(tenant);
    this.#current.delete(tenant);
    // Rights that were made of it are not used any more, also if the tenant is restored at once.
    current?.drop();
    await current?.close();
  }

  async close(): Promise<void> {
    for (const current of this.#current.values()) await current.close();
  }

  #tell(change: TenantChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
