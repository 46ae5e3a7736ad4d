import { KV_RECENT_MAX_BYTES, KV_RECENT_MAX_ENTRIES } from "../../../../common/limits.ts";
import type { KvEvent } from "../../kv.ts";

/**
 * The latest changes of the key-value store, in memory. Every watch is notified of every write; without this cache,
 * each watch would read and decode it.
 */
export class RecentChanges {
  /** Changes of transactions whose commit is not confirmed yet. */
  readonly #written: KvEvent[] = [];
  /** Committed changes in the order of their revisions, without a gap. */
  #kept: KvEvent[] = [];
  #bytes = 0;
  /** Every change after this revision is kept, up to the last committed one. */
  #after: number | undefined;
  #last = 0;

  /** Call it inside a write transaction. A repeated revision was not committed the first time. */
  write(revision: number, events: readonly KvEvent[]): void {
    const written = this.#written;
    for (let last = written.at(-1); last && revisionOf(last) >= revision; last = written.at(-1)) written.pop();
    this.#after ??= revision - 1;
    written.push(...events);
  }

  /** Confirms that all changes up to this revision are committed. */
  commit(revision: number): void {
    const written = this.#written;
    const end = written.findIndex((event) => revisionOf(event) > revision);
    const committed = written.splice(0, end < 0 ? written.length : end);
    this.#kept.push(...committed);
    this.#bytes += bytesOf(committed);
    this.#last = Math.max(this.#last, revision);
    while (this.#kept.length > KV_RECENT_MAX_ENTRIES || this.#bytes > KV_RECENT_MAX_BYTES) this.#forget();
  }

  /** Changes after `since`, and the revision that they reach. `undefined`: some of them are no longer kept. */
  read(since: number): { readonly events: readonly KvEvent[]; readonly revision: number } | undefined {
    if (this.#after === undefined || since < this.#after) return undefined;
    return { events: this.#kept.slice(this.#firstAfter(since)), revision: Math.max(since, this.#last) };
  }

  /** Drops the older half, in whole revisions. */
  #forget(): void {
    const half = this.#kept[this.#kept.length >> 1];
    const upTo = half ? revisionOf(half) : 0;
    this.#kept = this.#kept.slice(this.#firstAfter(upTo));
    this.#bytes = bytesOf(this.#kept);
    this.#after = upTo;
  }

  #firstAfter(revision: number): number {
    let [low, high] = [0, this.#kept.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (revisionOf(this.#kept[middle]!) > revision) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function revisionOf(event: KvEvent): number {
  return event.kind === "put" ? event.entry.revision : event.revision;
}

function bytesOf(events: readonly KvEvent[]): number {
  return events.reduce((sum, event) => sum + (event.kind === "put" ? event.entry.value.length : 0), 0);
}
