import { AppError, errorText } from "../errors.ts";
import { SEARCH_FIELDS_MAX } from "../limits.ts";
import { syntaxError } from "../mql/position.ts";
import type { Call, Lua, SearchField, Segment, Time } from "./ast.ts";
import { parseWhen } from "./parse-time.ts";
import type { Scanner } from "./scanner.ts";

const COUNT = /-1(?!\d)|\d{1,9}(?!\d)/y;
const ALONE = /delete(?=\s*(?:[|;；]|$))/iuy;
const LUA = /lua\s+([\p{L}_][\p{L}\p{N}_]*)\s*=\s*<lua>/iuy;
const LUA_END = "</lua>";

/** Parses a segment that begins with a word of the language; `undefined` if it does not. */
export function parseCommand(scanner: Scanner): Segment | undefined {
  const start = scanner.at;
  const when = parseWhen(scanner);
  if (when) return timeSegment(scanner, when, start);
  if (scanner.acceptWord("top")) return { kind: "top", count: count(scanner), span: scanner.spanFrom(start) };
  if (scanner.acceptWord("sort"))
    return { kind: "sort", items: list(scanner, sortItem, "by"), span: scanner.spanFrom(start) };
  if (scanner.acceptWord("print"))
    return { kind: "print", items: list(scanner, printItem), span: scanner.spanFrom(start) };
  if (scanner.acceptWord("uniq"))
    return { kind: "uniq", fields: list(scanner, field, "by"), span: scanner.spanFrom(start) };
  if (scanner.acceptWord("group"))
    return { kind: "group", fields: list(scanner, field, "by"), span: scanner.spanFrom(start) };
  if (scanner.acceptWord("call")) return call(scanner, start);
  if (scanner.match(ALONE)) {
    scanner.skipBlanks();
    return { kind: "delete", span: scanner.spanFrom(start) };
  }
  return lua(scanner, start);
}

function timeSegment(scanner: Scanner, when: Time["when"], start: number): Time {
  scanner.skipBlanks();
  const of = scanner.acceptWord("for") ? scanner.field() : undefined;
  return { kind: "time", when, field: of, span: scanner.spanFrom(start) };
}

function count(scanner: Scanner): number {
  const text = scanner.match(COUNT)?.[0];
  if (text === undefined) throw scanner.fail("a number of rows, or -1 for all");
  scanner.skipBlanks();
  return Number(text);
}

function list<T>(scanner: Scanner, item: (scanner: Scanner) => T, filler?: string): readonly T[] {
  if (filler !== undefined) scanner.acceptWord(filler);
  const items = [item(scanner)];
  while (scanner.accept(",")) {
    if (items.length >= SEARCH_FIELDS_MAX)
      throw tooLarge("SEARCH_FIELDS_MAX", `${SEARCH_FIELDS_MAX} fields in one list`);
    items.push(item(scanner));
  }
  return items;
}

function field(scanner: Scanner): SearchField {
  return scanner.field();
}

function sortItem(scanner: Scanner) {
  const by = scanner.field();
  const descending = scanner.acceptWord("desc");
  if (!descending) scanner.acceptWord("asc");
  return { field: by, descending };
}

function printItem(scanner: Scanner) {
  const of = scanner.field();
  return { field: of, alias: scanner.acceptWord("as") ? scanner.name() : undefined };
}

function call(scanner: Scanner, start: number): Call {
  const name = scanner.name("a name").toLowerCase();
  const options = scanner.text.charAt(scanner.at) === "{" ? json(scanner) : {};
  return { kind: "call", name, options, span: scanner.spanFrom(start) };
}

/** Parses the object that begins here, up to its closing brace. */
function json(scanner: Scanner): Readonly<Record<string, unknown>> {
  const start = scanner.at;
  const end = objectEnd(scanner.text, start);
  if (end === undefined)
    throw syntaxError(scanner.text, start, "a closing } for the object that begins here", "the end");
  try {
    const parsed = JSON.parse(scanner.text.slice(start, end)) as Readonly<Record<string, unknown>>;
    scanner.at = end;
    scanner.skipBlanks();
    return parsed;
  } catch (error) {
    throw syntaxError(scanner.text, start, "a JSON object", errorText(error));
  }
}

function objectEnd(text: string, start: number): number | undefined {
  const parts = /"(?:[^"\\]|\\[^])*"|[{}]/gy;
  const next = /["{}]/g;
  let depth = 0;
  for (let at = start; ; at = parts.lastIndex) {
    next.lastIndex = at;
    const found = next.exec(text);
    if (!found) return undefined;
    parts.lastIndex = found.index;
    const [part] = parts.exec(text) ?? [];
    if (part === undefined) return undefined;
    depth += part === "{" ? 1 : part === "}" ? -1 : 0;
    if (depth === 0) return parts.lastIndex;
  }
}

function lua(scanner: Scanner, start: number): Lua | undefined {
  const name = scanner.match(LUA)?.[1];
  if (name === undefined) return undefined;
  const end = scanner.text.indexOf(LUA_END, scanner.at);
  if (end === -1) throw syntaxError(scanner.text, start, `${LUA_END} behind the script that begins here`, "the end");
  const source = scanner.text.slice(scanner.at, end);
  scanner.at = end + LUA_END.length;
  scanner.skipBlanks();
  return { kind: "lua", field: name, source, span: scanner.spanFrom(start) };
}

export function tooLarge(limit: string, most: string): AppError {
  return new AppError("too_large", `[Parser] A search has at most ${most}.`, { details: { limit } });
}
