import { ulidOf } from "../../../../../common/ids.ts";
import { KeyedQueue } from "../../../../../common/keyed-queue.ts";
import { EDGE_ENDING_TARGETS_MAX, EDGE_ENDINGS_WAITING_MAX, WRITE_LATE_MS } from "../../../../../common/limits.ts";
import type { Runtime } from "../../../../runtime.ts";
import {
  isTransient,
  Journal,
  type JournalDependencies,
  type Versioned,
  type OpenWork,
} from "../../../../store/journal/index.ts";
import type { EntityKey, ObjectStore } from "../../../../store/objects.ts";
import type { TenantCatalog } from "../../definitions/catalog.ts";
import { definitionsNow } from "../../definitions/confirm.ts";
import { changeAll } from "../changeall.ts";
import { endEdges, pageTo } from "./incoming.ts";

/** A removed object. Edges to it with times up to `endUs` end. */
export interface EndedTarget extends EntityKey {
  readonly endUs: number;
}

/** Edges that are still to be removed. KvStore: `objectedges/<id>`. */
export interface OpenEnding extends OpenWork {
  readonly tenant: string;
  readonly startedMs: number;
  /** The remaining objects, at most `EDGE_ENDING_TARGETS_MAX`. The first one is in progress. */
  readonly targets: readonly EndedTarget[];
  /** Position in the edges of the first target; absent: at their beginning. */
  readonly cursor?: string | undefined;
}

export type EndingJournal = Journal<OpenEnding>;

/** Journal of these removals. Removing the same edges twice has the same effect as once. */
export function endingJournal(dependencies: JournalDependencies): EndingJournal {
  return new Journal(dependencies, { prefix: "objectedges/", tenantOf: ({ tenant }) => tenant, isRepeatable: true });
}

export interface EndingDependencies {
  readonly tenant: string;
  readonly journal: EndingJournal;
  readonly runtime: Runtime;
  readonly store: ObjectStore;
  readonly catalog: Pick<TenantCatalog, "begin" | "resumed">;
}

/**
 * Removes edges to removed objects if they are too many for the call that removes the objects. Works on one journal
 * entry after the other and stores the progress after each page. If this controller fails, another one continues.
 */
export class EdgeEndings {
  readonly #with: EndingDependencies;
  readonly #queue = new KeyedQueue();
  #waiting = 0;

  constructor(dependencies: EndingDependencies) {
    this.#with = dependencies;
  }

  /**
   * Makes a write that ends the edges to these objects. Resolves after the write; the edges may still be stored then.
   */
  async across(targets: readonly EndedTarget[], write: () => Promise<void>): Promise<void> {
    if (targets.length === 0) return write();
    const { journal } = this.#with;
    const works = this.#worksOf(targets);
    for (const { id } of works) journal.inFlight.hold(id);
    let begun: readonly Versioned<OpenEnding>[];
    try {
      begun = await journal.beginAll(works);
      await write();
    } catch (error) {
      // The controller that takes over the entry checks if the write was made.
      for (const { id } of works) journal.inFlight.letGo(id);
      throw error;
    }
    const ended = begun.map((noted) => this.#start(noted));
    if (this.#waiting > EDGE_ENDINGS_WAITING_MAX) await Promise.all(ended);
  }

  /** Takes over an entry that no controller works on. False if `EDGE_ENDINGS_WAITING_MAX` entries already wait here. */
  async takeUp(found: Versioned<OpenEnding>): Promise<boolean> {
    if (this.#waiting >= EDGE_ENDINGS_WAITING_MAX) return false;
    const mine = await this.#with.journal.take(found);
    if (mine) void this.#start(mine);
    return true;
  }

  #worksOf(targets: readonly EndedTarget[]): Omit<OpenEnding, "owner" | "attempt">[] {
    const { tenant, runtime } = this.#with;
    const startedMs = runtime.clock.nowMs();
    const works: Omit<OpenEnding, "owner" | "attempt">[] = [];
    for (let from = 0; from < targets.length; from += EDGE_ENDING_TARGETS_MAX) {
      const id = ulidOf(startedMs, runtime.random.bytes(10));
      works.push({ id, tenant, startedMs, targets: targets.slice(from, from + EDGE_ENDING_TARGETS_MAX) });
    }
    return works;
  }

  /** Never rejects: maintenance takes up an entry whose work failed. */
  async #start(mine: Versioned<OpenEnding>): Promise<void> {
    const { journal, runtime, tenant } = this.#with;
    this.#waiting += 1;
    try {
      await journal.inFlight.carry([mine.open.id], () => this.#queue.run([tenant], () => this.#carry(mine)));
    } catch (error) {
      const log = isTransient(error) ? "warn" : "error";
      runtime.log[log]({ err: error, tenant }, "edges to removed objects are taken away later");
    } finally {
      this.#waiting -= 1;
    }
  }

  /**
   * Works until all edges are removed, this controller stops, or another one continues. Also stops if the removal of an
   * object may still be made.
   */
  async #carry(mine: Versioned<OpenEnding>): Promise<void> {
    const { journal } = this.#with;
    let held: Versioned<OpenEnding> | undefined = mine;
    while (held !== undefined && !journal.inFlight.stopping.aborted) {
      const { targets, cursor } = held.open;
      const [target] = targets;
      if (target === undefined) return journal.end(held.open);
      const isGone = cursor !== undefined || (await this.#isGone(target));
      if (!isGone && this.#mayStillGo(held.open)) return;
      const next = isGone ? await this.#endPage(target, cursor) : undefined;
      held = await journal.step(held, { cursor: next, targets: next === undefined ? targets.slice(1) : targets });
    }
  }

  /** True if the object was removed at `endUs`. An object that exists now must then have been inserted later. */
  async #isGone({ endUs, ...key }: EndedTarget): Promise<boolean> {
    const { store, catalog } = this.#with;
    const { snapshot } = await catalog.resumed();
    if (snapshot.byCid(key.cid)?.kind === "record") return (await store.getRecords([key]))[0] === undefined;
    const [entity] = await store.get([key]);
    return entity === undefined || entity.birthUs > endUs;
  }

  /** True while a controller that was paused may still make the removal: for `WRITE_LATE_MS` after the start. */
  #mayStillGo({ startedMs }: OpenEnding): boolean {
    return this.#with.runtime.clock.nowMs() - startedMs < WRITE_LATE_MS;
  }

  /** Removes the ended edges of one page. Returns the cursor of the next page; undefined after the last one. */
  async #endPage({ endUs, ...key }: EndedTarget, cursor: string | undefined): Promise<string | undefined> {
    const { store, catalog } = this.#with;
    const page = await pageTo(key, cursor, { store });
    const held = await catalog.begin();
    try {
      const definitions = { snapshot: held.snapshot, held, resumed: () => catalog.resumed() };
      await endEdges(page.items, {
        endUs: () => endUs,
        definitions: () => definitionsNow(definitions),
        change: (changes) => changeAll(store, changes),
      });
    } finally {
      held.end();
    }
    return page.cursor;
  }
}
