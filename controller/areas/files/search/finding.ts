import {
  FILE_SEARCH_FILES_MAX,
  FILE_SEARCH_FIRST_PASSAGES,
  FILE_SEARCH_FOLDER_ENTRIES_MAX,
  FILE_SEARCH_PASSAGES_MAX,
} from "../../../../common/limits.ts";
import { isInside } from "../../../../common/paths.ts";
import type { Runtime } from "../../../runtime.ts";
import { ThreadSlices } from "../../../turns/slices.ts";
import { pathAllowed, type Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import { nameOf, type Place } from "../names.ts";
import type { FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";
import { Ranking, type FoundRow, type Match } from "./ranking.ts";
import { readsContent } from "./rights.ts";
import type { ContentStore, StoredPassage } from "./store.ts";
import type { FoundLine, WantedParts } from "./wanted.ts";

export interface FoundFiles {
  readonly rows: readonly FoundRow[];
  /** Tells that not everything was looked at. */
  readonly warnings: readonly string[];
}

interface Question {
  readonly principal: Principal;
  readonly folder: Place;
  readonly wanted: WantedParts;
  readonly visibility: FileVisibility;
  readonly signal: AbortSignal | undefined;
}

interface Dependencies {
  readonly contents: Pick<ContentStore, "passages" | "passagesOf" | "filesOf">;
  readonly files: Pick<FileStore, "find" | "in">;
  readonly runtime: Pick<Runtime, "clock">;
}

type Passages = AsyncIterable<readonly StoredPassage[]>;

/** It names no number: passages of files that the caller may not see are counted, too. */
const NOT_ALL = "Not all passages with these words were looked at: use rarer words, or search a smaller folder.";

/**
 * Finds passages by the index of words, then the files that have their contents at that moment. So no row is of a
 * former content, even if files change during the search.
 */
export class Finding {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * Looks at the first passages with these words. If they do not fill the answer, a small folder is searched by the
   * passages of its files, and all others by further passages with these words.
   */
  async find(question: Question): Promise<FoundFiles> {
    const { contents } = this.#with;
    const { principal, wanted, signal } = question;
    const withWords = () => contents.passages(principal, wanted.where, signal);
    const first = await this.#search(question, withWords(), FILE_SEARCH_FIRST_PASSAGES);
    if (!first.isCut || first.isFull) return foundFiles(first);
    const digests = await this.#contentsBelow(question);
    const passages = digests ? contents.passagesOf(principal, digests, signal) : withWords();
    return foundFiles(await this.#search(question, passages, FILE_SEARCH_PASSAGES_MAX));
  }

  /** Examines at most `most` passages, and fewer if the answer is full after the first ones. */
  async #search(question: Question, passages: Passages, most: number) {
    const { clock } = this.#with.runtime;
    const { principal, signal, wanted } = question;
    const search: Search = {
      question,
      ranking: new Ranking(),
      slices: new ThreadSlices({ tenant: principal.tenant, clock, signal }),
      looked: 0,
    };
    const { ranking, slices } = search;
    let [examined, round] = [0, 0];
    const answer = (isCut: boolean) => ({ rows: ranking.rows, isFull: ranking.isFull, isCut });
    for await (const page of passages) {
      for (const passage of page) {
        if (examined >= most || (round === 0 && ranking.isFull)) return answer(true);
        examined += 1;
        round += 1;
        const score = wanted.scoreOf(passage);
        if (score !== undefined) ranking.add({ passage, score });
        if (slices.isOverNow()) await slices.pause();
        if (round < FILE_SEARCH_FIRST_PASSAGES) continue;
        if (!(await this.#lookUp(search))) return answer(true);
        round = 0;
      }
    }
    const isAll = await this.#lookUp(search);
    return answer(!isAll);
  }

  /** Looks up the files of the contents that were found. False if these are too many. */
  async #lookUp(search: Search): Promise<boolean> {
    const { ranking, question, slices } = search;
    for (let next = ranking.takeNext(); next.length > 0; next = ranking.takeNext()) {
      const rows: { readonly digest: string; readonly row: FoundRow }[] = [];
      const linesOf = new Map<string, readonly (Match & FoundLine)[]>();
      for await (const page of this.#with.contents.filesOf(question.principal, next, question.signal)) {
        for (const entry of page) {
          if (search.looked >= FILE_SEARCH_FILES_MAX) {
            ranking.put(next, rows);
            return false;
          }
          search.looked += 1;
          if (slices.isOverNow()) await slices.pause();
          if (!isSeen(question, entry)) continue;
          const { digest } = entry;
          const lines = linesOf.get(digest) ?? this.#lines(search, digest);
          linesOf.set(digest, lines);
          rows.push(...rowsOf(entry, lines).map((row) => ({ digest, row })));
        }
      }
      ranking.put(next, rows);
    }
    return true;
  }

  #lines({ question, ranking }: Search, digest: string): readonly (Match & FoundLine)[] {
    return ranking.matchesOf(digest).map((match) => ({ ...match, ...question.wanted.lineOf(match.passage) }));
  }

  /**
   * Contents of the files that the principal may read below the folder. `undefined` if there are more than
   * `FILE_SEARCH_FOLDER_ENTRIES_MAX` files and folders.
   */
  async #contentsBelow(question: Question): Promise<readonly string[] | undefined> {
    const digests = new Set<string>();
    const places = [...placesIn(question)];
    let entries = 0;
    const take = (entry: FileEntry): void => {
      if (!entry.content) places.push(entry);
      else if (entry.indexed && isSeen(question, entry)) digests.add(entry.content.digest);
    };
    for (let place = places.pop(); place; place = places.pop()) {
      if (place.fullname === "/" || ++entries > FILE_SEARCH_FOLDER_ENTRIES_MAX) return undefined;
      const entry = await this.#with.files.find(question.principal, place);
      if (entry?.content) take(entry);
      else
        for await (const page of this.#with.files.in(question.principal, place, question.signal)) {
          if ((entries += page.length) > FILE_SEARCH_FOLDER_ENTRIES_MAX) return undefined;
          page.forEach(take);
        }
    }
    return [...digests];
  }
}

interface Search {
  readonly question: Question;
  readonly ranking: Ranking;
  readonly slices: ThreadSlices;
  /** Number of files that were looked at. */
  looked: number;
}

function foundFiles({ rows, isCut }: { readonly rows: readonly FoundRow[]; readonly isCut: boolean }): FoundFiles {
  return { rows, warnings: isCut ? [NOT_ALL] : [] };
}

/** The folder, or the open paths in it. */
function placesIn({ principal, folder }: Question): readonly Place[] {
  if (pathAllowed(principal, folder.fullname)) return [folder];
  const paths = (principal.paths ?? []).filter((path) => isInside(folder.fullname, path));
  return paths.map((fullname) => ({ space: folder.space, fullname }));
}

function isSeen({ principal, folder, visibility }: Question, entry: FileEntry): boolean {
  return (
    entry.space === folder.space &&
    isInside(folder.fullname, entry.fullname) &&
    pathAllowed(principal, entry.fullname) &&
    readsContent(visibility, entry)
  );
}

function rowsOf({ fullname }: FileEntry, lines: readonly (Match & FoundLine)[]): readonly FoundRow[] {
  const [path, name] = [fullname, nameOf(fullname)];
  return lines.map(({ position, excerpt, score }) => ({ path, name, position, excerpt, score }));
}
