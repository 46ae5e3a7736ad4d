import { AppError, isAppError } from "../../../common/errors.ts";
import { TENANTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Engine, Readiness } from "../../store/engine.ts";
import { TenantStore } from "./store.ts";
import type { NewTenant, Tenant, TenantRecord, Tenants } from "./types.ts";

export interface TenantDependencies {
  readonly runtime: Runtime;
  readonly engine: Pick<Engine, "system" | "tenant" | "createTenant" | "ready">;
}

const NAME = /^[a-z][a-z0-9_]{0,47}$/;
const OSPACE = /^\/[\p{L}_][\p{L}\p{N}_]{0,63}$/u;

/** The tenants that are open for calls, and those the settings ask for. `CompanyService` manages them. */
export class TenantService implements Tenants {
  readonly #dependencies: TenantDependencies;
  readonly #store: TenantStore;
  /** The name space of a tenant never changes. */
  readonly #ospaces = new Map<string, string>();

  constructor(dependencies: TenantDependencies) {
    this.#dependencies = dependencies;
    this.#store = new TenantStore(dependencies.engine);
  }

  async ensureTenant(wanted: NewTenant): Promise<Tenant> {
    const { name, ospace, replicationFactor } = wanted;
    checkTenantName(name);
    checkOspace(ospace);
    const known = await this.#store.find(name);
    if (known === undefined)
      await this.#dependencies.engine.createTenant(name, replicationFactor === undefined ? {} : { replicationFactor });
    const { record } = known ?? (await this.#store.register(this.#fresh(wanted)));
    if (record.life !== undefined)
      throw new AppError("conflict", `The tenant ${name} is ${PHASES[record.life.phase]}.`);
    if (record.ospace !== ospace)
      throw new AppError(
        "conflict",
        `The tenant ${name} has the name space ${record.ospace}, which cannot become ${ospace}.`,
      );
    await this.#store.noteFirst(name);
    return tenantOf(record);
  }

  async requireStores(): Promise<void> {
    for await (const { name, store = name } of this.#open()) {
      await this.#dependencies.engine.tenant(store).catch((error: unknown) => {
        if (!isAppError(error, "not_found")) throw error;
        throw new AppError(
          "unavailable",
          `The tenant ${name} is registered, but its store is gone. Restore it from a backup.`,
          { cause: error },
        );
      });
    }
  }

  /** Like `Engine.ready`, with names of tenants instead of names of their stores. */
  async ready(): Promise<Readiness> {
    const { lost } = await this.#dependencies.engine.ready();
    if (lost.length === 0) return { lost };
    const names = new Map<string, string>();
    for await (const { record } of this.#store.all()) names.set(record.store ?? record.name, record.name);
    return { lost: lost.map((one) => ({ ...one, tenant: names.get(one.tenant) ?? one.tenant })) };
  }

  async get(name: string): Promise<Tenant | undefined> {
    const record = isTenantName(name) ? (await this.#store.find(name))?.record : undefined;
    return record && record.life === undefined ? tenantOf(record) : undefined;
  }

  list(): Promise<readonly Tenant[]> {
    return this.#some(TENANTS_MAX);
  }

  async only(): Promise<Tenant | undefined> {
    const some = await this.#some(2);
    return some.length === 1 ? some[0] : undefined;
  }

  async ospaceOf(name: string): Promise<string> {
    const known = this.#ospaces.get(name);
    if (known !== undefined) return known;
    const record = isTenantName(name) ? (await this.#store.find(name))?.record : undefined;
    const phase = record?.life?.phase;
    if (record === undefined || phase === "deleted" || phase === "purging") throw tenantNotFound(name);
    if (phase === undefined) this.#ospaces.set(name, record.ospace);
    return record.ospace;
  }

  /** True for the tenant whose administrators manage the others. */
  async isFirst(name: string): Promise<boolean> {
    return name === (await this.#store.first());
  }

  /** Drops the cached data of a deleted tenant. */
  forget(name: string): void {
    this.#ospaces.delete(name);
  }

  async #some(limit: number): Promise<readonly Tenant[]> {
    const tenants: Tenant[] = [];
    for await (const record of this.#open()) {
      if (tenants.length >= limit) break;
      tenants.push(tenantOf(record));
    }
    return tenants;
  }

  async *#open(): AsyncGenerator<TenantRecord> {
    for await (const { record } of this.#store.all()) if (record.life === undefined) yield record;
  }

  #fresh({ name, ospace, fullname, title }: NewTenant): TenantRecord {
    return {
      name,
      ospace,
      fullname: fullname ?? name,
      title: title ?? fullname ?? name,
      createdMs: this.#dependencies.runtime.clock.nowMs(),
    };
  }
}

/** Words for the phases in errors. */
export const PHASES = {
  making: "being made",
  deleted: "deleted, and its data is kept: restore it, or have the data removed, before",
  purging: "deleted, and its data is being removed",
} as const;

export function isTenantName(name: string): boolean {
  return NAME.test(name);
}

/** `AppError("invalid")` for a name that one of the engines cannot store. */
export function checkTenantName(name: string): void {
  if (!isTenantName(name))
    throw new AppError(
      "invalid",
      `${JSON.stringify(name.slice(0, 100))} is no tenant name: 1 to 48 lower-case letters, digits and underscores, a letter first.`,
    );
}

export function checkOspace(ospace: string): void {
  if (!OSPACE.test(ospace))
    throw new AppError(
      "invalid",
      `${JSON.stringify(ospace.slice(0, 100))} is no name space: a slash and one name, such as /matrix.`,
    );
}

export function tenantNotFound(name: string): AppError {
  return new AppError("not_found", `There is no tenant ${name.slice(0, 100)}.`);
}

function tenantOf({ life: _life, store: _store, ...tenant }: TenantRecord): Tenant {
  return tenant;
}
