import { errorText } from "../../../common/errors.ts";
import {
  INGEST_HINT_KEPT_MS,
  INGEST_HINTS_HOSTS_MAX,
  INGEST_HINTS_MS,
  INGEST_HINTS_STREAMS_MAX,
  KV_TXN_MAX_OPERATIONS,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvOperation } from "../../store/kv.ts";
import type { EntrySource } from "../hosts/index.ts";

/** Acknowledged sequences by stream id, the stream used last at the end. */
type Streams = readonly (readonly [streamId: string, acknowledged: number])[];

type Host = Pick<EntrySource, "tenant" | "host">;

interface Known extends Host {
  readonly streams: Map<string, number>;
}

interface HintsOptions {
  readonly stores: Stores;
  readonly runtime: Pick<Runtime, "clock" | "log">;
}

/**
 * Positions up to which the streams of hosts are stored, in KvStore under `ingest/<host>`. Every `INGEST_HINTS_MS`, a
 * controller writes at most one transaction, for up to `KV_TXN_MAX_OPERATIONS` hosts of one tenant. A position is a
 * lower bound: a write may fail or be overwritten by another controller, so more may be stored.
 */
export class Hints {
  readonly #options: HintsOptions;
  /** Hints by host, the least recently used first. */
  readonly #known = new Map<string, Known>();
  /** Hints with changes that are not written yet. */
  readonly #waiting = new Set<Known>();
  #stopTimer: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: HintsOptions) {
    this.#options = options;
  }

  /** The last sequence of the stream that is known to be stored; 0 if none is known. */
  async acknowledged(source: EntrySource): Promise<number> {
    const { kv } = await this.#options.stores.tenant(source.tenant);
    const entry = await kv.get(storeKey(source.host));
    const { streams } = this.#of(source);
    // Streams in memory were used after the stored ones, so they come last.
    const later = [...streams];
    streams.clear();
    for (const [streamId, sequence] of entry ? decodeStored<Streams>(entry.value) : []) streams.set(streamId, sequence);
    for (const [streamId, sequence] of later) {
      const stored = streams.get(streamId) ?? 0;
      streams.delete(streamId);
      streams.set(streamId, Math.max(sequence, stored));
    }
    const acknowledged = streams.get(source.streamId) ?? 0;
    for (const [streamId] of [...streams].slice(0, -INGEST_HINTS_STREAMS_MAX)) streams.delete(streamId);
    return acknowledged;
  }

  note(source: EntrySource, acknowledged: number): void {
    const known = this.#of(source);
    const before = known.streams.get(source.streamId) ?? 0;
    known.streams.delete(source.streamId);
    known.streams.set(source.streamId, Math.max(before, acknowledged));
    this.#waiting.add(known);
    this.#stopTimer ??= this.#options.runtime.clock.after(INGEST_HINTS_MS, () => this.#due());
  }

  async forget({ tenant, host }: Host): Promise<void> {
    this.#drop(keyOf({ tenant, host }));
    await (await this.#options.stores.tenant(tenant)).kv.delete(storeKey(host));
  }

  leave(tenant: string): void {
    for (const [key, known] of this.#known) if (known.tenant === tenant) this.#drop(key);
  }

  /** Writes all waiting hints. Stops after a write that fails; lost hints do no harm. */
  async close(): Promise<void> {
    this.#stopTimer?.();
    await this.#writing;
    for (let before = Infinity; this.#waiting.size > 0 && this.#waiting.size < before; ) {
      before = this.#waiting.size;
      await this.#write();
    }
  }

  #due(): void {
    this.#writing = this.#write().then(() => {
      this.#stopTimer =
        this.#waiting.size > 0 ? this.#options.runtime.clock.after(INGEST_HINTS_MS, () => this.#due()) : undefined;
    });
  }

  /** Writes waiting hints of one tenant in one transaction. If it fails, they wait for the next write. */
  async #write(): Promise<void> {
    const [first] = this.#waiting;
    if (!first) return;
    const some = [...this.#waiting].filter(({ tenant }) => tenant === first.tenant).slice(0, KV_TXN_MAX_OPERATIONS);
    for (const known of some) this.#waiting.delete(known);
    try {
      const { kv } = await this.#options.stores.tenant(first.tenant);
      await kv.txn({ if: [], then: some.map((known) => this.#put(known)) });
    } catch (error) {
      this.#options.runtime.log.debug({ tenant: first.tenant, reason: errorText(error) }, "hints are written later");
      for (const known of some) if (this.#known.get(keyOf(known)) === known) this.#waiting.add(known);
    }
  }

  #put({ host, streams }: Known): KvOperation {
    const latest: Streams = [...streams].slice(-INGEST_HINTS_STREAMS_MAX);
    const expiresAtMs = Math.floor(this.#options.runtime.clock.nowMs()) + INGEST_HINT_KEPT_MS;
    return { kind: "put", key: storeKey(host), value: encodeJson(latest), expiresAtMs };
  }

  #of({ tenant, host }: Host): Known {
    const key = keyOf({ tenant, host });
    const known = this.#known.get(key) ?? { tenant, host, streams: new Map<string, number>() };
    this.#known.delete(key);
    const [oldest] = this.#known.keys();
    if (this.#known.size >= INGEST_HINTS_HOSTS_MAX && oldest !== undefined) this.#drop(oldest);
    this.#known.set(key, known);
    const [first] = known.streams.keys();
    if (known.streams.size > INGEST_HINTS_STREAMS_MAX && first !== undefined) known.streams.delete(first);
    return known;
  }

  #drop(key: string): void {
    const known = this.#known.get(key);
    if (known) this.#waiting.delete(known);
    this.#known.delete(key);
  }
}

function keyOf({ tenant, host }: Host): string {
  return `${tenant}/${host}`;
}

function storeKey(host: string): string {
  return `ingest/${encodeURIComponent(host)}`;
}
