import { IndexingRun, type IndexWorkDependencies } from "./works.ts";
import type { OpenIndexing, VersionedIndexing } from "./journal.ts";

/**
 * Runs indexing in the order in which it was begun: of each tenant one request and one change at a time, so a large
 * folder does not delay changes, nor a tenant the others.
 */
export class IndexingQueue {
  readonly #with: IndexWorkDependencies;
  readonly #lanes = new Map<string, Promise<unknown>>();
  #waiting = 0;

  constructor(dependencies: IndexWorkDependencies) {
    this.#with = dependencies;
  }

  /** Number of works that have not ended. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Like `run`, for callers that do not wait. */
  begin(mine: VersionedIndexing): void {
    this.run(mine).catch(() => undefined);
  }

  /** Resolves with the work when it has ended or paused, or when another controller has taken it. */
  async run(mine: VersionedIndexing): Promise<OpenIndexing> {
    const { journal, runtime } = this.#with;
    this.#waiting += 1;
    try {
      return await journal.inFlight.carry([mine.open.id], () => this.#inTurn(mine));
    } catch (error) {
      runtime.log.error({ err: error, work: mine.open.id }, "indexing files broke off");
      throw error;
    } finally {
      this.#waiting -= 1;
    }
  }

  async #inTurn(mine: VersionedIndexing): Promise<OpenIndexing> {
    const lane = `${mine.open.tenant} ${mine.open.from === undefined ? "change" : "request"}`;
    const before = this.#lanes.get(lane) ?? Promise.resolve();
    const work = before.then(() => this.#run(mine));
    const settled = work.catch(() => undefined);
    this.#lanes.set(lane, settled);
    try {
      return await work;
    } finally {
      if (this.#lanes.get(lane) === settled) this.#lanes.delete(lane);
    }
  }

  async #run(mine: VersionedIndexing): Promise<OpenIndexing> {
    // At a stop, works that did not begin stay in the journal.
    if (this.#with.journal.inFlight.stopping.aborted) return mine.open;
    return new IndexingRun(mine, this.#with).run();
  }
}
