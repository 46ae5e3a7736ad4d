import { AppError } from "../../../common/errors.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { classAccess, requirePermission, type Principal } from "../permissions/index.ts";
import { permitted } from "./definitions/permitted.ts";
import type { Snapshot } from "./definitions/snapshot.ts";
import type { LoadedClass } from "./definitions/views.ts";
import { openTenantObjects, type TenantObjects } from "./tenant.ts";
import type { SystemClass } from "./definitions/system-class.ts";
import type { EndingJournal } from "./writing/edges/endings.ts";

/** Everything that a read of one principal needs. */
export interface Reading {
  readonly tenant: TenantObjects;
  readonly snapshot: Snapshot;
  readonly readable: (view: LoadedClass) => boolean;
}

interface OpenTenantsOptions {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly endings: EndingJournal;
}

/** The tenants whose objects are in use on this controller. A tenant is opened when it is first used. */
export class OpenTenants {
  readonly #options: OpenTenantsOptions;
  readonly #systemClasses = new Map<string, SystemClass>();
  readonly #tenants = new Map<string, Promise<TenantObjects>>();
  readonly #opened = new Map<string, TenantObjects>();
  #closed = false;

  constructor(options: OpenTenantsOptions) {
    this.#options = options;
  }

  registerSystemClass(definition: SystemClass): void {
    if (this.#tenants.size > 0)
      throw new Error(`The system class ${definition.path} is registered after a tenant was opened.`);
    if (this.#systemClasses.has(definition.path))
      throw new Error(`The system class ${definition.path} is registered twice.`);
    this.#systemClasses.set(definition.path, permitted(definition));
  }

  get changesWaiting(): number {
    return [...this.#opened.values()].reduce((waiting, { changes }) => waiting + changes.waiting, 0);
  }

  async reading(principal: Principal): Promise<Reading> {
    const now = this.readingNow(principal);
    if (now) return now;
    const tenant = await this.of(principal);
    const { snapshot } = await tenant.catalog.resumed();
    return readingOf(principal, tenant, snapshot);
  }

  /** `undefined` while the tenant is opened or its definitions are read again: then `reading` waits. */
  readingNow(principal: Principal): Reading | undefined {
    const tenant = this.opened(principal);
    const held = tenant?.catalog.now();
    return tenant && held && readingOf(principal, tenant, held.snapshot);
  }

  /** `undefined` if the tenant is not open yet. */
  opened({ tenant }: Principal): TenantObjects | undefined {
    return this.#closed ? undefined : this.#opened.get(tenant);
  }

  /** Opens the tenant if necessary. */
  of(principal: Principal): Promise<TenantObjects> {
    if (this.#closed) return Promise.reject(new AppError("unavailable", "The object database is closed."));
    const known = this.#tenants.get(principal.tenant);
    if (known !== undefined) return known;
    const opening = this.#open(principal);
    this.#tenants.set(principal.tenant, opening);
    // The caller gets the error, and the next call tries again.
    opening.catch(() => this.#tenants.get(principal.tenant) === opening && this.#tenants.delete(principal.tenant));
    return opening;
  }

  /** For a change of definitions. */
  async defining(principal: Principal): Promise<TenantObjects> {
    requirePermission(principal, "objects:write");
    const tenant = await this.of(principal);
    await tenant.catalog.resumed();
    return tenant;
  }

  async leave(tenant: string): Promise<void> {
    const opening = this.#tenants.get(tenant);
    if (!opening) return;
    this.#tenants.delete(tenant);
    const opened = await opening.catch(() => undefined);
    if (!opened) return;
    if (this.#opened.get(tenant) === opened) this.#opened.delete(tenant);
    await closeTenant(opened);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const opened = await Promise.allSettled(this.#tenants.values());
    this.#tenants.clear();
    await Promise.all(opened.flatMap((tenant) => (tenant.status === "fulfilled" ? [closeTenant(tenant.value)] : [])));
  }

  async #open(principal: Principal): Promise<TenantObjects> {
    const { stores, runtime, endings } = this.#options;
    const store = await stores.tenant(principal.tenant);
    const systemClasses = [...this.#systemClasses.values()];
    const { tenant, ospace } = principal;
    const options = { tenant, store, runtime, ospace, systemClasses, endings };
    const opened = await openTenantObjects(options);
    this.#opened.set(tenant, opened);
    return opened;
  }
}

async function closeTenant({ indexer, changes, catalog }: TenantObjects): Promise<void> {
  const indexed = indexer.close();
  await changes.close();
  // The indexer may be waiting for the catalog, so the catalog is closed before the indexer is awaited.
  await catalog.close();
  await indexed;
}

function readingOf(principal: Principal, tenant: TenantObjects, snapshot: Snapshot): Reading {
  return { tenant, snapshot, readable: (view) => isReadable(principal, view) };
}

export function isReadable(principal: Principal, view: LoadedClass): boolean {
  return classAccess(principal, view).readable;
}
