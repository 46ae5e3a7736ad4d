import {
  FILE_SEARCH_CONTENTS_AT_ONCE,
  FILE_SEARCH_FILES_MAX,
  FILE_SEARCH_PASSAGES_MAX,
  FILE_SEARCH_ROWS_MAX,
  FILE_SEARCH_ROWS_PER_CONTENT,
} from "../../../../common/limits.ts";
import { isInside } from "../../../../common/paths.ts";
import type { Runtime } from "../../../runtime.ts";
import { ThreadSlices } from "../../../turns/slices.ts";
import { pathAllowed, type Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import { nameOf, type Place } from "../names.ts";
import type { FileVisibility } from "../visible.ts";
import { readsContent } from "./rights.ts";
import type { ContentStore, StoredPassage } from "./store.ts";
import type { WantedParts } from "./wanted.ts";

export interface FoundRow {
  readonly path: string;
  readonly name: string;
  readonly position: number;
  readonly excerpt: string;
  readonly score: number;
}

export interface FoundFiles {
  readonly rows: readonly FoundRow[];
  /** Tells that not everything was looked at. */
  readonly warnings: readonly string[];
}

/** A passage with all words of a query. */
interface Found {
  readonly passage: StoredPassage;
  readonly score: number;
}

interface Question {
  readonly principal: Principal;
  readonly folder: Place;
  readonly wanted: WantedParts;
  readonly visibility: FileVisibility;
  readonly signal: AbortSignal | undefined;
}

interface Dependencies {
  readonly contents: ContentStore;
  readonly runtime: Pick<Runtime, "clock">;
}

/**
 * Finds passages by the index of words, then the files that have their contents at that moment. So no row is of a
 * former content, even if files change during the search.
 */
export class Finding {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  async find(question: Question): Promise<FoundFiles> {
    const { found, isCut } = await this.#contents(question);
    const warnings = isCut
      ? [`Only ${FILE_SEARCH_PASSAGES_MAX} passages with these words were looked at: use rarer words.`]
      : [];
    const ordered = [...found.values()].sort((one, other) => bestOf(other) - bestOf(one));
    const rows: FoundRow[] = [];
    let files = 0;
    for (let from = 0; from < ordered.length && rows.length < FILE_SEARCH_ROWS_MAX; ) {
      const some = ordered.slice(from, (from += FILE_SEARCH_CONTENTS_AT_ONCE));
      const { seen, looked } = await this.#rows(question, some, FILE_SEARCH_FILES_MAX - files);
      files += looked;
      rows.push(...seen);
      if (files < FILE_SEARCH_FILES_MAX) continue;
      warnings.push(`Only ${FILE_SEARCH_FILES_MAX} files with these words were looked at: use rarer words.`);
      break;
    }
    return { rows: rows.sort(byScore).slice(0, FILE_SEARCH_ROWS_MAX), warnings };
  }

  /** The best passages of each content. */
  async #contents({ principal, wanted, signal }: Question) {
    const slices = new ThreadSlices({ tenant: principal.tenant, clock: this.#with.runtime.clock, signal });
    const found = new Map<string, Found[]>();
    let examined = 0;
    for await (const page of this.#with.contents.passages(principal, wanted.where, signal)) {
      for (const passage of page) {
        if (examined >= FILE_SEARCH_PASSAGES_MAX) return { found, isCut: true };
        examined += 1;
        const score = wanted.scoreOf(passage);
        const { digest } = passage;
        if (score !== undefined) found.set(digest, withBest(found.get(digest) ?? [], { passage, score }));
        if (slices.isOverNow()) await slices.pause();
      }
    }
    return { found, isCut: false };
  }

  /** Rows for the files that have these contents, as far as the principal may read them; at most `most` files. */
  async #rows(question: Question, some: readonly (readonly Found[])[], most: number) {
    const { principal, signal } = question;
    const byDigest = new Map(some.map((places) => [places[0]?.passage.digest ?? "", places]));
    const seen: FoundRow[] = [];
    let looked = 0;
    for await (const page of this.#with.contents.filesOf(principal, [...byDigest.keys()], signal)) {
      for (const entry of page) {
        if (looked >= most) return { seen, looked };
        looked += 1;
        if (isSeen(question, entry)) seen.push(...rowsOf(question, entry, byDigest.get(entry.digest) ?? []));
      }
    }
    return { seen, looked };
  }
}

function isSeen({ principal, folder, visibility }: Question, entry: FileEntry): boolean {
  return (
    entry.space === folder.space &&
    isInside(folder.fullname, entry.fullname) &&
    pathAllowed(principal, entry.fullname) &&
    readsContent(visibility, entry)
  );
}

function rowsOf({ wanted }: Question, { fullname }: FileEntry, places: readonly Found[]): readonly FoundRow[] {
  const [path, name] = [fullname, nameOf(fullname)];
  return places.map(({ passage, score }) => ({ path, name, ...wanted.lineOf(passage), score }));
}

function withBest(places: readonly Found[], one: Found): Found[] {
  return [...places, one].sort(byPlace).slice(0, FILE_SEARCH_ROWS_PER_CONTENT);
}

function bestOf([first]: readonly Found[]): number {
  return first?.score ?? 0;
}

/** The best first; equal ones by their position. */
function byPlace(one: Found, other: Found): number {
  return other.score - one.score || one.passage.position - other.passage.position;
}

/** The best first; equal ones by path and position. */
function byScore(one: FoundRow, other: FoundRow): number {
  if (one.score !== other.score) return other.score - one.score;
  if (one.path !== other.path) return one.path < other.path ? -1 : 1;
  return one.position - other.position;
}
