import { LUA_LITERAL_DEPTH_MAX, LUA_LITERAL_MAX_CHARACTERS, LUA_LITERAL_RUNS_MAX } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";

/**
 * Encodes the globals of runs, each JSON of an object, as lines for the VM in their order. Several objects are combined
 * into a Lua text that returns a list of tables: Lua's parser is several times faster than JSON decoding in Lua. An
 * object that is too large or too deep for a Lua text stays a line of JSON.
 */
export function* linesOf(each: readonly string[]): Generator<string> {
  let tables: string[] = [];
  let size = 0;
  for (const json of each) {
    const table = json.length > LUA_LITERAL_MAX_CHARACTERS ? undefined : valueText(JSON.parse(json) as Value, 1);
    const isFull = tables.length === LUA_LITERAL_RUNS_MAX || size + json.length > LUA_LITERAL_MAX_CHARACTERS;
    if (tables.length > 0 && (table === undefined || isFull)) {
      yield textOf(tables);
      tables = [];
      size = 0;
    }
    if (table === undefined) yield json;
    else tables.push(table);
    size += json.length;
  }
  if (tables.length > 0) yield textOf(tables);
}

function textOf(tables: readonly string[]): string {
  return `return {${tables.join(",")}}`;
}

function valueText(value: Value, depth: number): string | undefined {
  switch (typeof value) {
    case "string":
      return quoted(value);
    case "number":
      return numberText(value);
    case "boolean":
      return value ? "true" : "false";
    default:
      return value === null ? "nil" : tableText(value, depth);
  }
}

function tableText(value: Exclude<Value, null>, depth: number): string | undefined {
  if (depth > LUA_LITERAL_DEPTH_MAX) return undefined;
  let text = "{";
  if (Array.isArray(value)) {
    for (const entry of value as readonly Value[]) {
      const part = valueText(entry, depth + 1);
      if (part === undefined) return undefined;
      text += `${part},`;
    }
    return `${text}}`;
  }
  for (const [name, entry] of Object.entries(value as Readonly<Record<string, Value>>)) {
    const part = valueText(entry, depth + 1);
    if (part === undefined) return undefined;
    text += `[${quoted(name)}]=${part},`;
  }
  return `${text}}`;
}

/** JSON may contain numbers that are too large for JavaScript and for Lua. */
function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : value > 0 ? "1e999" : "-1e999";
}

/** JSON and Lua have the same escapes, except for characters given by their number. */
function quoted(text: string): string {
  const json = JSON.stringify(text);
  return json.includes("\\u") ? json.replace(/\\(?:u([0-9a-f]{4})|.)/g, numbered) : json;
}

function numbered(escape: string, digits: string | undefined): string {
  return digits === undefined ? escape : bytesOf(Number.parseInt(digits, 16)).map(byteText).join("");
}

/** UTF-8 bytes of a control character or of half a surrogate pair. */
function bytesOf(code: number): readonly number[] {
  return code < 0x80 ? [code] : [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)];
}

function byteText(byte: number): string {
  return `\\${String(byte).padStart(3, "0")}`;
}
