import { isRow } from "../formats/columns.ts";

/** Stands in the place of a secret. */
export const REMOVED = "[removed]";

const SECRET_WORDS =
  "pass(?:word|wd|phrase|code)?|pwd|secret|token|session(?:id)?|sid|credentials?|cookie|authori[sz]ation|api[-_]?key|private[-_]?key|access[-_]?key|sshkey|sert|otp|pin|seed|bearer";
/** Members whose value is removed as a whole; also with a word before or behind, as in `db_password`. */
const SECRET_NAME = new RegExp(`(?:^|[-_.\\s]|(?<=[a-z])(?=[A-Z]))(?:${SECRET_WORDS}|key)s?$`, "i");
/** A name in a text with its value: `password=…`, `"token": "…"`, also in JSON inside JSON, and `--secret …`. */
const NAME = `(?:[\\w.-]{0,40}[-_.])?(?:${SECRET_WORDS}|key)s?`;
const VALUE = `\\\\{1,8}"[^"]{0,4096}"?|"(?:[^"\\\\]|\\\\.){0,4096}"?|'[^']{0,4096}'?|[^\\s,;&|<>"'\\\\)\\]}]+`;
const NAMED = new RegExp(
  `(${NAME}(?:\\\\{0,8}["'])?(?:\\s{0,9}[=:]\\s{0,9}|\\s{1,9}is\\s{1,9})|--?[\\w-]{0,40}(?:${SECRET_WORDS})\\s{1,9})(${VALUE})`,
  "gi",
);
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)-----[^]{0,65536}?(?:-----END [A-Z ]*-----|$)/g, REMOVED],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/"'<>]{0,4096}@/gi, `$1${REMOVED}@`],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s@"'<>:/]{0,256}:[^\s@"'<>]{1,256}@/gi, `$1${REMOVED}@`],
  [/\b(Bearer|Basic|Digest|Negotiate|Token)\s+[\w+/=.~:-]{6,}/gi, `$1 ${REMOVED}`],
  [/\bodp1\.[\w.-]{6,}/g, REMOVED],
  [/\bodp_(?=[\w-]*[A-Z-])[\w-]{30,}/g, REMOVED],
  [/\beyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g, REMOVED],
  [/\b(?:AKIA|ASIA)[0-9A-Z]{16}\b/g, REMOVED],
  [/\bgh[pousr]_\w{20,}|\bxox[abpr]-[\w-]{10,}|\bglpat-[\w-]{10,}|\bsk-[\w-]{16,}/g, REMOVED],
  [/\$(?:argon2\w*|2[aby]|[156])\$[^\s"']+/g, REMOVED],
];
/**
 * Long texts of letters in both cases, as keys and tokens are; shorter ones with digits. Digests and ids have one case,
 * and a long name of several words has no digit.
 */
const RANDOM = /(?<![\w+/=-])(?=[\w+/=-]*[a-z])(?=[\w+/=-]*[A-Z])(?:(?=[\w+/=-]*\d)[\w+/=-]{28,}|[\w+/=-]{40,})/g;
const SLASHED_WORDS = /^(?:[\w.+=-]{0,24}\/)+[\w.+=-]{0,24}$/;

/** Removes secrets from what is passed on: by the names of members, by their form, and those that are known. */
export class Redaction {
  readonly #known: readonly string[];

  /** `known`: secrets that are removed wherever they are. */
  constructor(known: readonly string[]) {
    this.#known = known.filter(({ length }) => length > 0).toSorted((one, other) => other.length - one.length);
  }

  /** A value of JSON without its secrets. */
  value(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value)) return value.map((one) => this.value(one));
    if (!isRow(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [this.text(name), this.#member(name, member)]),
    );
  }

  text(text: string): string {
    let clean = text;
    for (const secret of this.#known) clean = clean.replaceAll(secret, REMOVED);
    for (const [pattern, instead] of PATTERNS) clean = clean.replaceAll(pattern, instead);
    clean = clean.replaceAll(NAMED, `$1${REMOVED}`);
    return clean.replaceAll(RANDOM, (found) => (SLASHED_WORDS.test(found) ? found : REMOVED));
  }

  #member(name: string, member: unknown): unknown {
    const isEmpty = member === "" || member === null || typeof member === "boolean";
    return SECRET_NAME.test(name) && !isEmpty ? REMOVED : this.value(member);
  }
}
