import { CHANGE_BATCH_MAX } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../../store/objects.ts";
import type { WriteRoom } from "../values/room.ts";
import type { WriteBasis } from "../types.ts";
import { definitionsNow, type WriteDefinitions } from "../definitions/confirm.ts";
import type { PublishedEvent } from "../values/events.ts";
import { endEdges, type IncomingEdges } from "./incomingedges.ts";
import type { BeforeTriggers } from "./beforetriggers.ts";
import { ChainQueue } from "./chainqueue.ts";
import type { ObjectTurns } from "./turns.ts";
import { WriteClock } from "./writeclock.ts";

export interface WritingDependencies {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  readonly turns: ObjectTurns;
  /** Number of this controller among concurrent writers. */
  readonly number: () => number;
}

export interface WriteContext extends WriteDefinitions {
  /**
   * Makes the write and publishes its events to subscriptions and listeners. Calls `events` before the write, if any of
   * them wants it.
   */
  readonly publish: (events: () => readonly PublishedEvent[], write: () => Promise<void>) => Promise<void>;
  /** Absent: no class of the tenant has triggers, and none led to this write. */
  readonly triggers: BeforeTriggers | undefined;
  /** What rows follow from where that is not their class as it is now. */
  readonly basis?: WriteBasis | undefined;
  /** Absent: the tenant has no quota. */
  readonly room?: WriteRoom | undefined;
}

/** State shared by all writes of one tenant. */
export class Writing {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  /** By `<class number>:<key>`: writes of one object run one after the other. */
  readonly queue = new ChainQueue();
  readonly clock: WriteClock;
  /** Writes that follow from what they read take turns with those of other controllers. */
  readonly turns: ObjectTurns;

  constructor(of: WritingDependencies) {
    this.store = of.store;
    this.runtime = of.runtime;
    this.turns = of.turns;
    this.clock = new WriteClock(of.runtime.clock, of.number);
  }

  get source(): { readonly store: ObjectStore } {
    return { store: this.store };
  }

  /** Makes the changes in their order, in batches. */
  async change(changes: readonly EntityChange[]): Promise<void> {
    for (let from = 0; from < changes.length; from += CHANGE_BATCH_MAX)
      await this.store.change(changes.slice(from, from + CHANGE_BATCH_MAX));
  }

  endEdges(context: WriteDefinitions, incoming: IncomingEdges, endUs: (target: EntityKey) => number): Promise<void> {
    return endEdges(incoming, {
      endUs,
      definitions: () => definitionsNow(context),
      change: (changes) => this.change(changes),
      ...this.source,
    });
  }
}

/** The greatest known time: a write must be above it. */
export function greatest(known: Iterable<{ readonly lastUs: number }>): number {
  let greatestUs = 0;
  for (const { lastUs } of known) greatestUs = Math.max(greatestUs, lastUs);
  return greatestUs;
}
