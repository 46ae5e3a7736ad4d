import { mapLimited } from "../../../../common/concurrency.ts";
import {
  FILE_BLOB_CALLS_IN_FLIGHT,
  FILE_HISTORY_BUCKETS,
  FILE_HISTORY_PATHS_AT_ONCE,
  FILE_HISTORY_PER_FILE_MAX,
  FILE_HISTORY_RECORD_BYTES,
  FILE_HISTORY_ROWS_AT_ONCE,
} from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import type { ObjectRow, Pushdown, Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { entryOf, platform, refOf, type FileEntry, type HeldContent } from "../entries.ts";
import type { Place } from "../names.ts";
import { HISTORY_CLASS } from "./classes.ts";
import { formerOf, historyRef, keyOf, rowOf, type Change, type FormerFile } from "./former.ts";

/** Bounds of the history of a tenant. */
export interface HistoryBounds {
  readonly ageMs: number;
  /** Bytes of all kept contents, with `FILE_HISTORY_RECORD_BYTES` for each. The oldest ones go first. */
  readonly maxBytes: number;
}

interface Dependencies {
  readonly stores: Stores;
  readonly objects: Unrestricted<"get" | "read" | "insert" | "remove">;
  /** Absent: nothing is kept. */
  readonly bounds?: HistoryBounds | undefined;
}

/**
 * Former contents of files. A content that a file loses keeps the mark of the file: an object of the history names it
 * from then on, and removes it when it is purged. The object is written before the file changes. So an object may name
 * the mark of a file that still has it; then its purge leaves the mark alone.
 */
export class HistoryStore {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  get bounds(): HistoryBounds | undefined {
    return this.#with.bounds;
  }

  /** Call it before the entries are replaced or removed. May be repeated. */
  async keep(principal: Principal, entries: readonly FileEntry[], change: Change): Promise<void> {
    const { bounds, objects } = this.#with;
    const kept = entries.filter(({ size }) => bounds !== undefined && size <= bounds.maxBytes);
    if (kept.length === 0) return;
    const rows = kept.map((entry) => rowOf(principal, entry, change));
    await objects.unrestricted.insert(platform(principal), principal.ospace + HISTORY_CLASS.path, rows);
    await this.#prune(
      principal,
      kept.filter(({ content }) => content !== undefined),
    );
  }

  /** The contents that the history does not name. */
  async loose(principal: Principal, contents: readonly HeldContent[]): Promise<readonly HeldContent[]> {
    const { bounds, objects } = this.#with;
    if (!bounds || contents.length === 0) return contents;
    const refs = contents.map((content) => historyRef(principal, keyOf({ content, space: "user", fullname: "" })));
    const rows = await objects.unrestricted.get(platform(principal), refs);
    return contents.filter((_, at) => !rows[at]);
  }

  async find(principal: Principal, key: string): Promise<FormerFile | undefined> {
    const [row] = await this.#with.objects.unrestricted.get(platform(principal), [historyRef(principal, key)]);
    return row && formerOf(principal, row);
  }

  /** Former files that fulfil the condition, page by page, in no order. */
  async *read(
    principal: Principal,
    where: readonly Pushdown[],
    signal?: AbortSignal,
  ): AsyncGenerator<readonly FormerFile[]> {
    for await (const rows of this.#rows(principal, where, signal)) yield rows.map((row) => formerOf(principal, row));
  }

  /** Former contents of these files, newest first. */
  async of(principal: Principal, places: readonly Place[]): Promise<readonly FormerFile[]> {
    const found: FormerFile[] = [];
    const values = places.map(({ fullname }) => fullname);
    for await (const page of this.read(principal, [{ kind: "equals", column: "fullname", values }]))
      found.push(...page.filter(({ entry }) => places.some((place) => isAt(entry, place)) && entry.content));
    return found.sort(newestFirst);
  }

  /** Removes former files, and their contents unless a file has them. Safe to repeat. */
  async purge(principal: Principal, former: readonly FormerFile[]): Promise<void> {
    const purged = await this.#unmarkLost(principal, former);
    await this.#with.objects.unrestricted.remove(
      platform(principal),
      former.map(({ key }) => historyRef(principal, key)),
    );
    // A file may have lost its content meanwhile, and left the mark to the object.
    await this.#unmarkLost(
      principal,
      former.filter((one) => !purged.includes(one)),
    );
  }

  /** Removes the marks of the contents that no file has, and returns those. */
  async #unmarkLost(principal: Principal, former: readonly FormerFile[]): Promise<readonly FormerFile[]> {
    const { stores, objects } = this.#with;
    const held = former.filter(({ entry }) => entry.content);
    const refs = held.map(({ entry }) => refOf(principal, entry));
    const rows = await objects.unrestricted.get(platform(principal), refs);
    const lost = held.filter(({ entry }, at) => {
      const now = rows[at] && entryOf(rows[at]).content;
      return now?.mark !== entry.content?.mark;
    });
    const { blobs } = await stores.tenant(principal.tenant);
    const contents = lost.flatMap(({ entry: { content } }) => content ?? []);
    await mapLimited(contents, FILE_BLOB_CALLS_IN_FLIGHT, ({ digest, mark }) => blobs.unmark(digest, mark));
    return lost;
  }

  /** Purges at most `most` former files up to this time. Returns true if there are no more. */
  async purgeUpTo(principal: Principal, toMs: number, most: number): Promise<boolean> {
    const found: FormerFile[] = [];
    for await (const page of this.read(principal, [{ kind: "range", column: "at", to: toMs }])) {
      found.push(...page.filter(({ atMs }) => atMs <= toMs));
      if (found.length >= most) break;
    }
    for (let from = 0; from < found.length; from += FILE_HISTORY_ROWS_AT_ONCE)
      await this.purge(principal, found.slice(from, from + FILE_HISTORY_ROWS_AT_ONCE));
    return found.length < most;
  }

  /**
   * The latest time so that all that is newer has at most `maxBytes`. Reads the sizes of equal spans of time, and then
   * the span in which the bound is, in finer ones.
   */
  async timeOfBytes(
    principal: Principal,
    { fromMs, toMs, maxBytes }: { readonly fromMs: number; readonly toMs: number; readonly maxBytes: number },
  ): Promise<number> {
    const span = Math.ceil((toMs - fromMs + 1) / FILE_HISTORY_BUCKETS);
    const sums = await this.#sums(principal, { fromMs, toMs, span });
    let left = maxBytes;
    for (let at = FILE_HISTORY_BUCKETS - 1; at >= 0; at--) {
      const bytes = sums[at] ?? 0;
      const begin = fromMs + at * span;
      if (bytes > left && span === 1) return begin;
      if (bytes > left) return this.timeOfBytes(principal, { fromMs: begin, toMs: begin + span - 1, maxBytes: left });
      left -= bytes;
    }
    return fromMs - 1;
  }

  /** Bytes of the former files in each span, the first one at `fromMs`. */
  async #sums(
    principal: Principal,
    { fromMs, toMs, span }: { readonly fromMs: number; readonly toMs: number; readonly span: number },
  ): Promise<readonly number[]> {
    const sums = Array.from({ length: FILE_HISTORY_BUCKETS }, () => 0);
    for await (const page of this.#rows(principal, [{ kind: "range", column: "at", from: fromMs, to: toMs }]))
      for (const { values } of page) {
        const at = Math.floor((Number(values["at"]) - fromMs) / span);
        sums[at] = (sums[at] ?? 0) + Number(values["size"] ?? 0) + FILE_HISTORY_RECORD_BYTES;
      }
    return sums;
  }

  /** Keeps the newest contents of each file. */
  async #prune(principal: Principal, places: readonly Place[]): Promise<void> {
    for (let from = 0; from < places.length; from += FILE_HISTORY_PATHS_AT_ONCE) {
      const counts = new Map<string, number>();
      const found = await this.of(principal, places.slice(from, from + FILE_HISTORY_PATHS_AT_ONCE));
      const surplus = found.filter(({ entry: { space, fullname } }) => {
        const count = (counts.get(`${space}:${fullname}`) ?? 0) + 1;
        counts.set(`${space}:${fullname}`, count);
        return count > FILE_HISTORY_PER_FILE_MAX;
      });
      if (surplus.length > 0) await this.purge(principal, surplus);
    }
  }

  #rows(principal: Principal, where: readonly Pushdown[], signal?: AbortSignal): AsyncIterable<readonly ObjectRow[]> {
    const request = { class: principal.ospace + HISTORY_CLASS.path, subtree: false, where, ...(signal && { signal }) };
    return this.#with.objects.unrestricted.read(platform(principal), request);
  }
}

type Position = Pick<FormerFile, "atMs" | "key">;

export function newestFirst(one: Position, other: Position): number {
  return other.atMs - one.atMs || (one.key < other.key ? -1 : 1);
}

function isAt(entry: Place, { space, fullname }: Place): boolean {
  return entry.space === space && entry.fullname === fullname;
}
