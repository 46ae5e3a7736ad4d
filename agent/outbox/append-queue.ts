import { isAppError } from "../../common/errors.ts";
import { OUTBOX_FRAME_MAX_BYTES } from "../../common/limits.ts";
import { entryWeight } from "./entries.ts";
import type { Mark } from "./segment.ts";
import type { Emission } from "./types.ts";

/** Entries and marks that are on disk together or not at all. */
export interface Append {
  readonly emissions: readonly Emission[];
  readonly marks: readonly Mark[];
}

/** Makes appends durable, all or none, and answers the last sequence of each. */
export type Commit = (appends: readonly Append[]) => Promise<readonly number[]>;

interface Waiting extends Append {
  resolve(last: number): void;
  reject(error: unknown): void;
}

/**
 * Appends in the order in which they came. One commit runs at a time. The appends that wait for it share the next one,
 * as far as they fit into a frame.
 */
export class AppendQueue {
  readonly #commit: Commit;
  readonly #committed: () => void;
  #waiting: Waiting[] = [];
  #working: Promise<void> | undefined;

  /** `committed` is called after each commit, also after a failed one. */
  constructor(commit: Commit, committed: () => void) {
    this.#commit = commit;
    this.#committed = committed;
  }

  /** Resolves with the last sequence of the append when it is durable. */
  add({ emissions, marks }: Append): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ emissions, marks, resolve, reject });
      this.#working ??= this.#commitAll();
    });
  }

  /** Runs `work` while no commit runs. Appends that come meanwhile are committed after it, also when it fails. */
  async between(work: () => Promise<void>): Promise<void> {
    while (this.#working) await this.#working;
    // No `await` may come between the check above and this line: an append in between would begin a commit.
    const working = work();
    this.#working = working.catch(() => undefined);
    try {
      await working;
    } finally {
      await (this.#working = this.#waiting.length > 0 ? this.#commitAll() : undefined);
    }
  }

  async #commitAll(): Promise<void> {
    // Wait until the calling code has returned, so that appends it makes without an `await` share one sync.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      await this.#settle(this.#take());
      this.#committed();
    }
    // No `await` may come between the check of the queue and this line. An append in between would wait forever.
    this.#working = undefined;
  }

  #take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const append of this.#waiting) {
      bytes += append.emissions.reduce((sum, emission) => sum + entryWeight(emission), 0);
      if (count > 0 && bytes > OUTBOX_FRAME_MAX_BYTES) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #settle(appends: readonly Waiting[]): Promise<void> {
    try {
      const lasts = await this.#commit(appends);
      for (const [at, append] of appends.entries()) append.resolve(lasts[at]!);
    } catch (error) {
      // Commit the appends one by one: a small one may fit although all together do not.
      if (appends.length > 1 && isAppError(error, "limited", "too_large"))
        for (const append of appends) await this.#settle([append]);
      else for (const append of appends) append.reject(error);
    }
  }
}
