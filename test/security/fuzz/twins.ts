import type { DrawnCall } from "../draw.ts";
import type { Twin } from "./names.ts";

/**
 * The call with the words of hidden objects replaced by words of nothing; `undefined` if it has none. A hidden object
 * does not exist for the caller, so both calls must be answered alike. Otherwise a count, a status, an estimate or the
 * text of an error tells that the object exists, and conditions guess its values.
 */
export function twinOf({ endpoint, ...call }: DrawnCall, twins: readonly Twin[]): DrawnCall | undefined {
  const text = JSON.stringify(call);
  const other = replaced(text, twins);
  return other === text ? undefined : { endpoint, ...(JSON.parse(other) as Omit<DrawnCall, "endpoint">) };
}

function replaced(text: string, twins: readonly Twin[]): string {
  return twins.reduce((rest, [hidden, missing]) => rest.replaceAll(hidden, missing), text);
}

/** Values that differ between two answers to the same call. */
const PASSING = new RegExp(
  [
    "[0-9A-HJKMNP-TV-Z]{26}", // ULID
    "[0-9a-f]{8}-[0-9a-f-]{27}", // UUID
    "\\d{4}-\\d\\d-\\d\\d[T ]\\d\\d:\\d\\d:\\d\\d[.\\d]*Z?",
    "\\d{10,}",
    "\\d+(\\.\\d+)? ms",
    '"(duration|took|elapsed|ms)[A-Za-z]*":[\\d.]+',
  ].join("|"),
  "g",
);

/**
 * The answer in a form in which answers to a call and to its twin are equal. Some answers repeat a path of the call
 * without its first slash, and an error of a parser only the word before a dot.
 */
export function plainAnswer(answer: string, twins: readonly Twin[]): string {
  const whole = twins.map(([hidden, missing]): Twin => [hidden.replace(/^\//, ""), missing.replace(/^\//, "")]);
  const words = whole.flatMap(([hidden, missing]): Twin[] => [
    [hidden, missing],
    [beforeDot(hidden), beforeDot(missing)],
  ]);
  return replaced(answer.replace(CURSOR, placeOf), words).replace(PASSING, "…");
}

function beforeDot(word: string): string {
  return word.replace(/(?<=.)\..*/, "");
}

/** Also in a text within the answer, such as the result of a script. */
const CURSOR = /(?<=\bcursor\\*":\\*")[\w-]+/g;

/** Content of a cursor without the digest of its statement, which differs between a call and its twin. */
function placeOf(cursor: string): string {
  return Buffer.from(cursor, "base64url")
    .toString()
    .replace(/^\["[^"]*",/, "[");
}
