import type { Runtime } from "../../runtime.ts";
import type { Engine, Stores, TenantStore as TenantStores } from "../../store/engine.ts";
import { FollowedKeys } from "../../store/kv/follow.ts";
import type { KvStore } from "../../store/kv.ts";
import { withinTime } from "../../../common/concurrency.ts";
import { AppError, errorText } from "../../../common/errors.ts";
import { TENANT_LEAVE_STEP_MS } from "../../../common/limits.ts";
import { closable } from "./doors.ts";
import { TenantFollowers } from "./followers.ts";
import { tenantNotFound } from "./service.ts";
import { versionedOf, TENANTS_PREFIX, TenantStore, type VersionedTenant } from "./store.ts";

export interface GateOptions {
  readonly stores: Stores & Pick<Engine, "releaseTenant">;
  readonly runtime: Runtime;
  readonly controllerId: string;
}

/** The stores of a tenant, open until the tenant is left. */
interface Door {
  readonly closed: AbortController;
  readonly stores: Promise<TenantStores>;
}

/** Ends the work for a tenant on this controller and drops its cached data. Idempotent. */
export type LeaveListener = (tenant: string) => Promise<void> | void;

/**
 * Guards the stores of tenants and follows the registry. When a tenant is deleted, here or on another controller, every
 * later call on its stores is refused, also for callers that already hold them. Open work is ended, and only then the
 * deletion is acknowledged. A restored tenant, or a new one of the same name, gets new stores.
 */
export class TenantGate implements Stores {
  readonly #with: GateOptions;
  readonly #registry: TenantStore;
  readonly #followers: TenantFollowers;
  readonly #followed: FollowedKeys;
  readonly #known = new Map<string, VersionedTenant>();
  readonly #doors = new Map<string, Door>();
  readonly #leaving: LeaveListener[] = [];
  readonly #entering: ((tenant: string) => void)[] = [];
  #left: Promise<unknown> = Promise.resolve();

