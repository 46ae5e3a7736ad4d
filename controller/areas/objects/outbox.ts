import { isAppError } from "../../../common/errors.ts";
import {
  CELL_MAX_BYTES,
  CHANGE_INTENT_KEEP_MS,
  CHANGE_LEASE_MS,
  CHANGE_PAGE_INTENTS,
  OBJECT_MAX_BYTES,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { TenantStore } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { cellMap } from "../../store/cells.ts";
import { decodeStored, encodeJson, encodePacked } from "../../store/format.ts";
import type { KvLease } from "../../store/kv.ts";
import type { Entity, EntityKey } from "../../store/objects.ts";
import type { WriteEvent } from "./events.ts";
import { GRAVES_CID } from "./graves.ts";
import type { Patience } from "./patience.ts";

/** An entry for each outbox that may have intents, and below the other prefix one under the lease of whoever works with it. */
const BOXES_PREFIX = "objectoutboxes/";
const HOLDERS_PREFIX = "objectoutboxholders/";

/** Intents of one controller. */
export interface Box {
  readonly name: string;
  readonly lease: KvLease;
}

export interface IntentEvent extends WriteEvent {
  readonly traceparent: string;
}

/** What a write is about to do, stored before it. */
export interface Intent {
  readonly box: Box;
  readonly key: EntityKey;
  readonly timeUs: number;
  readonly events: readonly IntentEvent[];
  /** How many events are stored: those that are found not to have happened leave `events`. */
  readonly size: number;
}

export interface OutboxDependencies {
  readonly store: TenantStore;
  readonly runtime: Runtime;
  readonly patience: Patience;
}

/** Intents of a tenant: stored before a write, removed when what it did was told. Those of a controller that is gone are found by its box. */
export class Outbox {
  readonly #store: TenantStore;
  readonly #runtime: Runtime;
  readonly #patience: Patience;
  #box: Promise<Box> | undefined;
  #number = 0;

  constructor(of: OutboxDependencies) {
    this.#store = of.store;
    this.#runtime = of.runtime;
    this.#patience = of.patience;
  }

  /**
   * Durable when it resolves, in a box that was still this controller's afterwards: nobody else can have found it empty before. Several where one
   * would be too large.
   */
  async put(events: readonly IntentEvent[]): Promise<readonly Intent[]> {
    for (;;) {
      const box = await this.#held();
      const intents = [...chunks(events)].map((chunk) => this.#intent(box, chunk));
      await this.#patience.repeat(() => this.#store.objects.change(intents.map(changeOf)));
      if (box.lease.held()) return intents;
    }
  }

  async remove(intents: readonly Intent[]): Promise<void> {
    const deaths = intents.map(({ key, timeUs }) => ({ key, timeUs: timeUs + 1, death: true as const }));
    await this.#patience.repeat(() => this.#store.objects.change(deaths));
  }

  /** Takes over the boxes that nobody has, one after the other. */
  async *orphans(): AsyncGenerator<Box> {
    const boxes = await this.#names(BOXES_PREFIX);
    const held = new Set(await this.#names(HOLDERS_PREFIX));
    for (const name of boxes.filter((box) => !held.has(box))) {
      const lease = await this.#store.kv.lease(CHANGE_LEASE_MS);
      const put = await this.#store.kv.put(HOLDERS_PREFIX + name, encodeJson({}), { ifRevision: 0, lease: lease.id });
      if (put.ok) yield { name, lease };
      else await this.#revoke(lease);
    }
  }

  /** Pages of what a box has. They may be empty. */
  async *intents(box: Box): AsyncGenerator<readonly Intent[]> {
    let cursor: string | undefined;
    do {
      const page = { limit: CHANGE_PAGE_INTENTS, ...(cursor === undefined ? {} : { cursor }) };
      const answer = await this.#patience.repeat(() => this.#store.objects.find({ terms: [boxTerm(box.name)] }, page));
      yield answer.items
        .filter((item) => item.key.id.startsWith(idPrefix(box.name)))
        .map((item) => intentOf(box, item));
      cursor = answer.cursor;
    } while (cursor !== undefined);
  }

  /** Gives the box back; for good when it is empty. */
  async release({ name, lease }: Box, isEmpty: boolean): Promise<void> {
    if (isEmpty && lease.held()) await this.#patience.repeat(() => this.#store.kv.delete(BOXES_PREFIX + name));
    await this.#revoke(lease);
  }

  /** Calls back each time a box lost its holder; resolves when the signal fired. */
  async watch(signal: AbortSignal, left: () => void): Promise<void> {
    const { revision } = await this.#patience.repeat(() => this.#store.kv.list(HOLDERS_PREFIX, { limit: 1 }));
    for await (const events of this.#store.kv.watch(HOLDERS_PREFIX, { sinceRevision: revision, signal })) {
      if (events.some((event) => event.kind === "delete")) left();
    }
  }

  /** Gives this controller's box to whoever takes it, or away when it is empty. */
  async close(isEmpty: boolean): Promise<void> {
    const box = await this.#box?.catch(() => undefined);
    if (box !== undefined) await this.release(box, isEmpty);
  }

  async #held(): Promise<Box> {
    for (;;) {
      const opening = (this.#box ??= this.#open());
      try {
        const box = await opening;
        if (box.lease.held()) return box;
      } finally {
        // Kept while it is held: not held, or not opened, it is another one's turn.
        if (this.#box === opening && !(await isHeld(opening))) this.#box = undefined;
      }
    }
  }

  async #open(): Promise<Box> {
    const name = Buffer.from(this.#runtime.random.bytes(12)).toString("hex");
    const lease = await this.#patience.repeat(() => this.#store.kv.lease(CHANGE_LEASE_MS));
    const then = [
      { kind: "put" as const, key: BOXES_PREFIX + name, value: encodeJson({}) },
      { kind: "put" as const, key: HOLDERS_PREFIX + name, value: encodeJson({}), lease: lease.id },
    ];
    await this.#patience.repeat(() => this.#store.kv.txn({ if: [], then }));
    return { name, lease };
  }

  #intent(box: Box, events: readonly IntentEvent[]): Intent {
    const id = `${idPrefix(box.name)}${this.#number++}`;
    return {
      box,
      key: { cid: GRAVES_CID, id },
      timeUs: Math.floor(this.#runtime.clock.nowMs() * 1_000),
      events,
      size: events.length,
    };
  }

  #names(prefix: string): Promise<string[]> {
    return this.#patience.repeat(async () => {
      const names: string[] = [];
      for await (const { key } of entriesUnder(this.#store.kv, prefix)) names.push(key.slice(prefix.length));
      return names;
    });
  }

  async #revoke(lease: KvLease): Promise<void> {
    try {
      await lease.revoke();
    } catch (error) {
      // It ends by itself.
      if (!isAppError(error, "unavailable", "unknown_outcome")) throw error;
    }
  }
}

async function isHeld(opening: Promise<Box>): Promise<boolean> {
  return opening.then(
    (box) => box.lease.held(),
    () => false,
  );
}

function boxTerm(name: string): string {
  return `o${name}`;
}

function idPrefix(name: string): string {
  return `o${name}/`;
}

function changeOf({ box, key, timeUs, events }: Intent) {
  const cells = new Map(events.map((event, at) => [String(at), encodeEvent(event)]));
  return {
    key,
    timeUs,
    birth: true as const,
    addTerms: [boxTerm(box.name)],
    cells,
    expiresAtMs: Math.floor(timeUs / 1_000) + CHANGE_INTENT_KEEP_MS,
  };
}

function intentOf(box: Box, { key, birthUs, cells }: Entity): Intent {
  const ordered = [...cellMap(cells)].sort(([a], [b]) => Number(a) - Number(b));
  return {
    box,
    key,
    timeUs: birthUs,
    events: ordered.map(([, cell]) => decodeStored<IntentEvent>(cell.value)),
    size: ordered.length,
  };
}

/** An event whose fields are too many for a cell is stored without them. */
function encodeEvent(event: IntentEvent): Uint8Array {
  const bytes = encodePacked(event);
  return bytes.length <= CELL_MAX_BYTES ? bytes : encodePacked({ ...event, fields: {} });
}

/** Events that fit together into one entity. */
function* chunks(events: readonly IntentEvent[]): Generator<readonly IntentEvent[]> {
  let chunk: IntentEvent[] = [];
  let bytes = 0;
  for (const event of events) {
    const size = encodeEvent(event).length;
    if (bytes + size > OBJECT_MAX_BYTES && chunk.length > 0) {
      yield chunk;
      chunk = [];
      bytes = 0;
    }
    chunk.push(event);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}
