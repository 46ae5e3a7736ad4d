import { mapLimited } from "../../../common/concurrency.ts";
import { KeyedQueue } from "../../../common/keyed-queue.ts";
import { AppError } from "../../../common/errors.ts";
import {
  CONFIG_HISTORY_KEEP_DAYS,
  CONFIG_HISTORY_MAX_ENTRIES,
  CONFIG_READS_AT_ONCE,
  CONFIG_WRITE_ATTEMPTS_MAX,
  DAY_SECONDS,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import type { KvCondition, KvListOptions, KvOperation, KvStore, KvWatchOptions } from "../../store/kv.ts";
import { Retry } from "../../store/calls/retry.ts";
import { below, ROOT } from "./keys.ts";
import {
  decodeVersion,
  encodeVersion,
  entryOf,
  isDelete,
  keyOf,
  slotKey,
  slotPrefix,
  valueKey,
  type Content,
  type Entry,
  type Version,
} from "./stored.ts";

/**
 * Decides the new content of a key from its present entry. `"delete"` deletes the entry; `undefined` leaves it
 * unchanged. Called again if another write came first.
 */
export type Decide = (found: Entry | undefined) => Content | "delete" | undefined;

export interface WriteOptions {
  readonly by: string;
  /**
   * Written in the same transaction, on condition that its key still has this revision. Otherwise nothing is written,
   * and the result has `held: false`.
   */
  readonly fence?: { readonly key: string; readonly revision: number; readonly value: Uint8Array };
}

/** The result of a write. */
export interface Written {
  /** False if the condition of the fence failed: nothing was written. */
  readonly held: boolean;
  /** Revision of the fence after the write; 0 without a fence. */
  readonly revision: number;
  /** Id of the write, in the versions that it made. Absent: no entry was changed. */
  readonly id?: string;
}

interface Head {
  readonly key: string;
  readonly found: Entry | undefined;
  /** Number of the key's latest version; 0 if there is none. */
  readonly n: number;
  readonly conditions: readonly KvCondition[];
}

interface Change {
  readonly head: Head;
  readonly version: Version;
}

export interface EntryEvent {
  readonly key: string;
  readonly revision: number;
  /** Absent: the entry was deleted or has expired. */
  readonly entry?: Entry;
}

export interface EntryPage {
  readonly entries: readonly Entry[];
  /** Revision of the store when the page was read. */
  readonly revision: number;
  readonly next?: string;
}

const HISTORY_KEEP_MS = CONFIG_HISTORY_KEEP_DAYS * DAY_SECONDS * 1_000;
const ID_BYTES = 9;

/**
 * The entries of configuration and their versions. Checks no rights, because only services that own keys use it. Single
 * reads and writes are linearizable. Each page of a list is linearizable, a list of several pages is not.
 */
export class ConfigEntries {
  readonly #stores: Stores;
  readonly #runtime: Pick<Runtime, "clock" | "random">;
  readonly #retry: Retry;
  /** Runs writes of the same key on this controller one after the other, so that they do not make each other repeat. */
  readonly #queue = new KeyedQueue();

  constructor({
    stores,
    runtime,
  }: {
    readonly stores: Stores;
    readonly runtime: Pick<Runtime, "clock" | "random">;
  }) {
    this.#stores = stores;
    this.#runtime = runtime;
    this.#retry = new Retry(runtime);
  }

  async get(tenant: string, key: string): Promise<Entry | undefined> {
    const entry = await (await this.#kv(tenant)).get(valueKey(key));
    return entry && entryOf(entry);
  }

  /**
   * One page of the entries whose keys begin with `prefix`, in byte order of keys. `next` is the `after` of the next
   * page.
   */
  async page(tenant: string, prefix: string, { after, limit }: KvListOptions = {}): Promise<EntryPage> {
    const { entries, revision, next } = await (await this.#kv(tenant)).list(valueKey(prefix), {
      ...(after !== undefined && { after: valueKey(after) }),
      ...(limit !== undefined && { limit }),
    });
    return { entries: entries.map(entryOf), revision, ...(next !== undefined && { next: keyOf(next) }) };
  }

  /**
   * Yields every change of an entry whose key begins with `prefix`, in the order of `KvStore.watch`. For a deleted or
   * expired entry, the event has no `entry`.
   */
  async *watch(tenant: string, prefix: string, options: KvWatchOptions): AsyncGenerator<readonly EntryEvent[]> {
    for await (const events of (await this.#kv(tenant)).watch(valueKey(prefix), options))
      yield events.map((event) =>
        event.kind === "put"
          ? { key: keyOf(event.entry.key), revision: event.entry.revision, entry: entryOf(event.entry) }
          : { key: keyOf(event.key), revision: event.revision },
      );
  }

  /** Entries at and below the key, in byte order of keys. They are read during the call, not all at the same time. */
  async *at(tenant: string, key: string): AsyncGenerator<Entry> {
    const rest = this.under(tenant, below(key));
    // Start both reads at once, so that together they take one round trip to the store.
    const own = key === ROOT ? undefined : this.get(tenant, key);
    const [entry, first] = await Promise.all([own, rest.next()]);
    if (entry) yield entry;
    yield* continued(first, rest);
  }

  async *under(tenant: string, prefix: string): AsyncGenerator<Entry> {
    for await (const entry of entriesUnder(await this.#kv(tenant), valueKey(prefix))) yield entryOf(entry);
  }

  /**
   * Versions of a key, latest first: at most `CONFIG_HISTORY_MAX_ENTRIES`, not older than `CONFIG_HISTORY_KEEP_DAYS`.
   */
  async versions(tenant: string, key: string): Promise<readonly Version[]> {
    const found: Version[] = [];
    for await (const { value } of entriesUnder(await this.#kv(tenant), slotPrefix(key)))
      found.push(decodeVersion(value));
    return found.sort((one, other) => other.n - one.n);
  }

  /**
   * Changes all of the keys or none of them, in one transaction that also stores the new versions.
   * `AppError("conflict")` if other controllers were first `CONFIG_WRITE_ATTEMPTS_MAX` times.
   * `AppError("unknown_outcome")` if it is unknown whether the change was made.
   */
  write(
    tenant: string,
    keys: readonly string[],
    decide: (key: string) => Decide,
    options: WriteOptions,
  ): Promise<Written> {
    const names = keys.map((key) => `${tenant}${key}`);
    return this.#queue.run(names, async () => {
      const kv = await this.#kv(tenant);
      for (let attempt = 1; attempt <= CONFIG_WRITE_ATTEMPTS_MAX; attempt += 1) {
        const heads = await mapLimited(keys, CONFIG_READS_AT_ONCE, (key) => this.#head(kv, key));
        const changes = this.#changes(heads, decide, options.by);
        const written = await this.#commit(kv, changes, options);
        if (written !== undefined) return { ...written, ...(changes[0] && { id: changes[0].version.id }) };
      }
      throw new AppError("conflict", `${keys[0] ?? ""} is being changed by others all the time; try again.`);
    });
  }

  async #kv(tenant: string): Promise<KvStore> {
    return (await this.#stores.tenant(tenant)).kv;
  }

  async #head(kv: KvStore, key: string): Promise<Head> {
    const entry = await this.#retry.run(() => kv.get(valueKey(key)));
    const there = { key: valueKey(key), revision: entry?.revision ?? 0 };
    if (entry && decodeVersion(entry.value).n > 0) {
      const found = entryOf(entry);
      return { key, found, n: found.n, conditions: [there] };
    }
    return { key, found: entry && entryOf(entry), ...(await this.#former(kv, key, there)) };
  }

  /**
   * Finds the number of the latest version of an absent key in its history. If the key is created and deleted
   * meanwhile, the slot of the next version changes, so the conditions fail.
   */
  async #former(kv: KvStore, key: string, there: KvCondition): Promise<Pick<Head, "n" | "conditions">> {
    const slots = await this.#retry.run(async () => {
      const all = new Map<string, { readonly n: number; readonly revision: number }>();
      for await (const slot of entriesUnder(kv, slotPrefix(key)))
        all.set(slot.key, { n: decodeVersion(slot.value).n, revision: slot.revision });
      return all;
    });
    const n = Math.max(0, ...[...slots.values()].map((slot) => slot.n));
    const slot = slotKey(key, n + 1);
    return { n, conditions: [there, { key: slot, revision: slots.get(slot)?.revision ?? 0 }] };
  }

  #changes(heads: readonly Head[], decide: (key: string) => Decide, by: string): readonly Change[] {
    const { clock, random } = this.#runtime;
    const atMs = clock.nowMs();
    const id = Buffer.from(random.bytes(ID_BYTES)).toString("base64url");
    return heads.flatMap((head) => {
      const content = decide(head.key)(head.found);
      if (content === undefined || (content === "delete" && head.found === undefined)) return [];
      const version = { n: head.n + 1, id, by, atMs, ...(content === "delete" ? {} : content) };
      return [{ head, version }];
    });
  }

  /** Writes the changes. `undefined` if entries have changed, so that the content must be decided again. */
  async #commit(kv: KvStore, changes: readonly Change[], { fence }: WriteOptions): Promise<Written | undefined> {
    const [first] = changes;
    if (first === undefined && fence === undefined) return { held: true, revision: 0 };
    const conditions = changes.flatMap(({ head }) => head.conditions);
    const then = changes.flatMap(operations);
    const request = {
      if: fence ? [...conditions, { key: fence.key, revision: fence.revision }] : conditions,
      then: fence ? [...then, { kind: "put", key: fence.key, value: fence.value } as const] : then,
    };
    const { ok, revision } = await this.#retry.run(() => kv.txn(request));
    if (ok) return { held: true, revision: fence ? revision : 0 };
    // The transaction failed, but an earlier try of it, whose answer was lost, may have succeeded.
    if (fence) return this.#fenced(kv, fence);
    return first && (await this.#isThere(kv, first)) ? { held: true, revision: 0 } : undefined;
  }

  async #fenced(kv: KvStore, fence: NonNullable<WriteOptions["fence"]>): Promise<Written | undefined> {
    const now = await this.#retry.run(() => kv.get(fence.key));
    if (now?.revision === fence.revision) return undefined;
    const isMine = now !== undefined && Buffer.compare(now.value, fence.value) === 0;
    return { held: isMine, revision: now?.revision ?? 0 };
  }

  async #isThere(kv: KvStore, { head, version }: Change): Promise<boolean> {
    const slot = await this.#retry.run(() => kv.get(slotKey(head.key, version.n)));
    const now = slot && decodeVersion(slot.value);
    if (now === undefined || now.n < version.n) return false;
    if (now.n >= version.n + CONFIG_HISTORY_MAX_ENTRIES)
      throw new AppError("unknown_outcome", `Whether ${head.key} was changed is not known: others changed it often.`);
    return now.id === version.id;
  }
}

/** Yields the first result, which was already taken from the generator, and then the rest. */
export async function* continued<T>(first: IteratorResult<T>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return(undefined);
  }
}

function operations({ head, version }: Change): readonly KvOperation[] {
  const value = encodeVersion(head.key, version);
  const slot: KvOperation = {
    kind: "put",
    key: slotKey(head.key, version.n),
    value,
    expiresAtMs: version.atMs + HISTORY_KEEP_MS,
  };
  if (isDelete(version)) return [{ kind: "delete", key: valueKey(head.key) }, slot];
  const { expiresAtMs } = version;
  return [{ kind: "put", key: valueKey(head.key), value, ...(expiresAtMs !== undefined && { expiresAtMs }) }, slot];
}