  private constructor(options: GateOptions, kv: KvStore) {
    this.#with = options;
    this.#registry = new TenantStore(options.stores);
    this.#followers = new TenantFollowers({ ...options, kv });
    this.#followed = new FollowedKeys({
      kv,
      runtime: options.runtime,
      prefix: TENANTS_PREFIX,
      put: (entry) => this.note(versionedOf(entry)),
      end: (key, revision) => this.#ended(key.slice(TENANTS_PREFIX.length), revision),
    });
  }

  /** Resolves when every tenant is known. */
  static async open(options: GateOptions): Promise<TenantGate> {
    const gate = new TenantGate(options, (await options.stores.system()).kv);
    await gate.#followers.join();
    await gate.#followed.start();
    return gate;
  }

  system(): Promise<TenantStores> {
    return this.#with.stores.system();
  }

  async tenant(name: string): Promise<TenantStores> {
    await this.#lookUp(name);
    const record = this.#known.get(name)?.record;
    if (record && isClosed(record)) throw tenantNotFound(name);
    const known = this.#doors.get(name);
    if (known) return known.stores;
    const closed = new AbortController();
    const check = (): void | Promise<void> => {
      if (closed.signal.aborted) throw tenantNotFound(name);
      if (this.#followers.held()) return;
      return this.#lookUp(name).then(() => {
        if (closed.signal.aborted) throw tenantNotFound(name);
      });
    };
    const stores = this.#with.stores
      .tenant(record?.store ?? name)
      .then((inner) => closable(inner, closed.signal, check));
    const door = { closed, stores };
    this.#doors.set(name, door);
    // The next caller tries again.
    stores.catch(() => this.#doors.get(name) === door && this.#doors.delete(name));
    return stores;
  }

  /** The config as this controller knows it. */
  configOf(name: string): VersionedTenant["record"]["config"] {
    return this.#known.get(name)?.record.config;
  }

  /** True if calls of the tenant are served; false as soon as this controller knows that the tenant is deleted. */
  async isOpen(name: string): Promise<boolean> {
    await this.#lookUp(name);
    return this.#known.get(name)?.record.life === undefined;
  }

  /** True if the tenant is open, and this is known without a look into the registry. */
  isKnownOpen(name: string): boolean {
    const known = this.#known.get(name);
    return known !== undefined && known.record.life === undefined && this.#followers.held();
  }

  /**
   * Opens something for a tenant. If the tenant is deleted meanwhile, what was opened is ended, and the call throws
   * `AppError("denied")`.
   */
  async whileOpen<T>(name: string, open: () => Promise<T>): Promise<T> {
    if (!(await this.isOpen(name))) throw new AppError("denied", `There is no tenant ${name} any more.`);
    const opened = await open();
    if (await this.isOpen(name)) return opened;
    for (const listener of this.#leaving) await this.#told(name, listener);
    throw new AppError("denied", `There is no tenant ${name} any more.`);
  }

  /** Takes a record that was read from or written to the registry. A record older than the known one is ignored. */
  note(noted: VersionedTenant): void {
    const { record, revision } = noted;
    const before = this.#known.get(record.name);
    if (before && before.revision >= revision) return;
    this.#known.set(record.name, noted);
    const wasOpen = before !== undefined && before.record.life === undefined;
    if (isClosed(record)) this.#leave(record.name, revision);
    else this.#acknowledge(revision);
    if (record.life === undefined && !wasOpen) for (const entered of this.#entering) entered(record.name);
  }

  /** Called for each tenant deleted from now on, in order, before the deletion is acknowledged. */
  onLeave(listener: LeaveListener): void {
    this.#leaving.push(listener);
  }

  /** Called for each tenant that is created or restored from now on. */
  onEnter(listener: (tenant: string) => void): void {
    this.#entering.push(listener);
  }

  /** True once no controller works with a registry state before `revision`; false when the signal fires first. */
  acknowledged(revision: number, signal: AbortSignal): Promise<boolean> {
    return this.#followers.acknowledged(revision, signal);
  }

  /** Resolves when the work for all tenants left so far has ended here. */
  async settled(): Promise<void> {
    await this.#left;
  }

  async close(): Promise<void> {
    await this.#followed.close();
    await this.#left;
    await this.#followers.close();
  }

  /** Reads the registry if this controller knows nothing of the tenant or may be out of date. */
  async #lookUp(name: string): Promise<void> {
    if (this.#known.has(name) && this.#followers.held()) return;
    const noted = await this.#registry.find(name);
    if (noted) this.note(noted);
  }

  #ended(name: string, revision: number): void {
    const known = this.#known.get(name);
    if (known && known.revision > revision) return;
    this.#known.delete(name);
    this.#leave(name, revision);
    if (known) this.#release(known.record);
  }

  /**
   * Closes the stores of a removed tenant without waiting for the end. Nothing calls them any more, because all calls
   * are refused since the deletion. A later tenant whose stores have the same name opens them again.
   */
  #release({ name, store = name }: VersionedTenant["record"]): void {
    this.#with.stores.releaseTenant(store).catch((error: unknown) => {
      this.#with.runtime.log.warn({ err: error, tenant: name }, "the stores of a removed tenant were not closed");
    });
  }

  #leave(name: string, revision: number): void {
    this.#doors.get(name)?.closed.abort();
    this.#doors.delete(name);
    this.#left = this.#left.then(async () => {
      for (const listener of this.#leaving) await this.#told(name, listener);
      this.#followers.acknowledge(revision);
    });
  }

  /** Acknowledges after all tenants left before. */
  #acknowledge(revision: number): void {
    this.#left = this.#left.then(() => this.#followers.acknowledge(revision));
  }

  /** Waits a limited time, so that a listener that hangs does not block this deletion or later ones. */
  async #told(tenant: string, listener: LeaveListener): Promise<void> {
    const { clock, log } = this.#with.runtime;
    try {
      const ending = Promise.resolve(listener(tenant)).then(() => true);
      if (!(await withinTime(clock, ending, TENANT_LEAVE_STEP_MS)))
        log.warn({ tenant, timeoutMs: TENANT_LEAVE_STEP_MS }, "something of a deleted tenant has not ended in time");
    } catch (error) {
      // The tenant's stores are closed to the listener anyway.
      log.warn({ tenant, reason: errorText(error) }, "something of a deleted tenant did not end in good order");
    }
  }
}

function isClosed({ life }: VersionedTenant["record"]): boolean {
  return life?.phase === "deleted" || life?.phase === "purging";
}
