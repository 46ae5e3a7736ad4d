import type { Clock, Random } from "../../../common/time.ts";
import { APPCONTEXT_PAGE_ITEMS, WRITE_AHEAD_MAX_MS } from "../../../common/limits.ts";
import { PRESENCE } from "../../store/cells.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodePacked } from "../../store/format.ts";
import type { CellChoice, Entity, EntityChange, EntityKey, ObjectStore } from "../../store/objects.ts";
import { Retry } from "../../store/calls/retry.ts";
import { retrying } from "../../store/calls/retrying.ts";

/** Above every class number that the object database assigns. */
const APPCONTEXT_CID = 0x7fff_ffff;
const CELL = "v";
/** Expiry of the entry, so that an index skips expired entries that are not removed yet. */
const EXPIRY_SLOT = 1;
const NEVER_MS = Number.MAX_SAFE_INTEGER;
const MICROSECONDS = 1_000;

/** A stored text. `madeUs`: creation time of the entry; replacing the text does not change it. */
export interface StoredText {
  readonly text: string;
  readonly madeUs: number;
}

export interface StoredItem extends StoredText {
  readonly id: string;
}

/** Kinds of items: prefixes of their ids and their terms. */
const KINDS = { collection: { id: "i", term: "app=" }, jobContext: { id: "j", term: "job=" } } as const;
export type ItemKind = keyof typeof KINDS;

/** Names have no control characters, so this one ends a name. */
const END = "\n";

/**
 * Variables and items as entities with one cell. Every write has its own time and can be repeated; of two writes to one
 * entry the later wins, with its text and expiry.
 */
export class ContextStore {
  readonly #objects: ObjectStore;
  readonly #times: WriteTimes;
  readonly #clock: Clock;
  readonly #kind: ItemKind;

  constructor(
    objects: ObjectStore,
    { clock, times, kind }: { readonly clock: Clock; readonly times: WriteTimes; readonly kind: ItemKind },
  ) {
    this.#objects = objects;
    this.#clock = clock;
    this.#times = times;
    this.#kind = kind;
  }

  async variable(key: string): Promise<StoredText | undefined> {
    return this.#get(variableKey(key));
  }

  async setVariable(key: string, text: string, expiresAtMs: number | undefined): Promise<void> {
    await this.#put(variableKey(key), { text, expiresAtMs });
  }

  async removeVariable(key: string): Promise<void> {
    await this.#remove(variableKey(key));
  }

  async item(collection: string, id: string): Promise<StoredText | undefined> {
    return this.#get(this.#itemKey(collection, id));
  }

  /** Returns false if `ifThere` is set and the item does not exist. */
  async putItem(
    { collection, id }: { readonly collection: string; readonly id: string },
    value: { readonly text: string; readonly expiresAtMs: number | undefined; readonly ifThere: boolean },
  ): Promise<boolean> {
    return this.#put(this.#itemKey(collection, id), { ...value, term: this.#termOf(collection) });
  }

  async removeItem(collection: string, id: string): Promise<void> {
    await this.#remove(this.#itemKey(collection, id), [this.#termOf(collection)]);
  }

  /** Items of a collection page by page, each once, in no order; a page may be empty. */
  async *items(collection: string): AsyncIterable<readonly StoredItem[]> {
    const prefix = this.#itemKey(collection, "").id;
    for await (const entities of this.#entities(collection)) {
      yield entities.map((entity) => ({ id: entity.key.id.slice(prefix.length), ...stored(entity) }));
    }
  }

  /** Number of items, counted up to `most`. */
  async countItems(collection: string, most: number): Promise<number> {
    let count = 0;
    for await (const entities of this.#entities(collection, PRESENCE)) {
      count += entities.length;
      if (count >= most) return most;
    }
    return count;
  }

  /** Removes the items present when it begins. */
  async removeItems(collection: string): Promise<void> {
    for await (const entities of this.#entities(collection)) {
      await this.#objects.change(
        entities.map(({ key, lastUs }) => ({
          key,
          timeUs: this.#times.above(lastUs),
          death: true,
          forgetHistory: true,
          dropTerms: [this.#termOf(collection)],
        })),
      );
    }
  }

