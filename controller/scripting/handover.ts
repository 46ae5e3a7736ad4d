import {
  SCRIPT_CALL_MAX_CHARACTERS,
  SCRIPT_ERROR_MAX_CHARACTERS,
  SCRIPT_LOG_ENTRY_MAX_CHARACTERS,
  SCRIPT_OUTPUT_MAX_CHARACTERS,
  SCRIPT_VALUE_MAX_DEPTH,
  SCRIPT_VALUE_MAX_MEMBERS,
} from "../../common/limits.ts";
import { cutText } from "../../common/text/cut.ts";
import type { ScriptFailure } from "./task.ts";

/** Bounds on data from a script's thread to the thread that answers calls. The script's thread checks them first. */

/** An exceeded bound. `message` is a sentence without its subject, such as `has more than 10 members`. */
export interface Passed {
  readonly limit: string;
  readonly message: string;
}

/** The bound that the values within a list or an object exceed. `json` must be the output of `JSON.stringify`. */
export function passedByValues(json: string): Passed | undefined {
  const [depth, members] = measured(json);
  if (depth > SCRIPT_VALUE_MAX_DEPTH) return tooDeep();
  if (members <= SCRIPT_VALUE_MAX_MEMBERS) return undefined;
  const message = `has more than ${SCRIPT_VALUE_MAX_MEMBERS} members and entries`;
  return { limit: "SCRIPT_VALUE_MAX_MEMBERS", message };
}

export function tooDeep(): Passed {
  const message = `is nested more than ${SCRIPT_VALUE_MAX_DEPTH} deep`;
  return { limit: "SCRIPT_VALUE_MAX_DEPTH", message };
}

/** Maximum length of a script's answer as JSON; a run of a series may have its own bound. */
export function charactersMax(ofSeries: number | undefined): number {
  return ofSeries ?? SCRIPT_OUTPUT_MAX_CHARACTERS;
}

export function tooLong(ofSeries: number | undefined): Passed {
  const limit = ofSeries === undefined ? "SCRIPT_OUTPUT_MAX_CHARACTERS" : "RULE_RESULT_MAX_CHARACTERS";
  return { limit, message: `has more than ${charactersMax(ofSeries)} characters as JSON` };
}

export function refused(name: string, { limit, message }: Passed): { readonly failure: ScriptFailure } {
  return { failure: { kind: "output", limit, message: `What ${name} answers ${message}.` } };
}

/** The bound that the arguments of a host call exceed, as a JSON list. */
export function passedByArguments(json: string): Passed | undefined {
  if (json.length <= SCRIPT_CALL_MAX_CHARACTERS) return passedByValues(json);
  const message = `has more than ${SCRIPT_CALL_MAX_CHARACTERS} characters as JSON`;
  return { limit: "SCRIPT_CALL_MAX_CHARACTERS", message };
}

/** Arguments of a host call, shortened for log calls: characters that a log entry would cut off are not sent. */
export function shortened(name: string, args: string): string {
  if (!name.startsWith("log.") || args.length <= SCRIPT_LOG_ENTRY_MAX_CHARACTERS) return args;
  const text = passedByArguments(args) ? args.slice(1, -1) : (JSON.parse(args) as unknown[]).map(entryText).join(" ");
  // One character too many, so that the entry reports that it was cut.
  return JSON.stringify([text.slice(0, SCRIPT_LOG_ENTRY_MAX_CHARACTERS + 1)]);
}

/** A failure in which every text is cut to its bound. */
export function bounded(failure: ScriptFailure): ScriptFailure {
  const { message, code, details, file } = failure;
  return {
    ...failure,
    message: cutText(message, SCRIPT_ERROR_MAX_CHARACTERS),
    code: code && cutText(code, SCRIPT_ERROR_MAX_CHARACTERS),
    details: details && (isShort(details) ? details : { cut: "SCRIPT_ERROR_MAX_CHARACTERS" }),
    file: file && cutText(file, SCRIPT_ERROR_MAX_CHARACTERS),
  };
}

/** Depth of the values within the outermost list or object, and the number of their members and entries in total. */
function measured(json: string): readonly [depth: number, members: number] {
  let [depth, deepest, members] = [0, 0, 0];
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at);
    else if (code === COMMA && depth > 1) members += 1;
    else if (code === LIST || code === OBJECT) {
      depth += 1;
      deepest = Math.max(deepest, depth);
      if (depth > 1 && json.charCodeAt(at + 1) !== code + TO_END) members += 1;
    } else if (code === LIST + TO_END || code === OBJECT + TO_END) depth -= 1;
    if (deepest - 1 > SCRIPT_VALUE_MAX_DEPTH || members > SCRIPT_VALUE_MAX_MEMBERS) break;
  }
  return [deepest - 1, members];
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const LIST = 0x5b;
const BACKSLASH = 0x5c;
const OBJECT = 0x7b;
/** Difference between the character codes of a closing and of an opening bracket. */
const TO_END = 2;

/** End of the text that begins there. */
function endOfText(json: string, from: number): number {
  for (let at = from; ; ) {
    at = json.indexOf('"', at + 1);
    if (at < 0) return json.length;
    let escapes = 0;
    while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
}

function entryText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function isShort(details: object): boolean {
  const json = JSON.stringify(details);
  return json.length <= SCRIPT_ERROR_MAX_CHARACTERS && passedByValues(json) === undefined;
}
