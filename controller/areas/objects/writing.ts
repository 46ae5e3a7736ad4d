import { CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../store/objects.ts";
import { definitionsNow, type WriteDefinitions } from "./confirm.ts";
import type { WriteEvent } from "./events.ts";
import { endEdges, type Incoming } from "./incoming.ts";
import type { Patience } from "./patience.ts";
import { KeyedQueue } from "./queue.ts";
import { WriteClock } from "./writeclock.ts";

export interface WritingDependencies {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  readonly patience: Patience;
  /** Of this controller, among those that write at the same time. */
  readonly number: () => number;
}

export interface WriteContext extends WriteDefinitions {
  /** Makes the write, and sees to it that those who want to know are told. They are asked for the events before the write. */
  readonly publish: (events: () => readonly WriteEvent[], write: () => Promise<void>) => Promise<void>;
}

/** What all ways of writing one tenant's objects share. */
export class Writing {
  readonly store: ObjectStore;
  readonly runtime: Runtime;
  readonly patience: Patience;
  /** By `<class number>:<key>`: writes of one object follow each other. */
  readonly queue = new KeyedQueue();
  readonly clock: WriteClock;

  constructor(of: WritingDependencies) {
    this.store = of.store;
    this.runtime = of.runtime;
    this.patience = of.patience;
    this.clock = new WriteClock(of.runtime.clock, of.number);
  }

  get source(): { readonly store: ObjectStore; readonly patience: Patience } {
    return { store: this.store, patience: this.patience };
  }

  /** Any number of changes, in their order. */
  async change(changes: readonly EntityChange[]): Promise<void> {
    for (let from = 0; from < changes.length; from += CHANGE_BATCH_MAX) {
      const batch =
        from === 0 && changes.length <= CHANGE_BATCH_MAX ? changes : changes.slice(from, from + CHANGE_BATCH_MAX);
      await this.patience.repeat(() => this.store.change(batch));
    }
  }

  endEdges(context: WriteDefinitions, incoming: Incoming, endUs: (target: EntityKey) => number): Promise<void> {
    return endEdges(incoming, {
      endUs,
      definitions: () => definitionsNow(context),
      change: (changes) => this.change(changes),
      ...this.source,
    });
  }
}

/** Above it a write has to be. */
export function greatest(known: Iterable<{ readonly lastUs: number }>): number {
  let greatestUs = 0;
  for (const { lastUs } of known) greatestUs = Math.max(greatestUs, lastUs);
  return greatestUs;
}
