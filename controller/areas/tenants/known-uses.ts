import { AppError } from "../../../common/errors.ts";
import { TENANT_USE_REREAD_MS, TENANT_USE_TELL_ATTEMPTS_MAX } from "../../../common/limits.ts";
import { KeyedQueue } from "../../../common/keyed-queue.ts";
import type { Runtime } from "../../runtime.ts";
import type { KvStore } from "../../store/kv.ts";
import type { AuditEntry } from "../audit/index.ts";
import type { Growth } from "../objects/index.ts";
import { minus, noLess, NOTHING, sum } from "./growth.ts";
import { beyond, type Measure, type Quota } from "./quotas.ts";
import { UseStore, type NotedUse, type StoredUse } from "./use-store.ts";

interface Dependencies {
  readonly runtime: Runtime;
  readonly controllerId: string;
  readonly quotaOf: (tenant: string) => Quota;
  readonly audit: (entry: AuditEntry) => Promise<void>;
}

/** State of one tenant on this controller. */
export interface KnownUse {
  noted: NotedUse | undefined;
  /** Growth that is not yet reported to the other controllers. */
  untold: Growth;
  /** The report that is being written; `undefined` if there is none. */
  telling: Promise<void> | undefined;
  rereadMs: number;
}

/** The next stored use, and the growth that it reports; `undefined`: nothing is written. */
type NextUse = (
  use: StoredUse | undefined,
) => { readonly use: Omit<StoredUse, "writer">; readonly told: Growth } | undefined;

/** Uses of tenants as this controller knows them, and its writes of the shared ones. */
export class KnownUses {
  readonly #with: Dependencies;
  readonly #store: UseStore;
  readonly #known = new Map<string, KnownUse>();
  readonly #queue = new KeyedQueue();
  #writes = 0;

  constructor(dependencies: Dependencies, kv: KvStore) {
    this.#with = dependencies;
    this.#store = new UseStore(() => Promise.resolve(kv));
  }

  tenants(): IterableIterator<string> {
    return this.#known.keys();
  }

  all(): IterableIterator<KnownUse> {
    return this.#known.values();
  }

  get(tenant: string): KnownUse | undefined {
    return this.#known.get(tenant);
  }

  /** The state of the tenant; it is created if there is none. */
  of(tenant: string): KnownUse {
    let known = this.#known.get(tenant);
    if (known === undefined) {
      known = { noted: undefined, untold: NOTHING, telling: undefined, rereadMs: -Infinity };
      this.#known.set(tenant, known);
    }
    return known;
  }

  forget(tenant: string): void {
    this.#known.delete(tenant);
  }

  /** Reads the shared use again, at most every `TENANT_USE_REREAD_MS`: another controller may have removed data. */
  async reread(tenant: string): Promise<void> {
    const known = this.of(tenant);
    const nowMs = this.#with.runtime.clock.monotonicMs();
    if (nowMs - known.rereadMs < TENANT_USE_REREAD_MS) return;
    known.rereadMs = nowMs;
    const noted = await this.#store.find(tenant);
    if (noted) this.#note(tenant, noted);
  }

  /**
   * Writes the use that `next` computes from the stored one, and returns the stored use. The growth that the write
   * reports is then no longer unreported. If the write changes which quotas are exceeded, an audit entry reports it.
   */
  change(tenant: string, next: NextUse): Promise<StoredUse | undefined> {
    return this.#queue.run([tenant], () => this.#changeNow(tenant, next));
  }

  async #changeNow(tenant: string, next: NextUse): Promise<StoredUse | undefined> {
    const known = this.of(tenant);
    let noted = known.noted ?? (await this.#store.find(tenant));
    for (let attempt = 1; attempt <= TENANT_USE_TELL_ATTEMPTS_MAX; attempt++) {
      const made = next(noted?.use);
      if (made === undefined) return noted?.use;
      const { measured, grown } = made.use;
      const over = measured ? beyond(sum(measured, grown), this.#with.quotaOf(tenant)) : [];
      const use = { ...made.use, beyond: over, writer: this.#writer() };
      const written = await this.#store.replace(tenant, noted?.revision ?? 0, use);
      if (written) {
        known.untold = sum(known.untold, minus(made.told));
        this.#note(tenant, written);
        await this.#report(tenant, noted?.use.beyond ?? [], over);
        return use;
      }
      noted = await this.#store.find(tenant);
    }
    throw new AppError("unavailable", `Other controllers write what the tenant ${tenant} has all the time.`);
  }

  async #report(tenant: string, before: readonly Measure[], now: readonly Measure[]): Promise<void> {
    if (before.join() === now.join()) return;
    const is = now.length > 0;
    this.#with.runtime.log.warn({ tenant, beyond: now }, is ? "a tenant exceeds its quota" : "a tenant has room again");
    await this.#with.audit({
      tenant,
      user: "system",
      permission: "tenants:write",
      action: is ? "quota exceeded" : "quota kept again",
      object: (is ? now : before).join(","),
      outcome: "ok",
      code: "",
      remote: "",
      traceparent: "",
    });
  }

  /**
   * Takes a use that the store reports. Own writes are noted after they succeed; until then their growth counts as
   * unreported.
   */
  heard(tenant: string, noted: NotedUse): void {
    if (!noted.use.writer.startsWith(`${this.#with.controllerId}/`)) this.#note(tenant, noted);
  }

  #note(tenant: string, noted: NotedUse): void {
    const known = this.of(tenant);
    if ((known.noted?.revision ?? 0) < noted.revision) known.noted = noted;
  }

  #writer(): string {
    this.#writes += 1;
    return `${this.#with.controllerId}/${this.#writes}`;
  }
}

/** The use of a tenant with the growth that is not reported yet. */
export function hasOf({ noted, untold }: KnownUse): Growth {
  return noLess(sum(sum(noted?.use.measured ?? NOTHING, noted?.use.grown ?? NOTHING), untold));
}
