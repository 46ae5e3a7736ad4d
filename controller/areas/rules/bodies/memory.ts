import { RULE_CACHED_TENANT_MAX_CHARACTERS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { ClassCache } from "./class-cache.ts";

interface Cached {
  readonly text: string;
  readonly untilMs: number;
}

interface Kept {
  readonly values: Map<string, Cached>;
  characters: number;
}

/**
 * Values that bodies store by `setcache`, in the memory of this process. Each tenant has a limit; its oldest values are
 * removed first.
 */
export class RuleMemory {
  /** Rows of the classes in `--cache_classes`. */
  readonly classes: ClassCache;
  readonly #clock: Clock;
  readonly #tenants = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.classes = new ClassCache(clock);
  }

  get(tenant: string, key: string): string | undefined {
    const found = this.#tenants.get(tenant)?.values.get(key);
    return found !== undefined && found.untilMs > this.#clock.nowMs() ? found.text : undefined;
  }

  /**
   * Stores a value, and removes the tenant's oldest values until all fit `RULE_CACHED_TENANT_MAX_CHARACTERS`. A value
   * that is longer than that removes all others and is not stored. `ttlSeconds` 0: no expiry.
   */
  set(tenant: string, key: string, { text, ttlSeconds }: { readonly text: string; readonly ttlSeconds: number }): void {
    const kept = this.#tenants.get(tenant) ?? { values: new Map<string, Cached>(), characters: 0 };
    this.#tenants.set(tenant, kept);
    drop(kept, key);
    const untilMs = ttlSeconds === 0 ? Number.POSITIVE_INFINITY : this.#clock.nowMs() + ttlSeconds * 1_000;
    kept.values.set(key, { text, untilMs });
    kept.characters += key.length + text.length;
    for (const oldest of kept.values.keys()) {
      if (kept.characters <= RULE_CACHED_TENANT_MAX_CHARACTERS) break;
      drop(kept, oldest);
    }
  }

  leave(tenant: string): void {
    this.#tenants.delete(tenant);
    this.classes.leave();
  }
}

function drop(kept: Kept, key: string): void {
  const found = kept.values.get(key);
  if (found === undefined) return;
  kept.values.delete(key);
  kept.characters -= key.length + found.text.length;
}
