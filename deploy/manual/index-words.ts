import { wordsOf, type ManualIndex, type Section } from "../../common/manual/search.ts";

/** A section with its text, which is indexed and not kept. */
export interface IndexedSection extends Omit<Section, "excerpt"> {
  readonly text: string;
}

const EXCERPT_MAX_CHARACTERS = 160;
const HEADING_WEIGHT = 8;
const PAGE_WEIGHT = 5;
/** A word counts at most so often in the text of a section. */
const TEXT_MAX_WEIGHT = 3;

/** The index of these sections. The same sections always give the same index. */
export function indexOf(sections: readonly IndexedSection[]): ManualIndex {
  const words = new Map<string, number[]>();
  for (const [at, section] of sections.entries())
    for (const [word, weight] of weightsOf(section)) {
      const postings = words.get(word) ?? [];
      words.set(word, postings);
      postings.push(at, weight);
    }
  return {
    sections: sections.map(({ url, page, heading, text }) => ({ url, page, heading, excerpt: excerptOf(text) })),
    words: [...words].sort(([one], [other]) => (one < other ? -1 : 1)),
  };
}

function weightsOf({ page, heading, text }: IndexedSection): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const word of wordsOf(text)) weights.set(word, Math.min((weights.get(word) ?? 0) + 1, TEXT_MAX_WEIGHT));
  for (const word of new Set(wordsOf(page))) weights.set(word, (weights.get(word) ?? 0) + PAGE_WEIGHT);
  for (const word of new Set(wordsOf(heading))) weights.set(word, (weights.get(word) ?? 0) + HEADING_WEIGHT);
  return weights;
}

/** The beginning of the text, up to the end of a word. */
function excerptOf(text: string): string {
  if (text.length <= EXCERPT_MAX_CHARACTERS) return text;
  const cut = text.slice(0, EXCERPT_MAX_CHARACTERS);
  return `${cut.slice(0, Math.max(cut.lastIndexOf(" "), 1))} …`;
}
