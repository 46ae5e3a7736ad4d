import { AUDIT_RUN_ENTRIES_WAITING_MAX } from "../../../common/limits.ts";
import type { Principal } from "../permissions/index.ts";

/** Open runs by the principal object of their host calls. A copy of that object belongs to no run. */
const runs = new WeakMap<Principal, RunEntries>();

/**
 * Resolves when the entry is written. For the principal of a run's host calls it may resolve earlier: then the next
 * host call and the end of the run wait for the entry. `entry` must not reject.
 */
export function entryWritten(principal: Principal, entry: Promise<void>): Promise<void> {
  return runs.get(principal)?.add(entry) ?? entry;
}

/**
 * Audit entries of the host calls of one run. A host call that changes something returns to its script before its entry
 * is written. The next host call, and the end of the run with all its effects, wait for the entry. So a change is
 * visible outside the script only after its entry is written.
 */
export class RunEntries {
  readonly #principal: Principal;
  readonly #writing = new Set<Promise<void>>();

  constructor(principal: Principal) {
    this.#principal = principal;
    runs.set(principal, this);
  }

  /** Executes a host call after the entries of the earlier ones are written. */
  async during<T>(call: () => Promise<T>): Promise<T> {
    await this.#written();
    return call();
  }

  /** Resolves at once, unless more than `AUDIT_RUN_ENTRIES_WAITING_MAX` entries are being written. */
  async add(entry: Promise<void>): Promise<void> {
    const writing = entry.finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    while (this.#writing.size > AUDIT_RUN_ENTRIES_WAITING_MAX) await Promise.race(this.#writing);
  }

  /** Resolves when all entries are written or have failed. Later host calls wait for their own entries. */
  async end(): Promise<void> {
    runs.delete(this.#principal);
    await this.#written();
  }

  async #written(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }
}
