import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { CATALOG_RETRY_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import type { TenantCatalog } from "../definitions/catalog.ts";
import { markReady } from "../definitions/indexchanges.ts";
import { indexStatuses, type IndexPass } from "../definitions/indexstates.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { IndexStatus } from "../types.ts";
import type { Reindexing } from "../writing/reindexing.ts";
import { carryOut, isWanted } from "./indexpass.ts";
import type { Claim, IndexPasses } from "./indexpasses.ts";

export interface IndexerDependencies {
  readonly store: ObjectStore;
  readonly passes: IndexPasses;
  readonly catalog: TenantCatalog;
  readonly reindexing: Reindexing;
  readonly runtime: Runtime;
}

/**
 * Adds the existing objects of one tenant to indexes that lack them. One controller at a time does it. If it fails,
 * another one continues from its stored progress. A pass begins after every controller fills its indexes. The indexes
 * become ready after the pass has processed all objects.
 */
export class Indexer {
  readonly #of: IndexerDependencies;
  readonly #closing = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  constructor(of: IndexerDependencies) {
    this.#of = of;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#loop;
  }

  /** States of all indexes. */
  async statuses(snapshot: Snapshot): Promise<IndexStatus[]> {
    const passes = new Map((await this.#of.passes.all()).map((pass) => [pass.cid, pass]));
    return snapshot.tree("/").flatMap(({ definition }) => indexStatuses(definition, passes.get(definition.cid)));
  }

  async #run(): Promise<void> {
    const { catalog, runtime } = this.#of;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const snapshot = catalog.current();
      try {
        if (await this.#hasWork(snapshot)) await this.#work();
        else await catalog.newerThan(snapshot.revision, signal);
      } catch (error) {
        if (signal.aborted) return;
        runtime.log.warn({ reason: errorText(error) }, "filling indexes was interrupted; it goes on by itself");
        await wait(runtime.clock, CATALOG_RETRY_MS, signal);
      }
    }
  }

  async #hasWork(snapshot: Snapshot): Promise<boolean> {
    for (const { pendingIndexes } of snapshot.views()) {
      if (pendingIndexes.length > 0) return todo(snapshot, await this.#of.passes.all()) !== undefined;
    }
    return false;
  }

  /** Works until nothing is left to do or another controller has the claim. */
  async #work(): Promise<void> {
    const { lease } = await this.#of.catalog.resumed();
    const claim = await this.#of.passes.claim(lease, this.#closing.signal);
    if (claim === undefined) return;
    try {
      await this.#forgetOver(claim);
      for (let pass = await this.#next(); pass !== undefined; pass = await this.#next())
        await this.#carryOut(pass, claim);
    } finally {
      await this.#of.passes.release(claim);
    }
  }

  /** Removes passes whose indexes were dropped while no controller worked on them. */
  async #forgetOver(claim: Claim): Promise<void> {
    const snapshot = await this.#snapshot();
    for (const pass of await this.#of.passes.all())
      if (!isWanted(pass, snapshot)) await this.#of.passes.forget(pass, claim);
  }

  /** Undefined when there is nothing to do. */
  async #next(): Promise<IndexPass | undefined> {
    const { catalog, passes } = this.#of;
    const { snapshot } = await catalog.resumed();
    const pass = todo(snapshot, await passes.all());
    if (pass === undefined || (await catalog.acknowledged(snapshot.definitions.counterRevision))) return pass;
    throw new AppError("unavailable", "A controller does not say that it keeps the new index.");
  }

  async #carryOut(pass: IndexPass, claim: Claim): Promise<void> {
    const { passes, catalog, runtime } = this.#of;
    const { store, reindexing } = this.#of;
    const log = runtime.log.child({ class: catalog.current().byCid(pass.cid)?.path });
    log.info({ done: pass.done, total: pass.total }, "objects are brought into new indexes");
    let reached = pass;
    const keep = async (now: IndexPass): Promise<void> => {
      reached = now;
      await passes.keep(now, claim);
    };
    try {
      const isWanted = await carryOut(pass, { store, reindexing, snapshot: () => this.#snapshot(), keep });
      if (isWanted) await catalog.change((draft) => markReady(draft, pass.cid, new Set(pass.indexes)));
      await passes.forget(pass, claim);
      log.info({ done: reached.done }, isWanted ? "new indexes are ready" : "new indexes were dropped");
    } catch (error) {
      if (!isAppError(error, "too_large")) throw error;
      log.warn({ reason: error.message }, "new indexes cannot have all objects");
      await passes.keep({ ...reached, problem: error.message }, claim);
    }
  }

  async #snapshot(): Promise<Snapshot> {
    if (this.#closing.signal.aborted) throw new AppError("cancelled", "The controller stops.");
    return (await this.#of.catalog.resumed()).snapshot;
  }
}

/** Prefers a pass that has begun. Leaves out indexes that cannot be completed. */
function todo(snapshot: Snapshot, passes: readonly IndexPass[]): IndexPass | undefined {
  const known = new Map(passes.map((pass) => [pass.cid, pass]));
  let fresh: IndexPass | undefined;
  for (const { cid, pendingIndexes } of snapshot.tree("/")) {
    const pass = known.get(cid);
    const numbers = pendingIndexes.map(({ number }) => number);
    const left = numbers.filter((number) => pass?.indexes.includes(number) !== true);
    if (pass !== undefined && pass.problem === undefined && left.length < numbers.length) return pass;
    if (left.length > 0) fresh ??= { cid, indexes: numbers, done: 0 };
  }
  return fresh;
}
