import { AppError } from "../../../../../common/errors.ts";
import type { TriggerChain } from "../../../permissions/index.ts";

interface Job {
  readonly keys: readonly string[];
  readonly chain: string | undefined;
  /** Jobs it waits for; empty once it runs. */
  before: ReadonlySet<Job>;
  readonly done: Promise<void>;
}

type Chain = Pick<TriggerChain, "id" | "holds">;

/**
 * Runs jobs of the same key one after the other, in the order in which they came. A job may have several keys. The
 * triggers of a running job may wait for other jobs of its chain. So a job of a chain is refused if its wait would
 * never end: it has a key that its chain holds, or it would wait, directly or through other jobs, for a job of its
 * chain that holds such a key.
 */
export class ChainQueue {
  readonly #tails = new Map<string, Job>();
  /** Waiting jobs by chain. A running job of the chain may wait for them. */
  readonly #waiting = new Map<string, Set<Job>>();

  async run<T>(keys: readonly string[], chain: Chain | undefined, work: () => Promise<T>): Promise<T> {
    // All keys are taken at once, so that two jobs without triggers never wait for each other.
    const before = new Set(keys.flatMap((key) => this.#tails.get(key) ?? []));
    if (chain !== undefined) this.#checkWait(keys, before, chain);
    let release = (): void => undefined;
    const done = new Promise<void>((resolve) => {
      release = resolve;
    });
    const job: Job = { keys, chain: chain?.id, before, done };
    for (const key of keys) this.#tails.set(key, job);
    try {
      if (before.size > 0) await this.#wait(job);
      return await work();
    } finally {
      release();
      for (const key of keys) if (this.#tails.get(key) === job) this.#tails.delete(key);
    }
  }

  async #wait(job: Job): Promise<void> {
    const leave = this.#noteWaiting(job);
    await Promise.all([...job.before].map(({ done }) => done));
    job.before = NO_JOBS;
    leave();
  }

  #noteWaiting(job: Job): () => void {
    const { chain } = job;
    if (chain === undefined) return () => undefined;
    const waiting = this.#waiting.get(chain) ?? new Set();
    this.#waiting.set(chain, waiting.add(job));
    return () => {
      if (waiting.delete(job) && waiting.size === 0) this.#waiting.delete(chain);
    };
  }

  #checkWait(keys: readonly string[], before: ReadonlySet<Job>, { id, holds }: Chain): void {
    if (holds.length === 0) return;
    const held = new Set(holds);
    if (keys.some((key) => held.has(key)))
      throw new AppError("invalid", "[Valid] A trigger may not write the object it was called for.");
    const isOwn = (job: Job): boolean => job.chain === id && job.keys.some((key) => held.has(key));
    if (this.#leadsTo(before, isOwn))
      throw new AppError(
        "conflict",
        "[Valid] The write of a trigger would wait for a write that waits for the trigger.",
      );
  }

  #leadsTo(before: ReadonlySet<Job>, isOwn: (job: Job) => boolean): boolean {
    const seen = new Set(before);
    for (const job of seen) {
      if (isOwn(job)) return true;
      for (const next of job.before) seen.add(next);
      for (const next of (job.chain === undefined ? undefined : this.#waiting.get(job.chain)) ?? []) seen.add(next);
    }
    return false;
  }
}

const NO_JOBS: ReadonlySet<Job> = new Set();
