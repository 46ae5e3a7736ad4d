import { expect, test } from "vitest";
import {
  OBJECT_PAGE_MAX,
  WORD_PATTERN_EXAMINED_ALWAYS,
  WORD_PATTERN_EXAMINED_MAX,
  WORD_PATTERN_EXAMINED_PER_OBJECT,
} from "../../../../common/limits.ts";
import type { PageRequest } from "../../../store/objects.ts";
import type { ClassDefinition } from "../definitions/definition.ts";
import { LoadedClass } from "../definitions/views.ts";
import { wordTerm } from "../values/terms.ts";
import { withWords } from "./wordpatterns.ts";

const CLASS: ClassDefinition = {
  cid: 7,
  path: "/matrix/note",
  kind: "entity",
  columns: [],
  keys: [],
  indexes: [],
  options: { autosearch: true, words: { state: "ready" }, hints: {} },
  modifiedAtMs: 0,
  system: false,
};

interface Known {
  readonly words: number;
  /** Absent: the store keeps no number of them. */
  readonly objects?: number;
  /** Result of the first part of the count of objects. */
  readonly counted?: number;
  readonly kind?: ClassDefinition["kind"];
}

/** The words that `*last` means, and how many words were listed; only the last of the store's `words` words fits. */
async function wordsOf({
  words,
  objects,
  counted = 0,
  kind = "entity",
}: Known): Promise<{ words: readonly string[] | undefined; listed: number }> {
  let listed = 0;
  const store = {
    terms: (_: unknown, { cursor = "0", limit }: PageRequest) => {
      const from = Number(cursor);
      const to = Math.min(words, from + limit);
      const items = Array.from({ length: to - from }, (__, at) =>
        wordTerm(from + at + 1 === words ? "the-last" : `n${from + at}`),
      );
      listed += items.length;
      return Promise.resolve({ items, ...(to < words && { cursor: String(to) }) });
    },
    estimate: () =>
      Promise.resolve({ terms: [{ term: "c7", isRead: true, ...(objects !== undefined && { count: objects }) }] }),
    countClass: () => Promise.resolve({ count: counted, cursor: "more" }),
    countRecords: () => Promise.resolve({ count: counted, cursor: "more" }),
  };
  const request = { class: CLASS.path, subtree: false, where: [{ kind: "pattern", pattern: "*last" } as const] };
  const views = (): readonly LoadedClass[] => [new LoadedClass({ ...CLASS, kind }, undefined, undefined)];
  const { where = [] } = await withWords(request, { store, views });
  const [only] = where;
  return { words: only?.kind === "pattern" ? only.words : undefined, listed };
}

const MORE = 5 * WORD_PATTERN_EXAMINED_ALWAYS;

test("the more words are looked at the more objects would be read otherwise", async () => {
  const objects = MORE / WORD_PATTERN_EXAMINED_PER_OBJECT;
  expect(await wordsOf({ words: MORE, objects })).toEqual({ words: ["the-last"], listed: MORE });
});

test.each(["entity", "record"] as const)(
  "of each %s too whose number is not kept, as far as a part of their count tells it",
  async (kind) => {
    const counted = MORE / WORD_PATTERN_EXAMINED_PER_OBJECT;
    expect(await wordsOf({ words: MORE, counted, kind })).toEqual({ words: ["the-last"], listed: MORE });
    expect((await wordsOf({ words: MORE, counted: 100, kind })).words).toBeUndefined();
  },
);

test("with fewer objects than words, or where nobody knows how many there are, few are looked at", async () => {
  for (const known of [{ words: MORE, objects: 100 }, { words: MORE }]) {
    const { words, listed } = await wordsOf(known);
    expect(words).toBeUndefined();
    expect(listed).toBeLessThanOrEqual(WORD_PATTERN_EXAMINED_ALWAYS + OBJECT_PAGE_MAX);
  }
  expect((await wordsOf({ words: WORD_PATTERN_EXAMINED_ALWAYS })).words).toEqual(["the-last"]);
});

test("however many objects there are, there is an end to it", async () => {
  const { words, listed } = await wordsOf({ words: 2 * WORD_PATTERN_EXAMINED_MAX, objects: 1e9 });
  expect(words).toBeUndefined();
  expect(listed).toBeLessThanOrEqual(WORD_PATTERN_EXAMINED_MAX + OBJECT_PAGE_MAX);
});
