import { APPCONTEXT_TTL_MAX_SECONDS, USER_HOME_MAX_CHARACTERS, USERNAME_MAX_CHARACTERS } from "../limits.ts";

/**
 * Constraints that services check beyond the schemas of their input. `documented` of a schema is added to it in the
 * document and is checked nowhere else, so an input is accepted as before and the service names what is wrong.
 */

const CONTROL = "\\u0000-\\u001f\\u007f-\\u009f";
/** Characters that no path has: control characters, those that change how a text is shown, and the backslash. */
const UNSAFE = `${CONTROL}\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ufeff\\\\`;
/** A step that is not of dots alone: some of those name another folder. */
const STEP = `\\.*[^./${UNSAFE}][^/${UNSAFE}]*`;

/** A name or an id: some text without control characters. */
export const PLAIN_TEXT = { pattern: `^[^${CONTROL}]+$` };
/** As `PLAIN_TEXT`, or empty. */
export const PLAIN_OR_EMPTY = { pattern: `^[^${CONTROL}]*$` };
/** The name of a file or folder. */
export const FILE_NAME = { pattern: `^\\.*[^\\s./${UNSAFE}]([^/${UNSAFE}]*[^\\s/${UNSAFE}])?$` };
/** As `FILE_NAME`, without the sign between the name of a job and its folder. */
export const JOB_NAME = { pattern: `^\\.*[^\\s.@/${UNSAFE}]([^@/${UNSAFE}]*[^\\s@/${UNSAFE}])?$` };
/** A path below a root, with or without slashes at its beginning. */
export const PATH_BELOW = { pattern: `^/*${STEP}(/+${STEP})*/*$` };
/** The path of a folder on a POSIX host. */
export const ABSOLUTE_PATH = { pattern: `^/+${STEP}(/+${STEP})*/*$` };
/** A path of a POSIX host, of a drive or of a network share. */
export const HOST_FOLDER = { pattern: "^(/|[A-Za-z]:[\\\\/]|\\\\\\\\)" };

const WORD = "[\\p{L}\\p{N}_]+";

/**
 * A pattern whose first part is the name space of the caller's tenant, such as `matrix`. `x-name-space` is the text of
 * that part in the pattern: a document is for all tenants.
 */
const inNameSpace = (pattern: string, part = STEP) => ({ pattern, "x-name-space": part });
/** A configuration key. */
export const CONFIG_KEY = inNameSpace(`^/+${STEP}(/+${STEP})+/*$`);
/** The key of an entry or of a folder of configuration; / is the root. */
export const CONFIG_FOLDER = { pattern: `^/+(${STEP}(/+${STEP})*/*)?$` };
/** The configuration key of a rule. */
export const RULE_KEY = inNameSpace(`^/${STEP}/rules(/${STEP})+$`);
/** As `RULE_KEY`, without its first slash. */
export const RULE_PATH = inNameSpace(`^${STEP}/rules(/${STEP})+$`);

const TAG_STEP = `\\.*[^\\s./${CONTROL}]([^/${CONTROL}]*[^\\s/${CONTROL}])?`;
/** The path of a tag. */
export const TAG_PATH = { pattern: `^/?${TAG_STEP}(/${TAG_STEP})*/?$` };
/** As `TAG_PATH`, or empty. */
export const TAG_PATH_OR_EMPTY = { pattern: `^(/?${TAG_STEP}(/${TAG_STEP})*/?)?$` };

export const CLASS_PATH = { pattern: `^(/${WORD})+/?$` };
/** As `CLASS_PATH`, or / for every class. */
export const CLASS_TREE = { pattern: `^/$|^(/${WORD})+/?$` };
/** The path of a class to define, or the name space itself. */
export const NEW_CLASS_PATH = inNameSpace(`^/${WORD}(/${WORD})*$`, WORD);
export const HOST_NAME = { pattern: "^[\\p{L}\\p{N}_][\\p{L}\\p{N}._-]{0,254}$" };
/** The name of a user or an organisation. */
export const USER_NAME = {
  pattern: "^[^\\p{C}\\s/:]([^\\p{C}/:]*[^\\p{C}\\s/:])?$",
  maxLength: USERNAME_MAX_CHARACTERS,
};
/** The name of a group of users. */
export const GROUP_NAME = { pattern: `^[^\\s/${CONTROL}]([^/${CONTROL}]*[^\\s/${CONTROL}])?$` };

/** A list that is not empty. */
export const SOME = { minItems: 1 };
/** A text that is not empty. */
export const NOT_EMPTY = { minLength: 1 };

/** Seconds until an entry expires; 0: never. */
export const TTL = { minimum: 0, maximum: APPCONTEXT_TTL_MAX_SECONDS };

/** The path of a page of this site, of visible ASCII; empty for none. */
export const OWN_PATH = { pattern: "^(/([!-.0-\\[\\]-~][!-\\[\\]-~]*)?)?$", maxLength: USER_HOME_MAX_CHARACTERS };

/** One of some words. It is no `enum`, which generators make a type of its own of: callers of older clients pass texts. */
export function oneOfWords(words: readonly string[]) {
  return { pattern: `^(${words.join("|")})$` };
}

/** Encodings by the names that the Encoding Standard gives them. Its other labels and code pages are read, too. */
export const ENCODING_NAMES: readonly string[] = [
  ...["", "utf-8", "utf-16le", "utf-16be", "gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"],
  ...["ibm866", "koi8-r", "koi8-u", "macintosh", "x-mac-cyrillic", "windows-874"],
  ...[2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16].map((part) => `iso-8859-${part}`),
  ...[0, 1, 2, 3, 4, 5, 6, 7, 8].map((page) => `windows-125${page}`),
];
export const ENCODING = oneOfWords(ENCODING_NAMES);

/** An object that has all of these members. */
export function having(...required: readonly string[]) {
  return { properties: Object.fromEntries(required.map((name) => [name, {}])), required };
}

/** An object that has none of these members. */
export function without(...names: readonly string[]) {
  const [only, ...others] = names.map((name) => having(name));
  return { not: others.length === 0 ? only : { anyOf: [only, ...others] } };
}

/** An object that has all members of one of these lists. */
export function oneOfMembers(...choices: readonly (readonly string[])[]) {
  return { anyOf: choices.map((names) => having(...names)) };
}

/** A body that has one of these members, or none at all: with others alone its content would be lost. */
export function contentIn(...members: readonly string[]) {
  return { anyOf: [...members.map((member) => having(member)), { maxProperties: 0 }] };
}
