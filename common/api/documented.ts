import { USER_HOME_MAX_CHARACTERS } from "../limits.ts";

/**
 * Constraints that services check beyond the schemas of their input. `documented` of a schema is added to it in the
 * document and is checked nowhere else, so an input is accepted as before and the service names what is wrong.
 */

const CONTROL = "\\u0000-\\u001f\\u007f-\\u009f";

/** A name or an id: some text without control characters. */
export const PLAIN_TEXT = { pattern: `^[^${CONTROL}]+$` };
/** A name that is one step of a path. */
export const PATH_STEP = { pattern: `^[^/${CONTROL}]+$` };
/** A key of configuration. */
export const CONFIG_KEY = { pattern: `^(/[^/${CONTROL}]+)+/?$` };
/** The path of a tag. */
export const TAG_PATH = { pattern: `^[^/${CONTROL}]+(/[^/${CONTROL}]+)*$` };
/** A list that is not empty. */
export const SOME = { minItems: 1 };
/** The path of a page of this site, of visible ASCII; empty for none. */
export const OWN_PATH = { pattern: "^(/([!-.0-\\[\\]-~][!-\\[\\]-~]*)?)?$", maxLength: USER_HOME_MAX_CHARACTERS };
