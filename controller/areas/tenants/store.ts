import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { Tenant } from "./types.ts";

const PREFIX = "tenants/";

/** The registry of tenants in the system store. */
export class TenantStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async get(name: string): Promise<Tenant | undefined> {
    const { kv } = await this.#stores.system();
    const entry = await kv.get(PREFIX + name);
    return entry === undefined ? undefined : decodeStored<Tenant>(entry.value);
  }

  /** The tenant as registered: the given one, or the one that was there already. */
  async register(tenant: Tenant): Promise<Tenant> {
    const { kv } = await this.#stores.system();
    const written = await kv.put(PREFIX + tenant.name, encodeJson(tenant), { ifRevision: 0 });
    if (written.ok) return tenant;
    return written.current === undefined ? this.register(tenant) : decodeStored<Tenant>(written.current.value);
  }

  async list(limit: number): Promise<readonly Tenant[]> {
    const { kv } = await this.#stores.system();
    const tenants: Tenant[] = [];
    let after: string | undefined;
    do {
      const page = await kv.list(PREFIX, after === undefined ? {} : { after });
      tenants.push(...page.entries.map((entry) => decodeStored<Tenant>(entry.value)));
      after = page.next;
    } while (after !== undefined && tenants.length < limit);
    return tenants.slice(0, limit);
  }
}
