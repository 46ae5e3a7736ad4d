import {
  CONFIG_CACHED_MAX_AGE_MS,
  CONFIG_CACHED_MAX_BYTES,
  CONFIG_CACHED_READS_MAX,
  CONFIG_CACHED_TREE_MAX_ENTRIES,
} from "../../../common/limits.ts";
import { errorText } from "../../../common/errors.ts";
import type { Runtime } from "../../runtime.ts";
import type { ConfigEntries } from "./entries.ts";
import { parentOf, ROOT } from "./keys.ts";
import type { Entry } from "./stored.ts";

/** One cached read: the entries at and below one key of a tenant. */
interface Read {
  readonly beganMs: number;
  /** `undefined`: the tree has more than `CONFIG_CACHED_TREE_MAX_ENTRIES` entries, so it is not cached. */
  readonly entries: Promise<readonly Entry[] | undefined>;
  /** Estimated memory; 0 until the entries are loaded. */
  bytes: number;
}

/** Estimated memory of one entry in bytes, in addition to its texts. */
const ENTRY_OVERHEAD_BYTES = 256;

/**
 * Caches reads of configuration for a short time. A read is dropped when the watch of its tenant reports a change of
 * its entries. If the watch misses a change or reports it late, an answer is still at most `CONFIG_CACHED_MAX_AGE_MS`
 * old, by the monotonic clock.
 */
export class ConfigCache {
  readonly #entries: Pick<ConfigEntries, "at" | "page" | "watch">;
  readonly #runtime: Pick<Runtime, "clock" | "log">;
  /** Reads by tenant and key; the most recently used one is last. */
  readonly #reads = new Map<string, Read>();
  readonly #watches = new Map<string, Promise<void>>();
  readonly #closed = new AbortController();
  #bytes = 0;

  constructor({ entries, runtime }: { readonly entries: ConfigEntries; readonly runtime: Runtime }) {
    this.#entries = entries;
    this.#runtime = runtime;
  }

  /**
   * Entries at and below the key, in byte order of keys. They were read within the last `CONFIG_CACHED_MAX_AGE_MS`, not
   * all at the same time. Expired entries are left out. `undefined` for a tree that is too large to cache.
   */
  async at(tenant: string, key: string): Promise<readonly Entry[] | undefined> {
    this.#follow(tenant);
    const name = tenant + key;
    const known = this.#reads.get(name);
    const isYoung = known && this.#runtime.clock.monotonicMs() - known.beganMs < CONFIG_CACHED_MAX_AGE_MS;
    const read = isYoung ? known : this.#read(tenant, key);
    if (isYoung) {
      this.#reads.delete(name);
      this.#reads.set(name, known);
    }
    const entries = await read.entries;
    const nowMs = this.#runtime.clock.nowMs();
    return entries?.filter(({ expiresAtMs = Infinity }) => expiresAtMs > nowMs);
  }

  /** Drops the cached reads of a removed tenant. Its watch ends together with its stores. */
  leave(tenant: string): void {
    this.#forgetTenant(tenant);
  }

  /** Ends all watches. */
  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all(this.#watches.values());
  }

  #read(tenant: string, key: string): Read {
    const name = tenant + key;
    this.#forget(name);
    const read = { beganMs: this.#runtime.clock.monotonicMs(), entries: this.#collect(tenant, key), bytes: 0 };
    this.#reads.set(name, read);
    read.entries.then(
      (entries) => this.#keep(name, read, entries ?? []),
      () => this.#reads.get(name) === read && this.#forget(name),
    );
    this.#evict();
    return read;
  }

  async #collect(tenant: string, key: string): Promise<readonly Entry[] | undefined> {
    const found: Entry[] = [];
    for await (const entry of this.#entries.at(tenant, key))
      if (found.push(entry) > CONFIG_CACHED_TREE_MAX_ENTRIES) return undefined;
    return found;
  }

  /** Counts the memory of a finished read, unless it was dropped meanwhile, for example by a reported change. */
  #keep(name: string, read: Read, entries: readonly Entry[]): void {
    if (this.#reads.get(name) !== read) return;
    read.bytes = entries.reduce((sum, entry) => sum + sizeOf(entry), ENTRY_OVERHEAD_BYTES);
    this.#bytes += read.bytes;
    this.#evict();
  }

  #evict(): void {
    for (const name of this.#reads.keys()) {
      if (this.#reads.size <= CONFIG_CACHED_READS_MAX && this.#bytes <= CONFIG_CACHED_MAX_BYTES) return;
      this.#forget(name);
    }
  }

  #forget(name: string): void {
    this.#bytes -= this.#reads.get(name)?.bytes ?? 0;
    this.#reads.delete(name);
  }

  #forgetTenant(tenant: string): void {
    for (const name of this.#reads.keys()) if (name.startsWith(`${tenant}/`)) this.#forget(name);
  }

  #follow(tenant: string): void {
    if (this.#watches.has(tenant) || this.#closed.signal.aborted) return;
    const watch = this.#watch(tenant).catch((error: unknown) => {
      const details = { tenant, reason: errorText(error) };
      if (!this.#closed.signal.aborted) this.#runtime.log.warn(details, "a watch of configuration broke");
    });
    this.#watches.set(
      tenant,
      watch.finally(() => this.#watches.delete(tenant)),
    );
  }

  /** Runs until the watch breaks; the next read starts a new one. */
  async #watch(tenant: string): Promise<void> {
    const { revision } = await this.#entries.page(tenant, ROOT, { limit: 1 });
    // The watch does not report changes made between earlier reads and its start, so drop those reads.
    this.#forgetTenant(tenant);
    const events = this.#entries.watch(tenant, ROOT, { sinceRevision: revision, signal: this.#closed.signal });
    for await (const batch of events) for (const { key } of batch) this.#changed(tenant, key);
  }

  #changed(tenant: string, key: string): void {
    for (let at = key; ; at = parentOf(at)) {
      this.#forget(tenant + at);
      if (at === ROOT) return;
    }
  }
}

function sizeOf({ key, text = "", sealed = "" }: Entry): number {
  return ENTRY_OVERHEAD_BYTES + Buffer.byteLength(key) + Buffer.byteLength(text) + Buffer.byteLength(sealed);
}
