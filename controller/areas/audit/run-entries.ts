import { AUDIT_RUN_ENTRIES_WAITING_MAX } from "../../../common/limits.ts";
import type { Principal } from "../permissions/index.ts";

/** Runs under way, by the principal of their host calls: a copy of it belongs to none. */
const runs = new WeakMap<Principal, RunEntries>();

/**
 * Resolves when the entry is written. For a principal of host calls it may resolve before: the next host call of its run
 * and the end of the run wait for the entry. `entry` must not reject.
 */
export function entryWritten(principal: Principal, entry: Promise<void>): Promise<void> {
  return runs.get(principal)?.add(entry) ?? entry;
}

/**
 * Audit entries of the host calls of one run. A host call that changes something is answered to its text before its
 * entry is written. The next host call begins after that, and the run ends after that, with all that its end leads to:
 * outside of the text a change is seen only when it has its entry.
 */
export class RunEntries {
  readonly #principal: Principal;
  readonly #writing = new Set<Promise<void>>();

  constructor(principal: Principal) {
    this.#principal = principal;
    runs.set(principal, this);
  }

  /** Does a host call, when the entries of those before are written. */
  async during<T>(call: () => Promise<T>): Promise<T> {
    await this.#written();
    return call();
  }

  /** Resolves at once, unless `AUDIT_RUN_ENTRIES_WAITING_MAX` entries are being written. */
  async add(entry: Promise<void>): Promise<void> {
    const writing = entry.finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    while (this.#writing.size > AUDIT_RUN_ENTRIES_WAITING_MAX) await Promise.race(this.#writing);
  }

  /** Resolves when all entries are written, or could not be. What goes on from here on waits for its own entries. */
  async end(): Promise<void> {
    runs.delete(this.#principal);
    await this.#written();
  }

  async #written(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }
}
