import type { Runtime } from "../../../runtime.ts";
import type { EntityChange, EntityKey, ObjectStore, StoredRecord } from "../../../store/objects.ts";
import type { WriteRoom } from "../values/room.ts";
import type { WriteBasis } from "../types.ts";
import type { LoadedClass } from "../definitions/views.ts";
import { definitionsNow, type WriteDefinitions } from "../definitions/confirm.ts";
import type { PublishedEvent } from "../values/events.ts";
import { changeAll } from "./changeall.ts";
import type { EdgeEndings } from "./edges/endings.ts";
import { endEdges, type EdgesEnd, type IncomingEdges } from "./edges/incoming.ts";
import type { BeforeTriggers } from "./beforetriggers.ts";
import { ChainQueue } from "./turns/chainqueue.ts";
import { together, type WriteInCommit } from "./records/incommit.ts";
import type { ObjectTurns } from "./turns/turns.ts";
import type { unstoredRows } from "./entities/unstored.ts";
import { WriteClock } from "./times/writeclock.ts";

export interface WritingDependencies {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  readonly turns: ObjectTurns;
  readonly endings: EdgeEndings;
  /** Number of this controller among concurrent writers. */
  readonly number: () => number;
}

export interface WriteContext extends WriteDefinitions {
  /** True if the class exists for the writer. Targets of relations are only looked for in such classes. */
  readonly readable: (view: LoadedClass) => boolean;
  /**
   * Makes the write and publishes its events to subscriptions and listeners. Calls `events` before the write, if any of
   * them wants it.
   */
  readonly publish: (events: () => readonly PublishedEvent[], write: () => Promise<void>) => Promise<void>;
  /** Absent: no class of the tenant has triggers, and no trigger led to this write. */
  readonly triggers: BeforeTriggers | undefined;
  /** Basis for rows, if it is used instead of the current class. */
  readonly basis?: WriteBasis | undefined;
  /** Absent: the tenant has no quota. */
  readonly room?: WriteRoom | undefined;
  /** Records for the commit of the write. A write that takes several commits does not use it. */
  readonly inCommit?: WriteInCommit | undefined;
}

/** The context for one of several commits: the records of the whole write belong to none of them. */
export function withoutCommit(context: WriteContext): WriteContext {
  return context.inCommit === undefined ? context : { ...context, inCommit: undefined };
}

/** State shared by all writes of one tenant. */
export class Writing {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  /** Writes of one object run one after the other. Keys: `<class number>:<key>`. */
  readonly queue = new ChainQueue();
  readonly clock: WriteClock;
  /** Writes whose values depend on what they read take turns with writes of other controllers. */
  readonly turns: ObjectTurns;
  readonly #endings: EdgeEndings;

  constructor(of: WritingDependencies) {
    this.store = of.store;
    this.runtime = of.runtime;
    this.turns = of.turns;
    this.#endings = of.endings;
    this.clock = new WriteClock(of.runtime.clock, of.number);
  }

  get source(): { readonly store: ObjectStore } {
    return { store: this.store };
  }

  /** Makes the changes in their order, in batches. */
  change(changes: readonly EntityChange[]): Promise<void> {
    return changeAll(this.store, changes);
  }

  /** Makes at most `CHANGE_BATCH_MAX` changes, with these records in their commit. */
  changeOnce(changes: readonly EntityChange[], inCommit: WriteInCommit | undefined): Promise<void> {
    if (inCommit === undefined) return this.change(changes);
    if (inCommit.also !== undefined && this.store.spansSeams !== true)
      throw new Error("A commit of this store does not span its seams.");
    return together(inCommit, (records) => this.store.change(changes, records));
  }

  /** Writes at most `CHANGE_BATCH_MAX` records, with those of `inCommit` in their commit. */
  async append(records: readonly StoredRecord[], inCommit?: WriteInCommit): Promise<void> {
    if (inCommit !== undefined) await together(inCommit, (made) => this.store.append(records, made));
    else if (records.length > 0) await this.store.append(records);
  }

  /** Input of a search for rows whose objects do not exist after their write. */
  lookup(view: LoadedClass): Parameters<typeof unstoredRows>[1] {
    return { view, nowMs: this.runtime.clock.nowMs(), ...this.source };
  }

  /** Removes the edges that were read and that end with the removal of their targets. */
  endEdges(
    context: WriteDefinitions,
    { edges }: IncomingEdges,
    of: Pick<EdgesEnd, "endUs" | "alsoEnds">,
  ): Promise<void> {
    return endEdges(edges, {
      ...of,
      definitions: () => definitionsNow(context),
      change: (changes) => this.change(changes),
    });
  }

  /** Makes a write that ends edges. Those that were not read are removed in the background. */
  ending({ more }: IncomingEdges, endUs: (target: EntityKey) => number, write: () => Promise<void>): Promise<void> {
    const targets = [...more].map((target) => ({ ...target, endUs: endUs(target) }));
    return this.#endings.across(targets, write);
  }
}
