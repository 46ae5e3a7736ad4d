import { isAppError } from "../../../common/errors.ts";
import { KV_TXN_MAX_OPERATIONS, MAINTENANCE_INTERVAL_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Engine } from "../../store/engine.ts";
import { txnOnce } from "../../store/once.ts";
import type { TenantGate } from "./gate.ts";
import { imageKeys, TENANTS_PREFIX, TenantStore, type VersionedTenant } from "./store.ts";

/** Keys in the system's KvStore that an area stores for a tenant. */
type KeysOfTenant = (tenant: string) => AsyncIterable<string>;

export interface RemovalDependencies {
  readonly engine: Pick<Engine, "system" | "dropTenant">;
  readonly runtime: Runtime;
  readonly gate: TenantGate;
  readonly controllers: { readonly own: string; has(id: string): boolean };
  /** The keys that areas store there. */
  readonly keysOf: () => readonly KeysOfTenant[];
}

/**
 * Removes the data of deleted tenants whose grace period is over. Each step is stored or can be repeated: after a crash
 * at any point the next maintenance of any controller continues. Store names are never used again, and keys of the
 * system are removed only while the registry still says that this tenant is being removed. So a late controller cannot
 * harm a new tenant of the same name.
 */
export class TenantRemoval {
  readonly #with: RemovalDependencies;
  readonly #store: TenantStore;
  readonly #stopping = new AbortController();
  #soon = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(dependencies: RemovalDependencies) {
    this.#with = dependencies;
    this.#store = new TenantStore(dependencies.engine);
  }

  /** Starts to check for due tenants every `MAINTENANCE_INTERVAL_MS`, until `stop`. */
  start(): void {
    this.#running = this.#recur();
  }

  /** Checks again now, or right after the current run. */
  soon(): void {
    this.#soon.abort();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #recur(): Promise<void> {
    const { clock, log } = this.#with.runtime;
    const { signal } = this.#stopping;
    for (;;) {
      await wait(clock, MAINTENANCE_INTERVAL_MS, signal, this.#soon.signal);
      if (signal.aborted) return;
      this.#soon = new AbortController();
      await this.run(signal).catch((error: unknown) =>
        log.warn({ err: error }, "deleted tenants are looked for later"),
      );
    }
  }

  /** Ends when all due tenants are handled or the signal fires. Failures are retried in the next run. */
  async run(signal: AbortSignal): Promise<void> {
    for await (const noted of this.#store.all()) {
      if (signal.aborted) return;
      if (this.#isDue(noted)) await this.#purge(noted).catch((error: unknown) => this.#warn(noted, error));
    }
  }

  #isDue({ record: { life } }: VersionedTenant): boolean {
    const { controllers, runtime } = this.#with;
    if (life?.phase === "deleted") return life.purgeAtMs <= runtime.clock.nowMs();
    return life?.phase === "purging" && (life.owner === controllers.own || !controllers.has(life.owner));
  }

  async #purge(found: VersionedTenant): Promise<void> {
    const { engine, gate, controllers } = this.#with;
    const { name } = found.record;
    const noted = await this.#store.replace(found.revision, {
      ...found.record,
      life: { phase: "purging", owner: controllers.own },
    });
    // It was restored, or another controller was first.
    if (noted === undefined) return;
    gate.note(noted);
    await gate.settled();
    await engine.dropTenant(noted.record.store ?? name);
    for (const keysOf of this.#with.keysOf()) await this.#removeKeys(noted, keysOf(name));
    await this.#removeKeys(noted, imageKeys(name));
    await this.#store.remove(noted);
  }

  /** Removes keys only while the registry has the record `noted`. */
  async #removeKeys(noted: VersionedTenant, keys: AsyncIterable<string> | Iterable<string>): Promise<void> {
    const { kv } = await this.#with.engine.system();
    const condition = { key: TENANTS_PREFIX + noted.record.name, revision: noted.revision };
    let some: string[] = [];
    const remove = async (): Promise<void> => {
      const then = some.map((key) => ({ kind: "delete", key }) as const);
      some = [];
      if (then.length > 0) await txnOnce(kv, { if: [condition], then });
    };
    for await (const key of keys) {
      some.push(key);
      if (some.length === KV_TXN_MAX_OPERATIONS - 1) await remove();
    }
    await remove();
  }

  #warn({ record }: VersionedTenant, error: unknown): void {
    const code = isAppError(error) ? error.code : "internal";
    this.#with.runtime.log.warn(
      { err: error, code, tenant: record.name },
      "the data of a deleted tenant is removed later",
    );
  }
}
