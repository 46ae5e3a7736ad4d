import { isRow } from "../formats/columns.ts";

/** Stands in the place of a secret. */
export const REMOVED = "[removed]";

/** Words that make any name secret that has them, as in `DB_PASSWORD_PROD` or `accessKeyId`. */
const LONG_WORDS =
  "pass(?:word|wort|wd|phrase|code)|secret|token|credential|cookie|authori[sz]ation|signature|community|(?:api|private|access|ssh)[-_]?key";
/** Words that make a name secret at its end, or before a digit or a separator. */
const SHORT_WORDS = "pass|pwd|session(?:id)?|sid|sert|otp|pin|sig|seed|bearer|auth|key";
const SECRET_END = `(?:(?:${LONG_WORDS})[\\w.-]{0,40}|(?:${SHORT_WORDS})s?(?:[\\d_.-][\\w.-]{0,40})?)`;
/** Members whose value is removed as a whole. */
const SECRET_NAME = new RegExp(`${SECRET_END}$`, "i");
const SECRET_OPTION = new RegExp(`^--?[\\w-]{0,40}${SECRET_END}$`, "i");
/** Members that name the value beside them, as in `{"name":"password","value":"…"}`. */
const NAMING = ["name", "key", "param", "parameter", "header", "field", "variable"] as const;
const QUOTE = `\\\\{0,8}["']`;
const ASSIGNED = `(?:${QUOTE})?(?:\\s{0,9}(?:=>|->|:=|==?|[:>]|%3D)\\s{0,9}|\\s{1,9}is:?\\s{1,9})`;
const BESIDE = `${QUOTE}\\s{0,9},\\s{0,9}${QUOTE}value${QUOTE}\\s{0,9}:\\s{0,9}`;
/** A text in JSON inside JSON: its end has as many backslashes as its begin. */
const INNER_TEXT = `(?<slashes>\\\\{1,8})"(?:[^"\\\\]|(?!(?<!\\\\)\\k<slashes>")\\\\|(?<=\\\\)")*"?`;
const BARE_VALUE = `[^\\s"'\\\\<>]*[^\\s"'\\\\<>,;:.)\\]}&|]`;
const VALUE = `${INNER_TEXT}|"(?:[^"\\\\]|\\\\[^])*"?|'[^']*'?|${BARE_VALUE}`;
/** A name in a text with its value: `password=…`, `"token": "…"`, also in JSON inside JSON, and `--secret …`. */
const NAMED = new RegExp(
  `(${SECRET_END}(?:${ASSIGNED}|${BESIDE})|--?[\\w-]{0,40}(?:${LONG_WORDS}|${SHORT_WORDS})\\s{1,9})(?:${VALUE})`,
  "gi",
);
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]*(?:PRIVATE KEY|CERTIFICATE)[A-Z ]*-----[^]{0,65536}?(?:-----END [A-Z ]*-----|$)/g, REMOVED],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/"<>]{0,4096}@/gi, `$1${REMOVED}@`],
  [/\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s@"<>:/]{0,256}:[^\s@"<>]{1,256}@/gi, `$1${REMOVED}@`],
  [/\b(Bearer|Basic|Digest|Negotiate|Token)\s+[\w+/=.~:-]{6,}/gi, `$1 ${REMOVED}`],
  // A header has one value up to the end of its line.
  [/((?:authorization|cookie)["']?\s{0,9}[:=]\s{0,9})[^\s"'\\][^\r\n"'\\]*/gi, `$1${REMOVED}`],
  [/(\s(?:-u|--user|--proxy-user)[\s=]{1,9}["']?)[^\s:"']{1,256}:[^\s"']+/g, `$1${REMOVED}`],
  [/\b((?:sshpass|mysql|mariadb)\b[^\n]{0,200}?\s-p\s?)\S+/g, `$1${REMOVED}`],
  [/\b(identified\s{1,9}by\s{1,9}(?:password\s{1,9})?)["'][^"']*["']?/gi, `$1${REMOVED}`],
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
/** A part of a path that is no part of a key: words, each with a capital at most at its beginning, and a number. */
const WORDS = /^(?:[a-z]*(?:[A-Z][a-z]+)*|[A-Z]+)\d{0,8}$/;

/** Removes secrets from what is passed on: by the names of members, by their form, and those that are known. */
export class Redaction {
  readonly #known: readonly string[];

  /** `known`: secrets that are removed wherever they are. */
  constructor(known: readonly string[]) {
    this.#known = [...new Set(known.flatMap(formsOf))]
      .filter(({ length }) => length > 0)
      .toSorted((one, other) => other.length - one.length);
  }

  /** A value of JSON without its secrets. */
  value(value: unknown): unknown {
    if (typeof value === "string") return this.text(value);
    if (Array.isArray(value))
      return value.map((one, at) => (isNamedBy(value[at - 1], value.length) ? REMOVED : this.value(one)));
    if (!isRow(value)) return value;
    if (NAMING.some((name) => isSecretName(value[name])) && !["", undefined].includes(value["value"] as ""))
      return { ...(this.value({ ...value, value: "" }) as object), value: REMOVED };
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [this.text(name), this.#member(name, member)]),
    );
  }

  text(text: string): string {
    let clean = text;
    for (const secret of this.#known) clean = clean.replaceAll(secret, REMOVED);
    for (const [pattern, instead] of PATTERNS) clean = clean.replaceAll(pattern, instead);
    clean = clean.replaceAll(NAMED, `$1${REMOVED}`);
    return clean.replaceAll(RANDOM, (found) => (isPath(found) ? found : REMOVED));
  }

  #member(name: string, member: unknown): unknown {
    const isEmpty = member === "" || member === null || typeof member === "boolean";
    return SECRET_NAME.test(name) && !isEmpty ? REMOVED : this.value(member);
  }
}

/** A secret as it is, in JSON and in an address. */
function formsOf(secret: string): readonly string[] {
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
}

function isSecretName(value: unknown): boolean {
  return typeof value === "string" && SECRET_NAME.test(value);
}

/** True if the element before names the value: an option of a command line, or the first of a pair. */
function isNamedBy(before: unknown, length: number): boolean {
  return typeof before === "string" && (SECRET_OPTION.test(before) || (length === 2 && SECRET_NAME.test(before)));
}

function isPath(text: string): boolean {
  return text.startsWith("/") && text.split(/[/._-]/).every((part) => WORDS.test(part));
}
