import { BLOB_SWEEP_GRACE_MS, BLOB_SWEEP_INTERVAL_MS, MAINTENANCE_INTERVAL_MS } from "../../common/limits.ts";
import { closeAreas, type Area } from "../area.ts";
import type { TenantGate, TenantService } from "../areas/tenants/index.ts";
import { Maintenance } from "../maintenance.ts";
import type { Runtime } from "../runtime.ts";

interface LifetimeOptions {
  readonly areas: readonly Area[];
  readonly stores: TenantGate;
  readonly tenants: TenantService;
  readonly runtime: Runtime;
}

/**
 * Runs the work of the areas from the start of a controller to its end: recurring work, and work when a tenant is added
 * or removed.
 */
export class Lifetime {
  readonly #of: LifetimeOptions;
  readonly #recurring: Maintenance;
  readonly #sweeping: Maintenance;

  constructor(of: LifetimeOptions) {
    this.#of = of;
    const { areas, stores, tenants, runtime } = of;
    this.#recurring = new Maintenance({
      runtime,
      tenants,
      intervalMs: MAINTENANCE_INTERVAL_MS,
      maintain: (tenant) => this.#maintain(tenant),
    });
    this.#sweeping = new Maintenance({
      runtime,
      tenants,
      intervalMs: BLOB_SWEEP_INTERVAL_MS,
      maintain: (tenant) => this.#sweep(tenant),
    });
    stores.onLeave((tenant) => tenants.forget(tenant));
    for (const area of [...areas].reverse()) stores.onLeave((tenant) => area.leave?.(tenant));
  }

  /** Repairs work of a tenant that a crash interrupted, then maintains the tenant. */
  async repair(tenant: string): Promise<void> {
    for (const area of this.#of.areas) await area.repair?.(tenant);
    await this.#maintain(tenant);
  }

  /** Maintains all tenants now, to take over the work of a controller that has gone. */
  soon(): void {
    this.#recurring.soon();
  }

  /** Starts recurring work; it runs until `close`. */
  start(): void {
    const { areas, stores, runtime } = this.#of;
    stores.onEnter((tenant) => {
      this.repair(tenant).catch((error: unknown) =>
        runtime.log.warn({ err: error, tenant }, "a new tenant is maintained later"),
      );
    });
    for (const area of areas) area.start?.();
    this.#recurring.start();
    this.#sweeping.start();
  }

  /** Ends the areas in an order that lets each finish with what it needs. The ports must be closed before. */
  async close(): Promise<void> {
    const { areas } = this.#of;
    for (const area of areas) await area.stop?.();
    await this.#recurring.stop();
    await this.#sweeping.stop();
    await closeAreas(areas);
  }

  async #maintain(tenant: string): Promise<void> {
    for (const area of this.#of.areas) await area.maintain?.(tenant);
  }

  async #sweep(tenant: string): Promise<void> {
    const { blobs } = await this.#of.stores.tenant(tenant);
    await blobs.sweep(BLOB_SWEEP_GRACE_MS);
  }
}
