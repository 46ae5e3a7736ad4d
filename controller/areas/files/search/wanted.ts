import { AppError } from "../../../../common/errors.ts";
import { FILE_EXCERPT_MAX_CHARACTERS, FILE_SEARCH_QUERY_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { comparable } from "../../../../common/text/tokens.ts";
import { wantedPhrase, wantedWord, type WantedText } from "../../../../common/text/words.ts";
import type { Pushdown } from "../../objects/index.ts";
import type { StoredPassage } from "./store.ts";

/** A text in quotes, or a word. */
const PART = /"([^"]*)"|[^\s"]+/gu;

interface WantedPart extends WantedText {
  /** A text whose occurrences in the comparable form of a passage are counted. */
  readonly counted: string;
}

/** A line in which words of a query are found. */
export interface FoundLine {
  /** Number of the line or page. */
  readonly position: number;
  readonly excerpt: string;
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

  /**
   * From 0 to 1: higher for more occurrences of every part. `undefined` if the passage does not contain all parts. Each
   * part counts by `n / (n + 1)` for n occurrences.
   */
  scoreOf({ text }: StoredPassage): number | undefined {
    if (!this.#parts.every(({ isIn }) => isIn(text))) return undefined;
    const whole = comparable(text);
    const scores = this.#parts.map(({ counted }) => {
      const count = counted === "" ? 1 : Math.max(1, whole.split(counted).length - 1);
      return count / (count + 1);
    });
    const score = scores.reduce((sum, one) => sum + one, 0) / scores.length;
    return Math.round(score * 1_000) / 1_000;
  }

  /** The best line of a passage that contains all parts. */
  lineOf(passage: StoredPassage): FoundLine {
    const lines = passage.text.split("\n");
    const at = Math.max(0, this.#bestLine(lines));
    const position = passage.unit === "line" ? passage.position + at : passage.position;
    return { position, excerpt: this.#excerpt(lines[at] ?? "") };
  }

  /** The first line with the most parts. A part that continues on the next line is in none. */
  #bestLine(lines: readonly string[]): number {
    const counts = lines.map((line) => this.#parts.filter(({ isIn }) => isIn(line)).length);
    return counts.indexOf(Math.max(...counts));
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
  return { ...wanted, counted: wanted.patterns.length > 0 ? "" : comparable(text).trim() };
}

/** The text without half a surrogate pair at its beginning or end. */
function withoutHalves(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}
