import { ulidOf } from "../../../../common/ids.ts";
import { KeyedQueue } from "../../../../common/keyed-queue.ts";
import { EDGE_ENDING_TARGETS_MAX, EDGE_ENDINGS_WAITING_MAX, WRITE_LATE_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import {
  isTransient,
  Journal,
  type JournalDependencies,
  type Versioned,
  type OpenWork,
} from "../../../store/journal/index.ts";
import type { EntityKey, ObjectStore } from "../../../store/objects.ts";
import type { TenantCatalog } from "../definitions/catalog.ts";
import { definitionsNow } from "../definitions/confirm.ts";
import { changeAll } from "./changeall.ts";
import { endEdges, pageTo } from "./incomingedges.ts";

/** An object that was removed: edges to it with times up to this one end. */
export interface EndedTarget extends EntityKey {
  readonly endUs: number;
}

/** Edges that are still to be taken away. KvStore: `objectedges/<id>`. */
export interface OpenEnding extends OpenWork {
  readonly tenant: string;
  readonly startedMs: number;
  /** The objects that are left, at most `EDGE_ENDING_TARGETS_MAX`. The first one is under way. */
  readonly targets: readonly EndedTarget[];
  /** How far the first one is; absent: at its beginning. */
  readonly cursor?: string | undefined;
}

export type EndingJournal = Journal<OpenEnding>;

/** Taking the same edges away twice has the effect of once. */
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
 * Takes edges to removed objects away that are too many for the call that removes them: one piece of work after the
 * other, noted page by page, and carried on by another controller when this one is gone.
 */
export class EdgeEndings {
  readonly #with: EndingDependencies;
  readonly #queue = new KeyedQueue();
  #waiting = 0;

  constructor(dependencies: EndingDependencies) {
    this.#with = dependencies;
  }

  /** Makes a write with which edges to these objects end. Resolves when it is made, and the edges may still be there. */
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
      // The controller that takes over the noted work sees if the write was made.
      for (const { id } of works) journal.inFlight.letGo(id);
      throw error;
    }
    const ended = begun.map((noted) => this.#start(noted));
    if (this.#waiting > EDGE_ENDINGS_WAITING_MAX) await Promise.all(ended);
  }

  /** Carries on what no controller does. False: enough is waiting here. */
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

  /** Never rejects: what breaks off is taken up again by maintenance. */
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

  /** Until all are taken away, the controller stops, or another one carries it on. */
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

  /** True if the object was removed at that time; an object that exists now was made later. */
  async #isGone({ endUs, ...key }: EndedTarget): Promise<boolean> {
    const { store, catalog } = this.#with;
    const { snapshot } = await catalog.resumed();
    if (snapshot.byCid(key.cid)?.kind === "record") return (await store.getRecords([key]))[0] === undefined;
    const [entity] = await store.get([key]);
    return entity === undefined || entity.birthUs > endUs;
  }

  /** A controller that was held up, or died, may have been at the removal; it is made soon or never. */
  #mayStillGo({ startedMs }: OpenEnding): boolean {
    return this.#with.runtime.clock.nowMs() - startedMs < WRITE_LATE_MS;
  }

  /** Answers where the next page begins, if there is one. */
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
