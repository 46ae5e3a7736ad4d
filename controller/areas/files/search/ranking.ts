import {
  FILE_SEARCH_CONTENTS_AT_ONCE,
  FILE_SEARCH_ROWS_MAX,
  FILE_SEARCH_ROWS_PER_CONTENT,
} from "../../../../common/limits.ts";
import type { StoredPassage } from "./store.ts";

export interface FoundRow {
  readonly path: string;
  readonly name: string;
  readonly position: number;
  readonly excerpt: string;
  readonly score: number;
}

/** A passage with all words of a query. */
export interface Match {
  readonly passage: StoredPassage;
  readonly score: number;
}

/**
 * Orders what a search finds: the best passages of each content, and the best rows of the files that were looked up
 * for them.
 */
export class Ranking {
  readonly #matches = new Map<string, readonly Match[]>();
  /** Contents with matches since their files were looked up. */
  readonly #open = new Set<string>();
  #rows: readonly { readonly digest: string; readonly row: FoundRow }[] = [];

  get rows(): readonly FoundRow[] {
    return this.#rows.map(({ row }) => row);
  }

  /** True if there are as many rows as an answer has. */
  get isFull(): boolean {
    return this.#rows.length >= FILE_SEARCH_ROWS_MAX;
  }

  add(match: Match): void {
    const { digest } = match.passage;
    const best = [...(this.#matches.get(digest) ?? []), match].sort(byPlace).slice(0, FILE_SEARCH_ROWS_PER_CONTENT);
    this.#matches.set(digest, best);
    this.#open.add(digest);
  }

  matchesOf(digest: string): readonly Match[] {
    return this.#matches.get(digest) ?? [];
  }

  /** Takes the best contents whose files have to be looked up. None if no other content can have a better row. */
  takeNext(): readonly string[] {
    const ordered = [...this.#open].sort((one, other) => this.#bestOf(other) - this.#bestOf(one));
    const worst = this.isFull ? (this.#rows.at(-1)?.row.score ?? 0) : -1;
    const next = ordered.slice(0, FILE_SEARCH_CONTENTS_AT_ONCE).filter((digest) => this.#bestOf(digest) > worst);
    for (const digest of next) this.#open.delete(digest);
    return next;
  }

  /** Keeps the best rows. The rows of these contents replace those of an earlier call. */
  put(digests: readonly string[], rows: readonly { readonly digest: string; readonly row: FoundRow }[]): void {
    const others = this.#rows.filter(({ digest }) => !digests.includes(digest));
    this.#rows = [...others, ...rows].sort(byScore).slice(0, FILE_SEARCH_ROWS_MAX);
  }

  #bestOf(digest: string): number {
    return this.#matches.get(digest)?.[0]?.score ?? 0;
  }
}

/** The best first; equal ones by their position. */
function byPlace(one: Match, other: Match): number {
  return other.score - one.score || one.passage.position - other.passage.position;
}

/** The best first; equal ones by path and position. */
function byScore({ row: one }: { readonly row: FoundRow }, { row: other }: { readonly row: FoundRow }): number {
  if (one.score !== other.score) return other.score - one.score;
  if (one.path !== other.path) return one.path < other.path ? -1 : 1;
  return one.position - other.position;
}
