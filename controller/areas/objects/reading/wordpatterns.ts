import { setImmediate } from "node:timers/promises";
import { ULID_TIME_MAX_MS } from "../../../../common/ids.ts";
import {
  OBJECT_PAGE_MAX,
  QUERY_ESTIMATED_FINDS_MAX,
  WORD_PATTERN_CLASSES_MAX,
  WORD_PATTERN_EXAMINED_ALWAYS,
  WORD_PATTERN_EXAMINED_MAX,
  WORD_PATTERN_EXAMINED_PER_OBJECT,
  WORD_PATTERN_SHORT_PAGES_MAX,
  WORD_PATTERN_WORDS_MAX,
} from "../../../../common/limits.ts";
import { TOKEN_MAX_CHARACTERS } from "../../../../common/text/tokens.ts";
import { wildcard } from "../../../../common/text/wildcard.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { ObjectStore } from "../../../store/objects.ts";
import { type LoadedClass, ownTerm } from "../definitions/views.ts";
import type { Pushdown, ReadRequest, WordPattern } from "../types.ts";
import { wordTerm } from "../values/terms.ts";

const TERM_MARK = wordTerm("");

export interface WordSource {
  readonly store: Pick<ObjectStore, "terms" | "estimate" | "countClass" | "countRecords">;
  /** The classes that are read. */
  readonly views: () => readonly LoadedClass[];
}

/** True if `withWords` reads the index of words. */
export function looksUpWords({ where, ids }: ReadRequest): boolean {
  return where !== undefined && ids === undefined && where.some(({ kind }) => kind === "pattern");
}

/** The request with the matching words of the index added to each pattern, if these are few enough. */
export async function withWords(request: ReadRequest, { store, views }: WordSource): Promise<ReadRequest> {
  if (!looksUpWords(request)) return request;
  const { where = [] } = request;
  const read = views();
  const places = placesOf(read);
  let most: Promise<number> | undefined;
  const examinedMax = (): Promise<number> => (most ??= mostExamined(read, store));
  const known: Pushdown[] = [];
  for (const pushdown of where)
    known.push(pushdown.kind === "pattern" ? await expanded(pushdown, { places, examinedMax }, store) : pushdown);
  return { ...request, where: known };
}

/**
 * For EXPLAIN to principals who do not see the whole tenant. The text is the same for patterns with no, few or too many
 * words.
 */
export function withoutWords(request: ReadRequest): ReadRequest {
  const { where } = request;
  return where === undefined
    ? request
    : { ...request, where: where.map((one) => (one.kind === "pattern" ? { ...one, words: [] } : one)) };
}

/**
 * For EXPLAIN to principals who see the whole tenant. The words are those of all entities of the tenant, and even their
 * number tells if a word with a certain beginning exists.
 */
export function wordSteps(used: readonly Pushdown[]): readonly string[] {
  return used.flatMap((one) => {
    if (one.kind !== "pattern" || one.words === undefined) return [];
    const words = [...one.words].sort();
    const count = counted(words.length, "word");
    return [`${one.pattern} stands for ${count}${words.length > 0 ? `: ${words.join(", ")}` : ""}`];
  });
}

/**
 * Where words are looked up: `undefined` stands for all entities, a number for one class of records. Returns
 * `undefined` if no class has a ready index of words, or if there are too many classes of records.
 */
function placesOf(views: readonly LoadedClass[]): readonly (number | undefined)[] | undefined {
  const ready = views.filter(({ wordsReady }) => wordsReady);
  const records = ready.filter(({ kind }) => kind === "record").map(({ cid }) => cid);
  if (ready.length === 0 || records.length > WORD_PATTERN_CLASSES_MAX) return undefined;
  return ready.length > records.length ? [undefined, ...records] : records;
}

/**
 * Maximum number of words to look at: some for each object. Without the words each of these objects would be read, at a
 * far greater cost.
 */
async function mostExamined(views: readonly LoadedClass[], store: WordSource["store"]): Promise<number> {
  let known = 0;
  for (const view of views.slice(0, QUERY_ESTIMATED_FINDS_MAX)) known += await leastObjects(view, store);
  return Math.min(
    WORD_PATTERN_EXAMINED_MAX,
    Math.max(WORD_PATTERN_EXAMINED_ALWAYS, WORD_PATTERN_EXAMINED_PER_OBJECT * known),
  );
}

/**
 * Lower bound of the number of objects in the class. If the store keeps no number, it is the first part of their count.
 */
async function leastObjects({ kind, cid }: LoadedClass, store: WordSource["store"]): Promise<number> {
  if (kind === "record") return (await store.countRecords({ cid, ...ALWAYS })).count;
  const term = ownTerm(cid);
  const { terms } = await store.estimate({ terms: [term] });
  return terms[0]?.count ?? (await store.countClass(term)).count;
}

const ALWAYS = { fromMs: 0, toMs: ULID_TIME_MAX_MS + 1 };

interface Places {
  readonly places: readonly (number | undefined)[] | undefined;
  /** Called only if there are more words than `WORD_PATTERN_EXAMINED_ALWAYS`. */
  readonly examinedMax: () => Promise<number>;
}

async function expanded(
  { kind, pattern }: WordPattern,
  { places, examinedMax }: Places,
  store: WordSource["store"],
): Promise<WordPattern> {
  const unknown = { kind, pattern };
  if (places === undefined) return unknown;
  const [beginning = ""] = pattern.split("*");
  const fits = wildcard(pattern);
  // The index has only the beginning of a longer word.
  const mayFit = (word: string): boolean => fits(word) || word.length >= TOKEN_MAX_CHARACTERS;
  const words = new Set<string>();
  let [examined, pages] = [0, 0];
  for (const cid of places) {
    const request = { beginning: wordTerm(beginning), ...(cid !== undefined && { cid }) };
    let cursor: string | undefined;
    do {
      const page = await store.terms(request, { limit: OBJECT_PAGE_MAX, ...(cursor !== undefined && { cursor }) });
      if (page === undefined) return unknown;
      for (const term of page.items) {
        const word = term.slice(TERM_MARK.length);
        if (mayFit(word)) words.add(word);
      }
      examined += page.items.length;
      pages += 1;
      cursor = page.cursor;
      const isMore = (most: number): boolean =>
        examined > most || pages > most / OBJECT_PAGE_MAX + WORD_PATTERN_SHORT_PAGES_MAX;
      if (words.size > WORD_PATTERN_WORDS_MAX) return unknown;
      if (isMore(WORD_PATTERN_EXAMINED_ALWAYS) && isMore(await examinedMax())) return unknown;
      // Lets others have the thread between two pages.
      if (cursor !== undefined) await setImmediate();
    } while (cursor !== undefined);
  }
  return { kind, pattern, words: [...words] };
}
