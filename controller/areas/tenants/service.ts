import { AppError, isAppError } from "../../../common/errors.ts";
import { TENANTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Engine } from "../../store/engine.ts";
import { TenantStore } from "./store.ts";
import type { NewTenant, Tenant, Tenants } from "./types.ts";

export interface TenantDependencies {
  readonly runtime: Runtime;
  readonly engine: Pick<Engine, "system" | "tenant" | "createTenant">;
}

const NAME = /^[a-z][a-z0-9_]{0,47}$/;
const OSPACE = /^\/[\p{L}_][\p{L}\p{N}_]{0,63}$/u;

export class TenantService implements Tenants {
  readonly #dependencies: TenantDependencies;
  readonly #store: TenantStore;
  /** A name space never changes. */
  readonly #ospaces = new Map<string, string>();

  constructor(dependencies: TenantDependencies) {
    this.#dependencies = dependencies;
    this.#store = new TenantStore(dependencies.engine);
  }

  async ensureTenant(wanted: NewTenant): Promise<Tenant> {
    const { name, ospace, replicationFactor } = wanted;
    if (!NAME.test(name))
      throw new AppError(
        "invalid",
        `${name} is no tenant name: 1 to 48 lower-case letters, digits and underscores, a letter first.`,
      );
    if (!OSPACE.test(ospace))
      throw new AppError("invalid", `${ospace} is no name space: a slash and one name, such as /matrix.`);
    const known = await this.#store.get(name);
    if (known === undefined)
      await this.#dependencies.engine.createTenant(name, replicationFactor === undefined ? {} : { replicationFactor });
    const tenant = known ?? (await this.#store.register(this.#fresh(wanted)));
    if (tenant.ospace !== ospace)
      throw new AppError(
        "conflict",
        `The tenant ${name} has the name space ${tenant.ospace}, which cannot become ${ospace}.`,
      );
    return tenant;
  }

  async requireStores(): Promise<void> {
    for (const { name } of await this.list()) {
      await this.#dependencies.engine.tenant(name).catch((error: unknown) => {
        if (!isAppError(error, "not_found")) throw error;
        throw new AppError(
          "unavailable",
          `The tenant ${name} is registered, but its store is gone. Restore it from a backup.`,
          { cause: error },
        );
      });
    }
  }

  get(name: string): Promise<Tenant | undefined> {
    return NAME.test(name) ? this.#store.get(name) : Promise.resolve(undefined);
  }

  list(): Promise<readonly Tenant[]> {
    return this.#store.list(TENANTS_MAX);
  }

  async only(): Promise<Tenant | undefined> {
    const some = await this.#store.list(2);
    return some.length === 1 ? some[0] : undefined;
  }

  async ospaceOf(name: string): Promise<string> {
    const known = this.#ospaces.get(name);
    if (known !== undefined) return known;
    const tenant = await this.get(name);
    if (tenant === undefined) throw new AppError("not_found", `There is no tenant ${name}.`);
    this.#ospaces.set(name, tenant.ospace);
    return tenant.ospace;
  }

  #fresh({ name, ospace, fullname, title }: NewTenant): Tenant {
    return {
      name,
      ospace,
      fullname: fullname ?? name,
      title: title ?? fullname ?? name,
      createdMs: this.#dependencies.runtime.clock.nowMs(),
    };
  }
}
