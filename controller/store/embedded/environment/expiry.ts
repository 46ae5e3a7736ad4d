import { EXPIRY_SWEEP_EVERY_MS, EXPIRY_SWEEP_MAX_ENTRIES } from "../../../../common/limits.ts";
import { encodePacked } from "../../format.ts";
import type { EmbeddedRuntime } from "../runtime.ts";
import type { Environment } from "./environment.ts";
import { readU64, u64 } from "../bytes/keys.ts";
import { expiryKey } from "../bytes/object-keys.ts";

const PRESENT = encodePacked(1);

/** Checks an item that was noted to expire at `atMs`; it may have changed since. Called inside a write transaction. */
export type Visit = (kind: number, key: Uint8Array, due: { readonly atMs: number; readonly nowMs: number }) => void;

/**
 * Notes of expiring items, ordered by time. Readers check the time themselves; this only cleans up afterwards, a
 * limited number of entries at a time.
 */
export class Expiry {
  readonly #env: Environment;
  readonly #runtime: EmbeddedRuntime;
  readonly #visit: Visit;
  #cancel: () => void = () => {};
  #sweeping: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(env: Environment, runtime: EmbeddedRuntime, visit: Visit) {
    this.#env = env;
    this.#runtime = runtime;
    this.#visit = visit;
    this.#schedule();
  }

  /** Call it inside a write transaction. */
  add(atMs: number, kind: number, key: Uint8Array): void {
    void this.#env.tables.expiry.put(expiryKey(atMs, kind, key), PRESENT);
  }

  /** Call it inside a write transaction. */
  remove(atMs: number, kind: number, key: Uint8Array): void {
    void this.#env.tables.expiry.remove(expiryKey(atMs, kind, key));
  }

  /** Cleans up everything that is due now; returns the number of entries. */
  async sweep(): Promise<number> {
    let total = 0;
    for (;;) {
      const count = await this.#env.write(() => this.#sweepSome(this.#runtime.clock.nowMs()));
      total += count;
      if (count < EXPIRY_SWEEP_MAX_ENTRIES) return total;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#sweeping;
  }

  #sweepSome(nowMs: number): number {
    const due = dueKeys(this.#env, nowMs, EXPIRY_SWEEP_MAX_ENTRIES);
    for (const key of due) {
      void this.#env.tables.expiry.remove(key);
      this.#visit(key[8]!, key.subarray(9), { atMs: readU64(key, 0), nowMs });
    }
    return due.length;
  }

  #schedule(): void {
    if (this.#closed) return;
    this.#cancel = this.#runtime.clock.after(EXPIRY_SWEEP_EVERY_MS, () => {
      this.#sweeping = this.sweep()
        .then(
          () => undefined,
          (error: unknown) =>
            this.#runtime.log?.warn({ err: error }, "what has expired could not be cleared up; tried again later"),
        )
        .then(() => this.#schedule());
    });
  }
}

/** True if indexes may still contain expired items. */
export function isAnyDue(env: Environment, nowMs: number): boolean {
  return dueKeys(env, nowMs, 1).length > 0;
}

function dueKeys(env: Environment, nowMs: number, limit: number): readonly Uint8Array[] {
  return [...env.read().expiry.getKeys({ start: u64(0), end: u64(Math.floor(nowMs) + 1), limit })];
}
