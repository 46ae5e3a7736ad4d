import { AppError } from "../../../../common/errors.ts";
import { FILE_EXCERPT_MAX_CHARACTERS, FILE_SEARCH_QUERY_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { comparable, tokens } from "../../../../common/text/tokens.ts";
import { wantedPhrase, wantedWord, type WantedText } from "../../../../common/text/words.ts";
import type { Pushdown } from "../../objects/index.ts";
import type { StoredPassage } from "./store.ts";

/** A text in quotes, or a word. */
const PART = /"([^"]*)"|[^\s"]+/gu;

interface WantedPart extends WantedText {
  /** A text whose occurrences in the comparable form of a passage are counted. */
  readonly counted: string;
}

/** A place in a content where all parts of a query are found. */
export interface Found {
  readonly digest: string;
  readonly position: number;
  readonly excerpt: string;
  /** From 0 to 1: higher for more occurrences of every part. */
  readonly score: number;
}

/** The words and quoted phrases of a query. A passage has to contain all of them. */
export class WantedParts {
  readonly #parts: readonly WantedPart[];

  /** `AppError("invalid")` for a query without letters and digits. */
  constructor(query: string) {
    if (query.length > FILE_SEARCH_QUERY_MAX_CHARACTERS)
      throw new AppError("too_large", `A query has at most ${FILE_SEARCH_QUERY_MAX_CHARACTERS} characters.`);
    const parts = [...query.matchAll(PART)].map(([word, phrase]) => partOf(phrase ?? word, phrase !== undefined));
    if (parts.length === 0) throw new AppError("invalid", "The query has no letters or digits to search for.");
    this.#parts = parts;
  }

  /** The conditions that the index of words answers. */
  get where(): readonly Pushdown[] {
    const words = this.#parts.flatMap(({ indexed }) => indexed);
    const patterns = this.#parts.flatMap((part) => part.patterns);
    return [
      ...(words.length > 0 ? [{ kind: "words", words } as const] : []),
      ...patterns.map((pattern) => ({ kind: "pattern", pattern }) as const),
    ];
  }

  /** `undefined` if the passage does not contain all parts. */
  find(passage: StoredPassage): Found | undefined {
    if (!this.#parts.every(({ isIn }) => isIn(passage.text))) return undefined;
    const lines = passage.text.split("\n");
    const at = Math.max(0, this.#bestLine(lines));
    const position = passage.unit === "line" ? passage.position + at : passage.position;
    return {
      digest: passage.digest,
      position,
      excerpt: this.#excerpt(lines[at] ?? ""),
      score: this.#score(comparable(passage.text)),
    };
  }

  /** The first line with the most parts. A part that continues on the next line is in none. */
  #bestLine(lines: readonly string[]): number {
    const counts = lines.map((line) => this.#parts.filter(({ isIn }) => isIn(line)).length);
    return counts.indexOf(Math.max(...counts));
  }

  /** Each part counts from 0 to 1, by `n / (n + 1)` for n occurrences. */
  #score(text: string): number {
    const scores = this.#parts.map(({ counted }) => {
      const count = counted === "" ? 1 : Math.max(1, text.split(counted).length - 1);
      return count / (count + 1);
    });
    const score = scores.reduce((sum, one) => sum + one, 0) / scores.length;
    return Math.round(score * 1_000) / 1_000;
  }

  /** A part of the line around the first occurrence. */
  #excerpt(line: string): string {
    const text = line.trim();
    if (text.length <= FILE_EXCERPT_MAX_CHARACTERS) return text;
    const lower = text.toLowerCase();
    const places = this.#parts.map(({ counted }) => (counted === "" ? -1 : lower.indexOf(counted)));
    const first = Math.min(...places.filter((place) => place >= 0), text.length);
    const room = FILE_EXCERPT_MAX_CHARACTERS - 2;
    const wanted = first === text.length ? 0 : first - Math.floor(room / 4);
    const from = Math.max(0, Math.min(wanted, text.length - room));
    const cut = withoutHalves(text.slice(from, from + room));
    return `${from > 0 ? "…" : ""}${cut}${from + room < text.length ? "…" : ""}`;
  }
}

function partOf(text: string, isPhrase: boolean): WantedPart {
  const wanted = isPhrase ? wantedPhrase(text) : wantedWord(text);
  const isPattern = wanted.patterns.length > 0;
  const [first = ""] = tokens(text);
  return { ...wanted, counted: isPattern ? "" : first };
}

/** The text without half a surrogate pair at its beginning or end. */
function withoutHalves(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}
