import { type AppError, errorText } from "../../../common/errors.ts";
import {
  TENANT_USE_MEASURE_INTERVAL_MS,
  TENANT_USE_OBJECTS_PER_SECOND,
  TENANT_USE_UNTOLD_MAX_BYTES,
  TENANT_USE_UNTOLD_MAX_OBJECTS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { FollowedKeys } from "../../store/kv/follow.ts";
import type { KvStore } from "../../store/kv.ts";
import type { AuditEntry } from "../audit/index.ts";
import type { Growth, TenantRoom } from "../objects/index.ts";
import { minus, noLess, NOTHING, sum } from "./growth.ts";
import { hasOf, type KnownUse, KnownUses } from "./known-uses.ts";
import { beyond, full, isLimit, refusedOf, type Quota } from "./quotas.ts";
import type { ShownUse } from "./types.ts";
import { notedUse, USES_PREFIX } from "./use-store.ts";

export interface TenantUseDependencies {
  readonly stores: Pick<Stores, "system">;
  readonly runtime: Runtime;
  readonly controllerId: string;
  readonly quotaOf: (tenant: string) => Quota;
  /** Sizes of all data of a tenant, in parts. */
  readonly sizes: (tenant: string) => AsyncIterable<Growth>;
  readonly audit: (entry: AuditEntry) => Promise<void>;
  /** True on the controller that counts. */
  readonly isFirst: () => boolean;
}

/**
 * Current use of tenants with a quota, and checks for room. One controller counts now and then. In between each
 * controller adds its own writes and reports them to the others before its unreported growth exceeds
 * `TENANT_USE_UNTOLD_MAX_OBJECTS` or `_BYTES`; only the call that reaches the limit may go over it. So a single
 * controller keeps a quota exactly, as far as the count is right. Several may exceed it by at most that amount for each
 * other controller. No call is refused before the first count.
 */
export class TenantUse implements TenantRoom {
  readonly #with: TenantUseDependencies;
  readonly #followed: FollowedKeys;
  readonly #known: KnownUses;
  readonly #due = new Set<string>();
  readonly #stopping = new AbortController();
  #measuring: Promise<void> | undefined;

  private constructor(dependencies: TenantUseDependencies, kv: KvStore) {
    this.#with = dependencies;
    this.#known = new KnownUses(dependencies, kv);
    this.#followed = new FollowedKeys({
      kv,
      runtime: dependencies.runtime,
      prefix: USES_PREFIX,
      put: (entry) => this.#known.heard(entry.key.slice(USES_PREFIX.length), notedUse(entry)),
      end: (key) => this.forget(key.slice(USES_PREFIX.length)),
    });
  }

  /** Resolves when the stored counts are known. */
  static async open(dependencies: TenantUseDependencies): Promise<TenantUse> {
    const use = new TenantUse(dependencies, (await dependencies.stores.system()).kv);
    await use.#followed.start();
    return use;
  }

  isLimited(tenant: string): boolean {
    return isLimit(this.#with.quotaOf(tenant));
  }

  async take(tenant: string, growth: Growth): Promise<void> {
    await this.require(tenant, growth);
    const known = this.#known.of(tenant);
    if (isMuch(sum(known.untold, growth))) await this.#tell(tenant);
    // Other controllers may have used the room meanwhile.
    this.#check(tenant, growth);
    known.untold = sum(known.untold, growth);
  }

  async require(tenant: string, growth: Growth): Promise<void> {
    if (this.#refusal(tenant, growth) === undefined) return;
    await this.#known.reread(tenant);
    this.#check(tenant, growth);
  }

  count(tenant: string, growth: Growth): void {
    const known = this.#known.of(tenant);
    known.untold = sum(known.untold, growth);
    if (isMuch(known.untold)) this.#tellSoon(tenant);
  }

  /** `undefined`: not counted yet. */
  shown(tenant: string): ShownUse | undefined {
    const known = this.#known.get(tenant);
    const measuredMs = known?.noted?.use.measured?.atMs;
    if (known === undefined || measuredMs === undefined || !this.isLimited(tenant)) return undefined;
    const has = hasOf(known);
    return { ...has, measuredMs, beyond: [...beyond(has, this.#with.quotaOf(tenant))] };
  }

  /** Known use of each tenant with a quota, for metrics. */
  *all(): Generator<readonly [string, ShownUse]> {
    for (const tenant of this.#known.tenants()) {
      const shown = this.shown(tenant);
      if (shown) yield [tenant, shown];
    }
  }

  /** Reports growth, and starts a count of the tenant if one is due. */
  async maintain(tenant: string): Promise<void> {
    if (!this.isLimited(tenant)) return;
    if (this.#known.get(tenant) !== undefined) await this.#tell(tenant);
    const atMs = this.#known.get(tenant)?.noted?.use.measured?.atMs ?? 0;
    const isDue = this.#with.runtime.clock.nowMs() - atMs >= TENANT_USE_MEASURE_INTERVAL_MS;
    if (isDue && this.#with.isFirst()) this.measureSoon(tenant);
  }

  /** Counts the tenant as soon as those before it are done; then all controllers know the count. */
  measureSoon(tenant: string): void {
    if (!this.isLimited(tenant)) return;
    this.#due.add(tenant);
    this.#measuring ??= this.#measureDue();
  }

  /** Resolves when no count or report is in progress. */
  async settled(): Promise<void> {
    await this.#measuring;
    await Promise.all([...this.#known.all()].flatMap(({ telling }) => telling ?? []));
  }

  forget(tenant: string): void {
    this.#known.forget(tenant);
    this.#due.delete(tenant);
  }

  async *keysOf(tenant: string): AsyncGenerator<string> {
    yield await Promise.resolve(USES_PREFIX + tenant);
  }

  /** Reports the rest. Growth that cannot be reported is found by a later count. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#measuring;
    for (const tenant of this.#known.tenants())
      if (this.isLimited(tenant)) await this.#tell(tenant).catch((error: unknown) => this.#warn(tenant, error));
    await this.#followed.close();
  }

  #check(tenant: string, growth: Growth): void {
    const refusal = this.#refusal(tenant, growth);
    if (refusal) throw refusal;
  }

  #refusal(tenant: string, growth: Growth): AppError | undefined {
    const known = this.#known.get(tenant);
    if (known?.noted?.use.measured === undefined) return undefined;
    const quota = this.#with.quotaOf(tenant);
    const has = hasOf(known);
    const measure = refusedOf(growth, has, quota);
    return measure && full(tenant, measure, { has, quota });
  }

  #tellSoon(tenant: string): void {
    this.#tell(tenant).catch((error: unknown) => this.#warn(tenant, error));
  }

  /** Callers during a report wait for that report. */
  #tell(tenant: string): Promise<void> {
    const known = this.#known.of(tenant);
    known.telling ??= this.#told(tenant, known).finally(() => (known.telling = undefined));
    return known.telling;
  }

  async #told(tenant: string, known: KnownUse): Promise<void> {
    if (known.untold.objects === 0 && known.untold.bytes === 0) return;
    await this.#known.change(tenant, (use) => {
      // The first count of the tenant will include these writes.
      if (use === undefined) {
        known.untold = NOTHING;
        return undefined;
      }
      const told = known.untold;
      return { use: { ...use, grown: sum(use.grown, told) }, told };
    });
  }

  async #measureDue(): Promise<void> {
    for (const tenant of this.#due) {
      this.#due.delete(tenant);
      if (this.#stopping.signal.aborted) return;
      await this.#measure(tenant).catch((error: unknown) => this.#warn(tenant, error));
    }
    this.#measuring = undefined;
  }

  async #measure(tenant: string): Promise<void> {
    const { clock } = this.#with.runtime;
    const atMs = clock.nowMs();
    const begun = await this.#known.change(tenant, (use) => {
      const told = this.#known.of(tenant).untold;
      return { use: { beyond: [], ...use, grown: sum(use?.grown ?? NOTHING, told) }, told };
    });
    const before = begun?.grown ?? NOTHING;
    const sizes = await this.#sum(tenant);
    if (sizes === undefined) return;
    await this.#known.change(tenant, (use) => {
      const told = this.#known.of(tenant).untold;
      // Writes during the count may be counted twice: safer than missing them, and the next count corrects it.
      const grown = noLess(sum(sum(use?.grown ?? NOTHING, told), minus(before)));
      return { use: { beyond: [], ...use, measured: { ...sizes, atMs }, grown }, told };
    });
  }

  /** Counts at a bounded rate; `undefined` if the controller stops or the tenant has no quota any more. */
  async #sum(tenant: string): Promise<Growth | undefined> {
    const { clock } = this.#with.runtime;
    const { signal } = this.#stopping;
    const beganMs = clock.monotonicMs();
    let total = NOTHING;
    for await (const part of this.#with.sizes(tenant)) {
      total = sum(total, part);
      const restMs = beganMs + (total.objects / TENANT_USE_OBJECTS_PER_SECOND) * 1_000 - clock.monotonicMs();
      if (restMs > 0) await wait(clock, restMs, signal);
      if (signal.aborted || !this.isLimited(tenant)) return undefined;
    }
    return total;
  }

  #warn(tenant: string, error: unknown): void {
    this.#with.runtime.log.warn({ tenant, reason: errorText(error) }, "what a tenant has is counted later");
  }
}

function isMuch({ objects, bytes }: Growth): boolean {
  return Math.abs(objects) > TENANT_USE_UNTOLD_MAX_OBJECTS || Math.abs(bytes) > TENANT_USE_UNTOLD_MAX_BYTES;
}