  async *#entities(collection: string, cells?: CellChoice): AsyncIterable<readonly Entity[]> {
    const prefix = this.#itemKey(collection, "").id;
    const nowMs = this.#clock.nowMs();
    const request = {
      terms: [this.#termOf(collection)],
      ranges: [{ slot: EXPIRY_SLOT, from: nowMs }],
      ...(cells && { cells }),
    };
    let cursor: string | undefined;
    do {
      const page = await this.#objects.find(request, {
        limit: APPCONTEXT_PAGE_ITEMS,
        ...(cursor !== undefined && { cursor }),
      });
      yield page.items.filter((entity) => entity.key.id.startsWith(prefix) && !isOver(entity, nowMs));
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  #itemKey(collection: string, id: string): EntityKey {
    return { cid: APPCONTEXT_CID, id: `${KINDS[this.#kind].id}${collection}${END}${id}` };
  }

  #termOf(collection: string): string {
    return `${KINDS[this.#kind].term}${collection}`;
  }

  async #get(key: EntityKey): Promise<StoredText | undefined> {
    const [entity] = await this.#objects.get([key]);
    return entity && !isOver(entity, this.#clock.nowMs()) ? stored(entity) : undefined;
  }

  async #put(
    key: EntityKey,
    value: {
      readonly text: string;
      readonly expiresAtMs: number | undefined;
      readonly term?: string;
      readonly ifThere?: boolean;
    },
  ): Promise<boolean> {
    const [trace] = await this.#objects.trace([key]);
    const before = trace?.entity && !isOver(trace.entity, this.#clock.nowMs()) ? stored(trace.entity) : undefined;
    if (value.ifThere && !before) return false;
    const timeUs = this.#times.above(trace?.lastUs ?? 0);
    const { text, expiresAtMs, term } = value;
    await this.#objects.change([entry(key, timeUs, { text, madeUs: before?.madeUs ?? timeUs, expiresAtMs, term })]);
    return true;
  }

  async #remove(key: EntityKey, dropTerms: readonly string[] = []): Promise<void> {
    const [trace] = await this.#objects.trace([key]);
    const timeUs = this.#times.above(trace?.lastUs ?? 0);
    if (trace?.entity) await this.#objects.change([{ key, timeUs, death: true, forgetHistory: true, dropTerms }]);
  }
}

/** The stores of all tenants. Calls are repeated while they fail for a temporary reason. */
export class ContextStores {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #retry: Retry;
  readonly #times: WriteTimes;
  readonly #kind: ItemKind;

  constructor(
    { stores, clock, random }: { readonly stores: Stores; readonly clock: Clock; readonly random: Random },
    kind: ItemKind,
  ) {
    this.#stores = stores;
    this.#kind = kind;
    this.#clock = clock;
    this.#retry = new Retry({ clock, random });
    this.#times = new WriteTimes(clock, random);
  }

  async of(tenant: string): Promise<ContextStore> {
    const { objects } = await this.#stores.tenant(tenant);
    return new ContextStore(retrying(objects, this.#retry), {
      clock: this.#clock,
      times: this.#times,
      kind: this.#kind,
    });
  }
}

/** Times of writes in microseconds. Each is above the one before, except for entries that are ahead of the clock. */
class WriteTimes {
  readonly #clock: Clock;
  readonly #random: Random;
  #lastUs = 0;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * A time above the known time of an entry. A known time ahead of the clock does not move the times of other entries.
   * The part below the millisecond is random, so two controllers rarely write at the same time.
   */
  above(knownUs: number): number {
    const randomUs = Math.floor(this.#random.next() * MICROSECONDS);
    const nowUs = Math.floor(this.#clock.nowMs()) * MICROSECONDS + randomUs;
    // If the clock was set back by more than that, it was wrong before.
    const isKept = this.#lastUs <= nowUs + WRITE_AHEAD_MAX_MS * MICROSECONDS;
    const commonUs = Math.max(nowUs, isKept ? this.#lastUs + 1 : 0);
    if (knownUs >= commonUs) return knownUs + 1 + randomUs;
    this.#lastUs = commonUs;
    return commonUs;
  }
}

function entry(
  key: EntityKey,
  timeUs: number,
  value: StoredText & { readonly expiresAtMs: number | undefined; readonly term: string | undefined },
): EntityChange {
  const { text, madeUs, expiresAtMs, term } = value;
  return {
    key,
    timeUs,
    birth: true,
    cells: new Map([[CELL, encodePacked([madeUs, text])]]),
    numbers: new Map([[EXPIRY_SLOT, expiresAtMs ?? NEVER_MS]]),
    ...(term !== undefined && { addTerms: [term] }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
  };
}

function stored(entity: Entity): StoredText {
  const cell = entity.cells.get(CELL);
  const [madeUs, text] = cell ? decodeStored<readonly [number, string]>(cell.value) : [entity.birthUs, ""];
  return { madeUs, text };
}

/** Compares with the clock of this controller: the store may remove expired entries late. */
function isOver({ numbers }: Entity, nowMs: number): boolean {
  return (numbers[EXPIRY_SLOT] ?? NEVER_MS) <= nowMs;
}

function variableKey(key: string): EntityKey {
  return { cid: APPCONTEXT_CID, id: `v${key}` };
}
