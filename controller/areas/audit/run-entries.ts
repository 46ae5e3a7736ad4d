import { AsyncLocalStorage } from "node:async_hooks";
import { AUDIT_RUN_ENTRIES_WAITING_MAX } from "../../../common/limits.ts";

/** One host call of a run. */
interface Call {
  readonly entries: RunEntries;
  isOver: boolean;
}

const calls = new AsyncLocalStorage<Call | undefined>();

/**
 * Audit entries of the host calls of one run. A host call that changes something is answered to its text before its
 * entry is written. The next host call begins after that, and so does whatever the end of the run leads to: nobody
 * outside of the text hears of a change that has no entry.
 */
export class RunEntries {
  readonly #writing = new Set<Promise<void>>();

  /** The run whose host call this code is a part of; undefined outside of host calls and after their end. */
  static current(): RunEntries | undefined {
    const call = calls.getStore();
    return call === undefined || call.isOver ? undefined : call.entries;
  }

  /** Does work that is no part of a host call. */
  static outside<T>(work: () => T): T {
    return calls.getStore() === undefined ? work() : calls.run(undefined, work);
  }

  /** Does a host call, when the entries of those before are written. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    await this.written();
    const call: Call = { entries: this, isOver: false };
    try {
      return await calls.run(call, work);
    } finally {
      call.isOver = true;
    }
  }

  /** `entry` must not reject. Resolves at once, unless `AUDIT_RUN_ENTRIES_WAITING_MAX` entries are being written. */
  async add(entry: Promise<void>): Promise<void> {
    const writing = entry.finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
    while (this.#writing.size > AUDIT_RUN_ENTRIES_WAITING_MAX) await Promise.race(this.#writing);
  }

  /** Resolves when all entries are written, or could not be. */
  async written(): Promise<void> {
    while (this.#writing.size > 0) await Promise.all(this.#writing);
  }
}
