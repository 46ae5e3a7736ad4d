import { AppError } from "../../../../common/errors.ts";
import {
  KV_LOG_MAX_BYTES,
  KV_LOG_MAX_ENTRIES,
  KV_PAGE_MAX_BYTES,
  KV_WATCH_BATCH_MAX_ENTRIES,
} from "../../../../common/limits.ts";
import { decodeStored, encodePacked } from "../../format.ts";
import { openValue, sealValue } from "../../kv/expiry.ts";
import type { KvEntry, KvEvent } from "../../kv.ts";
import type { Environment } from "../environment/environment.ts";
import { RecentChanges } from "./recent.ts";
import { concat, readU64, textBytes, u32, u64 } from "../bytes/keys.ts";

const STATE = textBytes("kvstate");
/** Factor by which the log may exceed its limit before it is cut, so that not every write cuts it. */
const SLACK = 1.1;

export interface KvState {
  readonly revision: number;
  /** Changes up to this revision are no longer kept. */
  readonly compacted: number;
  readonly entries: number;
  readonly bytes: number;
}

/** The value is sealed together with its expiry. */
type Packed = readonly [
  key: string,
  revision: number,
  createRevision: number,
  lease: string | null,
  value: Uint8Array | null,
];

/** The changes of the key-value store in the order of their revisions, and the current revision. */
export class KvLog {
  readonly #env: Environment;
  readonly #recent = new RecentChanges();

  constructor(env: Environment) {
    this.#env = env;
  }

  state(): KvState {
    const stored = this.#env.read().meta.get(STATE);
    if (stored === undefined) return { revision: 0, compacted: 0, entries: 0, bytes: 0 };
    const [revision, compacted, entries, bytes] = decodeStored<[number, number, number, number]>(stored);
    return { revision, compacted, entries, bytes };
  }

  /** Call it inside a write transaction. Appends the changes of one revision. */
  append(state: KvState, revision: number, events: readonly KvEvent[]): void {
    let { entries, bytes } = state;
    this.#recent.write(revision, events);
    events.forEach((event, index) => {
      const value = encodePacked(packEvent(event));
      this.#env.tables.kvlog.put(concat(u64(revision), u32(index)), value);
      entries += 1;
      bytes += value.length;
    });
    const next = { revision, compacted: state.compacted, entries, bytes };
    const full = entries > KV_LOG_MAX_ENTRIES * SLACK || bytes > KV_LOG_MAX_BYTES * SLACK;
    this.#save(
      full ? this.#cut(next, (left) => left.entries <= KV_LOG_MAX_ENTRIES && left.bytes <= KV_LOG_MAX_BYTES) : next,
    );
  }

  /** Call it after each commit, before watches are woken. */
  committed(): void {
    this.#recent.commit(this.state().revision);
  }

  /** Call it inside a write transaction. Removes every change up to the current revision. */
  compact(): void {
    const state = this.state();
    this.#save({ ...this.#cut(state, (left) => left.entries === 0), compacted: state.revision });
  }

  /** Changes under `prefix` after `since`, in whole revisions, and the revision they reach. */
  read(since: number, prefix: string): { readonly events: readonly KvEvent[]; readonly revision: number } {
    const { compacted, revision: latest } = this.state();
    if (since < compacted) throw new AppError("compacted", `Changes up to revision ${compacted} are no longer kept.`);
    const recent = this.#recent.read(since);
    if (recent) return { ...recent, events: recent.events.filter((event) => keyOf(event).startsWith(prefix)) };
    const events: KvEvent[] = [];
    let [seen, bytes, position] = [0, 0, since];
    for (const { key, value } of this.#env.tables.kvlog.getRange({ start: u64(since + 1) })) {
      const revision = readU64(key, 0);
      if (revision !== position && (seen >= KV_WATCH_BATCH_MAX_ENTRIES || bytes >= KV_PAGE_MAX_BYTES))
        return { events, revision: position };
      position = revision;
      seen += 1;
      bytes += value.length;
      const packed = decodeStored<Packed>(value);
      // Checked first: opening a value copies it, and most changes have other prefixes.
      if (packed[0].startsWith(prefix)) events.push(unpackEvent(packed));
    }
    return { events, revision: Math.max(since, latest) };
  }

  /** Removes the oldest revisions, each as a whole, until `enough`. */
  #cut(state: KvState, enough: (left: KvState) => boolean): KvState {
    let { compacted, entries, bytes } = state;
    const doomed: Uint8Array[] = [];
    for (const { key, value } of this.#env.tables.kvlog.getRange({ start: u64(0) })) {
      const revision = readU64(key, 0);
      if (revision !== compacted && enough({ ...state, entries, bytes })) break;
      compacted = revision;
      entries -= 1;
      bytes -= value.length;
      doomed.push(key);
    }
    for (const key of doomed) this.#env.tables.kvlog.remove(key);
    return { revision: state.revision, compacted, entries, bytes };
  }

  #save(state: KvState): void {
    this.#env.tables.meta.put(STATE, encodePacked([state.revision, state.compacted, state.entries, state.bytes]));
  }
}

export function packEntry(entry: KvEntry): Uint8Array {
  return encodePacked(pack(entry));
}

export function unpackEntry(stored: Uint8Array): KvEntry {
  return toEntry(decodeStored<Packed>(stored));
}

function keyOf(event: KvEvent): string {
  return event.kind === "put" ? event.entry.key : event.key;
}

function packEvent(event: KvEvent): Packed {
  if (event.kind === "delete") return [event.key, event.revision, 0, null, null];
  return pack(event.entry);
}

function pack({ key, revision, createRevision, lease, value, expiresAtMs }: KvEntry): Packed {
  return [key, revision, createRevision, lease ?? null, sealValue(value, expiresAtMs)];
}

function unpackEvent(packed: Packed): KvEvent {
  if (packed[4] === null) return { kind: "delete", key: packed[0], revision: packed[1] };
  return { kind: "put", entry: toEntry(packed) };
}

function toEntry([key, revision, createRevision, lease, value]: Packed): KvEntry {
  const entry = { key, ...openValue(value ?? new Uint8Array()), createRevision, revision };
  return lease === null ? entry : { ...entry, lease };
}
