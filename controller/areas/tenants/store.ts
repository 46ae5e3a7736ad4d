import { AppError } from "../../../common/errors.ts";
import { TENANT_REGISTER_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
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
    for (let attempt = 1; attempt <= TENANT_REGISTER_ATTEMPTS_MAX; attempt++) {
      const written = await kv.put(PREFIX + tenant.name, encodeJson(tenant), { ifRevision: 0 });
      if (written.ok) return tenant;
      if (written.current !== undefined) return decodeStored<Tenant>(written.current.value);
    }
    throw new AppError("conflict", `Others register and remove the tenant ${tenant.name} all the time.`);
  }

  async list(limit: number): Promise<readonly Tenant[]> {
    const { kv } = await this.#stores.system();
    const tenants: Tenant[] = [];
    for await (const { value } of entriesUnder(kv, PREFIX)) {
      if (tenants.length >= limit) break;
      tenants.push(decodeStored<Tenant>(value));
    }
    return tenants;
  }
}
