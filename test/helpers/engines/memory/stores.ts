import type { Stores, TenantStore } from "../../../../controller/store/engine.ts";
import { MemoryDatabase } from "./engine.ts";
import { TestClock } from "../../time/runtime.ts";
import { wrappedKv } from "../wrapped-kv.ts";

const PAGE_MAX_ENTRIES = 3;

/**
 * Stores in memory for the tests of an area. Tenants are created on first use. Lists have small pages, so that an area
 * that reads the first page only fails.
 */
export class MemoryStores implements Stores {
  readonly #clock = new TestClock();
  readonly #database = new MemoryDatabase(this.#clock);
  readonly #engine = this.#database.engine({ clock: this.#clock });
  readonly #tenants = new Map<string, TenantStore>();

  system(): Promise<TenantStore> {
    return this.tenant("system");
  }

  async tenant(name: string): Promise<TenantStore> {
    this.#database.create(name);
    const store = this.#tenants.get(name) ?? withSmallPages(await this.#engine.tenant(name));
    this.#tenants.set(name, store);
    return store;
  }

  keys(tenant: string, prefix: string): readonly string[] {
    return this.#database
      .tenant(tenant)
      .kv.list(prefix, {})
      .entries.map(({ key }) => key);
  }

  /** Number of contents that have a mark. */
  marked(tenant: string): number {
    return this.#database.tenant(tenant).blobs.marked;
  }

  streams(tenant: string): number {
    return this.#database.tenant(tenant).blobs.streams;
  }
}

function withSmallPages(store: TenantStore): TenantStore {
  const { kv } = store;
  const list: TenantStore["kv"]["list"] = (prefix, options = {}) =>
    kv.list(prefix, { ...options, limit: Math.min(options.limit ?? PAGE_MAX_ENTRIES, PAGE_MAX_ENTRIES) });
  return { ...store, kv: wrappedKv(kv, { list }) };
}
