import { AppError } from "./errors.ts";
import { JSON_LEADING_BLANKS_MAX } from "./limits.ts";
import { type Bound, HTTP_JSON_BOUNDS, type JsonBounds, JsonDecoder } from "./json-decoder.ts";

/** Any text that could spell `__proto__` or `constructor`, also escaped. The members of other texts need no check. */
const SUSPICIOUS = /__proto__|constructor|\\u/;

/** A text with this many digits in a row may have a whole number that no double can hold. */
const LONG_NUMBER = /\d{16}/;

/** True for a text whose numbers `JSON.parse` may change. */
export function hasLongNumber(text: string): boolean {
  return LONG_NUMBER.test(text);
}

/**
 * Parses a text from a client in one go. Numbers beyond 2^53 become decimal text, and members that would reach a
 * prototype are left out. `AppError("syntax")` with `details: {line, column}` if the text is no JSON.
 */
export function parseJson(text: string, bounds: JsonBounds = HTTP_JSON_BOUNDS): unknown {
  if (hasLongNumber(text)) return decoded(text, bounds);
  checkDepth(text, bounds.depth);
  try {
    const value: unknown = JSON.parse(text);
    // Without a reviver: for one, V8 keeps a second tree, which takes several times the memory of the values.
    if (SUSPICIOUS.test(text)) leaveOutPrototypes(value);
    return value;
  } catch {
    // The decoder names the place of the fault.
    return decoded(text, bounds);
  }
}

function decoded(text: string, bounds: JsonBounds): unknown {
  const decoder = new JsonDecoder(text, bounds);
  while (!decoder.step());
  return decoder.value;
}

/**
 * True for a text that could be a JSON object or list. It may begin with at most `JSON_LEADING_BLANKS_MAX` blanks:
 * reading millions of them would block the thread.
 */
export function looksLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(text.slice(0, JSON_LEADING_BLANKS_MAX + 1));
}

/** `AppError("syntax")` for a text with so many leading blanks that `looksLikeJson` cannot decide. */
export function requireFewLeadingBlanks(text: string): void {
  if (text.length <= JSON_LEADING_BLANKS_MAX || text.slice(0, JSON_LEADING_BLANKS_MAX + 1).trim() !== "") return;
  const message = `Not valid JSON: it begins with more than ${JSON_LEADING_BLANKS_MAX} blanks.`;
  throw new AppError("syntax", message, { details: { limit: "JSON_LEADING_BLANKS_MAX" } });
}

/**
 * Name of a member, at any depth, that `parseJson` leaves out; `undefined` if there is none. May throw `SyntaxError` if
 * the text is no JSON.
 */
export function memberLeftOut(text: string): string | undefined {
  return SUSPICIOUS.test(text) ? prototypeMember(JSON.parse(text)) : undefined;
}

function prototypeMember(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [key, member] of Object.entries(value)) {
    const found = reachesPrototype(key, member) ? key : prototypeMember(member);
    if (found !== undefined) return found;
  }
  return undefined;
}

function leaveOutPrototypes(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) return value.forEach(leaveOutPrototypes);
  for (const [key, member] of Object.entries(value)) {
    if (reachesPrototype(key, member)) Reflect.deleteProperty(value, key);
    else leaveOutPrototypes(member);
  }
}

function reachesPrototype(key: string, member: unknown): boolean {
  return key === "__proto__" || (key === "constructor" && hasPrototype(member));
}

function hasPrototype(value: unknown): boolean {
  return typeof value === "object" && value !== null && "prototype" in value;
}

/** `AppError("too_large")` for a text that is nested deeper than `bound`. */
export function checkDepth(text: string, bound: Bound = HTTP_JSON_BOUNDS.depth): void {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === 92) at++;
      else if (code === 34) quoted = false;
    } else if (code === 34) quoted = true;
    else if (code === 123 || code === 91) depth++;
    else if (code === 125 || code === 93) depth--;
    if (depth > bound.max)
      throw new AppError("too_large", `The JSON is nested deeper than ${bound.max} levels (${bound.name}).`);
  }
}
