import { isAppError } from "../../../../common/errors.ts";
import {
  CELL_MAX_BYTES,
  CHANGE_INTENT_KEEP_MS,
  CHANGE_LEASE_MS,
  CHANGE_PAGE_INTENTS,
  OBJECT_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { cellMap } from "../../../store/cells.ts";
import type { TenantStore } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson, encodePacked } from "../../../store/format.ts";
import type { KvLease } from "../../../store/kv.ts";
import type { Entity, EntityKey } from "../../../store/objects.ts";
import type { Retry } from "../../../store/calls/retry.ts";
import type { ObjectChangeEvent } from "../types.ts";
import type { WriteEvent } from "../values/events.ts";
import { INTERNAL_CID } from "../values/tombstones.ts";

/**
 * Prefix of one entry for each outbox that may have intents. The other prefix has, for each held outbox, an entry under
 * the lease of its holder.
 */
const BOXES_PREFIX = "objectoutboxes/";
const HOLDERS_PREFIX = "objectoutboxholders/";

/** Intents of one controller. */
export interface Box {
  readonly name: string;
  readonly lease: KvLease;
}

export interface IntentEvent extends WriteEvent, Pick<ObjectChangeEvent, "traceparent" | "steps" | "triggers"> {}

/** The events of a write, stored before it. */
export interface Intent {
  readonly box: Box;
  readonly key: EntityKey;
  readonly timeUs: number;
  readonly events: readonly IntentEvent[];
  /** Number of stored events. It includes those whose writes were not made, which `events` lacks. */
  readonly size: number;
}

export interface OutboxDependencies {
  readonly store: TenantStore;
  readonly runtime: Runtime;
  readonly retry: Retry;
}

/**
 * Intents of a tenant. An intent is stored before a write, and removed after the delivery of its events. If a
 * controller fails, its intents are found by its outbox.
 */
export class Outbox {
  readonly #store: TenantStore;
  readonly #runtime: Runtime;
  readonly #retry: Retry;
  #box: Promise<Box> | undefined;
  #number = 0;

  constructor(of: OutboxDependencies) {
    this.#store = of.store;
    this.#runtime = of.runtime;
    this.#retry = of.retry;
  }

  /**
   * Stores the events. When it resolves, they are durable, and this controller still held the outbox after the write.
   * So no other controller found the outbox empty before. Events that are too large for one intent become several
   * intents.
   */
  async put(events: readonly IntentEvent[]): Promise<readonly Intent[]> {
    for (;;) {
      const box = await this.#held();
      const intents = [...chunks(events)].map((chunk) => this.#intent(box, chunk));
      await this.#store.objects.change(intents.map(changeOf));
      if (box.lease.held()) return intents;
    }
  }

  async remove(intents: readonly Intent[]): Promise<void> {
    const deaths = intents.map(({ box, key, timeUs }) => ({
      key,
      timeUs: timeUs + 1,
      death: true as const,
      dropTerms: [boxTerm(box.name)],
    }));
    await this.#store.objects.change(deaths);
  }

  /** Events in all outboxes except the one that this controller fills now. */
  async *foreignEvents(): AsyncGenerator<IntentEvent> {
    const own = await this.#box?.catch(() => undefined);
    for (const name of await this.#names(BOXES_PREFIX)) {
      if (name === own?.name) continue;
      for await (const items of this.#items(name)) for (const item of items) yield* eventsOf(item);
    }
  }

  /** Takes over the outboxes without a holder, one after the other. */
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

  /** The intents of an outbox. Pages may be empty. */
  async *intents(box: Box): AsyncGenerator<readonly Intent[]> {
    for await (const items of this.#items(box.name)) yield items.map((item) => intentOf(box, item));
  }

  async *#items(name: string): AsyncGenerator<readonly Entity[]> {
    let cursor: string | undefined;
    do {
      const page = { limit: CHANGE_PAGE_INTENTS, ...(cursor === undefined ? {} : { cursor }) };
      const answer = await this.#store.objects.find({ terms: [boxTerm(name)] }, page);
      yield answer.items.filter((item) => item.key.id.startsWith(idPrefix(name)));
      cursor = answer.cursor;
    } while (cursor !== undefined);
  }

  /** Frees the outbox for a takeover; removes it when it is empty. */
  async release({ name, lease }: Box, isEmpty: boolean): Promise<void> {
    if (isEmpty && lease.held()) await this.#retry.run(() => this.#store.kv.delete(BOXES_PREFIX + name));
    await this.#revoke(lease);
  }

  /** Calls `left` each time an outbox loses its holder. Resolves when the signal fires. */
  async watch(signal: AbortSignal, left: () => void): Promise<void> {
    const { revision } = await this.#retry.run(() => this.#store.kv.list(HOLDERS_PREFIX, { limit: 1 }));
    for await (const events of this.#store.kv.watch(HOLDERS_PREFIX, { sinceRevision: revision, signal })) {
      if (events.some((event) => event.kind === "delete")) left();
    }
  }

  /** Removes the outbox of this controller if it is empty; otherwise frees it for a takeover. */
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
        // Keeps the outbox while its lease is held; otherwise the next call opens another one.
        if (this.#box === opening && !(await isHeld(opening))) this.#box = undefined;
      }
    }
  }

  async #open(): Promise<Box> {
    const name = Buffer.from(this.#runtime.random.bytes(12)).toString("hex");
    const lease = await this.#retry.run(() => this.#store.kv.lease(CHANGE_LEASE_MS));
    const then = [
      { kind: "put" as const, key: BOXES_PREFIX + name, value: encodeJson({}) },
      { kind: "put" as const, key: HOLDERS_PREFIX + name, value: encodeJson({}), lease: lease.id },
    ];
    await this.#retry.run(() => this.#store.kv.txn({ if: [], then }));
    return { name, lease };
  }

  #intent(box: Box, events: readonly IntentEvent[]): Intent {
    const id = `${idPrefix(box.name)}${this.#number++}`;
    return {
      box,
      key: { cid: INTERNAL_CID, id },
      timeUs: Math.floor(this.#runtime.clock.nowMs() * 1_000),
      events,
      size: events.length,
    };
  }

  #names(prefix: string): Promise<string[]> {
    return this.#retry.run(async () => {
      const names: string[] = [];
      for await (const { key } of entriesUnder(this.#store.kv, prefix)) names.push(key.slice(prefix.length));
      return names;
    });
  }

  async #revoke(lease: KvLease): Promise<void> {
    try {
      await lease.revoke();
    } catch (error) {
      // The lease expires by itself.
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

function intentOf(box: Box, entity: Entity): Intent {
  const events = eventsOf(entity);
  return { box, key: entity.key, timeUs: entity.birthUs, events, size: events.length };
}

function eventsOf({ cells }: Entity): readonly IntentEvent[] {
  const ordered = [...cellMap(cells)].sort(([a], [b]) => Number(a) - Number(b));
  return ordered.map(([, cell]) => decodeStored<IntentEvent>(cell.value));
}

/** An event that does not fit into a cell is stored without the whole object, then without its fields. */
function encodeEvent(event: IntentEvent): Uint8Array {
  const { whole, ...rest } = event;
  for (const form of [event, ...(whole === undefined ? [] : [rest])]) {
    const bytes = encodePacked(form);
    if (bytes.length <= CELL_MAX_BYTES) return bytes;
  }
  return encodePacked({ ...rest, fields: {} });
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
