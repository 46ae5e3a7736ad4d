import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, errorText } from "../../../common/errors.ts";
import {
  KEY_FOLLOW_INTERVAL_MS,
  KEY_LOOK_AGAIN_MS,
  KEY_SETTLE_MS,
  KEY_TENANTS_AT_ONCE,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { KeyRing, SealedItem, SealedKind } from "../../secrets/index.ts";
import { byAge, type Membership } from "../cluster/index.ts";
import type { Tenants } from "../tenants/index.ts";
import type { RetainedKeyParts } from "./retained-parts.ts";
import { keysKnown } from "./known.ts";

export interface ResealingDependencies {
  readonly secrets: KeyRing;
  readonly runtime: Runtime;
  readonly controllers: Pick<Membership, "all" | "own" | "tellKeys">;
  readonly tenants: Pick<Tenants, "list">;
  readonly parts: Pick<RetainedKeyParts, "keep" | "load">;
  /** `Area.sealed` of all areas. */
  readonly kinds: () => readonly SealedKind[];
  /** True if each round reads the keys from their source again. False: only a command does. */
  readonly rereads: boolean;
  /** `KEY_SETTLE_MS` when absent. */
  readonly settleMs?: number | undefined;
}

/** Used as the name of a tenant for data that belongs to no tenant. */
const INSTALLATION = "";

/**
 * Follows the keys while the controller runs, and reseals everything that former keys sealed. A key starts to seal when
 * every controller can open with it. When every controller seals with it, the oldest controller reseals the other items
 * one by one, each only if it is unchanged since it was read. The key id of an item shows that it must be resealed. So
 * a controller needs no stored progress to resume after a crash. If two controllers reseal at the same time, that does
 * no harm.
 */
export class Resealing {
  readonly #with: ResealingDependencies;
  readonly #stopping = new AbortController();
  /** Time of the next check of a tenant. `Infinity`: none of its data needs a former key. */
  readonly #dueMs = new Map<string, number>();
  #cleanFor = "";
  #settledMs: number | undefined;
  #soon = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #fault: string | undefined;
  /** The error of the last pass over each tenant. */
  readonly #faults = new Map<string, string>();

  constructor(dependencies: ResealingDependencies) {
    this.#with = dependencies;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** Starts the next round now. */
  soon(): void {
    this.#soon.abort();
  }

  /** The reason why nothing is resealed, if there is one; otherwise the last error. */
  get waiting(): string | undefined {
    return this.#obstacle() ?? this.#fault ?? [...this.#faults.values()][0];
  }

  /**
   * Reads the keys again if `reread`, then seals with the newest key that all controllers know. Throws if the keys
   * cannot be read.
   */
  async follow({ reread }: { readonly reread: boolean }): Promise<void> {
    const { secrets, controllers } = this.#with;
    const isRead = reread && (await secrets.reread());
    const isAdvanced = secrets.advance(keysKnown(controllers.all()));
    if (!isRead && !isAdvanced) return;
    this.#settledMs = undefined;
    await controllers.tellKeys();
    this.#with.runtime.log.info({ key: secrets.keyId, keys: secrets.ids }, "the keys that seal secrets changed");
  }

  /**
   * One round: follows the keys, then reseals the data of the tenants that are due. Returns the number of resealed
   * items.
   */
  async round(): Promise<number> {
    try {
      await this.follow({ reread: this.#with.rereads });
      this.#fault = undefined;
      return this.#mayReseal() ? await this.#pass() : 0;
    } catch (error) {
      this.#fault = errorText(error);
      this.#with.runtime.log.warn({ err: error }, "what former keys sealed is sealed anew later");
      return 0;
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.round();
      await wait(this.#with.runtime.clock, KEY_FOLLOW_INTERVAL_MS, signal, this.#soon.signal);
      this.#soon = new AbortController();
    }
  }

  /** The reason why resealing has to wait; `undefined` if there is none. */
  #obstacle(): string | undefined {
    const { secrets, controllers } = this.#with;
    const [wanted] = secrets.ids;
    const lacking = controllers
      .all()
      .find(({ keys }) => keys && wanted !== undefined && !keys.opening.includes(wanted));
    if (lacking) return `The controller ${nameOf(lacking)} does not have the key ${wanted}.`;
    const behind = controllers.all().find(({ keys }) => keys && keys.sealing !== secrets.keyId);
    return behind && `The controller ${nameOf(behind)} seals with another key still.`;
  }

  #mayReseal(): boolean {
    const { secrets, controllers, runtime } = this.#with;
    const nowMs = runtime.clock.monotonicMs();
    if (this.#obstacle() !== undefined) this.#settledMs = undefined;
    else this.#settledMs ??= nowMs;
    if (this.#cleanFor !== secrets.keyId) this.#dueMs.clear();
    this.#cleanFor = secrets.keyId;
    const [eldest] = [...controllers.all()].sort(byAge);
    return (
      secrets.opening.length > 1 &&
      this.#settledMs !== undefined &&
      nowMs - this.#settledMs >= (this.#with.settleMs ?? KEY_SETTLE_MS) &&
      eldest?.id === controllers.own
    );
  }

  async #pass(): Promise<number> {
    const { parts, tenants } = this.#with;
    await parts.keep();
    await parts.load();
    const names = [INSTALLATION, ...(await tenants.list()).map(({ name }) => name)];
    const counts = await mapLimited(names, KEY_TENANTS_AT_ONCE, (tenant) => this.#passOver(tenant));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async #passOver(tenant: string): Promise<number> {
    const { runtime, secrets } = this.#with;
    if (runtime.clock.monotonicMs() < (this.#dueMs.get(tenant) ?? 0)) return 0;
    let [done, left] = [0, 0];
    this.#faults.delete(tenant);
    try {
      for await (const item of this.#items(tenant)) {
        if (this.#stopping.signal.aborted) return done;
        if (item.keyIds.every((id) => id === secrets.keyId)) continue;
        if (await this.#sealAnew(tenant, item)) done++;
        else left++;
      }
      // Data that was copied during a pass may have been missed. So the last pass is one that finds nothing.
      if (done === 0) this.#dueMs.set(tenant, left === 0 ? Infinity : runtime.clock.monotonicMs() + KEY_LOOK_AGAIN_MS);
    } catch (error) {
      this.#failed(tenant, error);
    }
    if (done > 0) runtime.log.info({ tenant, done, left }, "what former keys sealed was sealed anew");
    return done;
  }

  async *#items(tenant: string): AsyncGenerator<SealedItem> {
    for (const { all, installation = false } of this.#with.kinds())
      if (installation === (tenant === INSTALLATION)) yield* all(tenant);
  }

  async #sealAnew(tenant: string, item: SealedItem): Promise<boolean> {
    try {
      return (await item.sealAnew?.()) ?? false;
    } catch (error) {
      // An item that does not open must not stop the others.
      this.#failed(tenant, new AppError("unavailable", `${item.name}: ${errorText(error)}`, { cause: error }));
      return false;
    }
  }

  #failed(tenant: string, error: unknown): void {
    const reason = errorText(error);
    this.#faults.set(tenant, reason);
    this.#with.runtime.log.warn({ tenant, reason }, "something was not sealed anew");
  }
}

function nameOf({ id, url }: { readonly id: string; readonly url: string }): string {
  return url === "" ? id : `${id} (${url})`;
}
