import { isIP } from "node:net";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { parseJson } from "../../../../common/json.ts";
import { COLLECTION_ELEMENTS_MAX } from "../../../../common/limits.ts";
import { parseDate, parseTimestamp } from "../../../../common/timestamps.ts";
import type { Value } from "../../../../common/value.ts";
import { setMember } from "../../../../common/members.ts";
import type { ColumnSpec, ColumnType } from "../types.ts";

/** A value in the canonical form of its type; `undefined` when it is not of that type. */
type Converter = (value: Value, column: ColumnSpec) => Value | undefined;

/**
 * Converts a value to the form that the column stores. Clients may write numbers and booleans as text, times as text or
 * milliseconds, and collections as JSON text. `undefined` clears the column: for `null`, and for an empty text unless
 * the column is a `varchar` or `text`. Throws an `AppError("invalid")` that names the column, also for a text with a
 * lone surrogate, which is half of a character and which stores replace by U+FFFD.
 */
export function canonicalValue(column: ColumnSpec, value: Value): Value | undefined {
  if (value === null || (value === "" && column.type !== "varchar" && column.type !== "text")) return undefined;
  const converted = CONVERTERS[column.type](value, column);
  if (converted === undefined) throw fault(column, value, "");
  if (!isWellFormed(converted)) throw fault(column, value, ": it has a lone surrogate, half of a character");
  return converted;
}

function fault(column: ColumnSpec, value: Value, reason: string): AppError {
  const text = `[Format] column ${column.name}: ${shown(value)} is no ${typeText(column)}${reason}.`;
  return new AppError("invalid", text, { details: { column: column.name } });
}

/** True if no text in the value has a lone surrogate. */
function isWellFormed(value: Value): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isWellFormed);
  return Object.entries(value).every(([key, member]) => key.isWellFormed() && isWellFormed(member as Value));
}

/** A column for the elements of a set or list, or for the keys of a map; for other types the column itself. */
export function elementColumn(column: ColumnSpec): ColumnSpec {
  if (!isCollection(column.type)) return column;
  return { name: column.name, type: column.elements?.[0] ?? "varchar" };
}

export function isCollection(type: ColumnType): boolean {
  return type === "set" || type === "list" || type === "map";
}

/**
 * Text of a canonical value; equal values have equal texts. Index terms, keys and names of elements are made from it.
 */
export function canonicalText(value: Value): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  return JSON.stringify(value);
}

/** The type as it is written in `CREATE CLASS`. */
export function typeText(column: ColumnSpec): string {
  return column.elements === undefined ? column.type : `${column.type}<${column.elements.join(",")}>`;
}

const INT = { min: -(2n ** 31n), max: 2n ** 31n - 1n };
const SMALLINT = { min: -(2n ** 15n), max: 2n ** 15n - 1n };
const BIGINT = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const VARINT_MAX_DIGITS = 1_000;
const INTEGER_TEXT = /^[+-]?\d+(\.0+)?$/;
/** The common form of integers, safe in a number. */
const SHORT_INTEGER_TEXT = /^(?:0|-?[1-9]\d{0,14})$/;
const NUMBER_TEXT = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

const CONVERTERS: Readonly<Record<ColumnType, Converter>> = {
  varchar: toText,
  text: toText,
  int: (value) => toInteger(value, INT),
  smallint: (value) => toInteger(value, SMALLINT),
  bigint: (value) => toInteger(value, BIGINT),
  long: (value) => toInteger(value, BIGINT),
  varint: (value) => toInteger(value),
  float: toNumber,
  double: toNumber,
  boolean: toBoolean,
  timestamp: parseTimestamp,
  date: parseDate,
  blob: (value) => (typeof value === "string" && BASE64.test(value) && value.length % 4 === 0 ? value : undefined),
  uuid: toUuid,
  inet: (value) => (typeof value === "string" && isIP(value.trim()) !== 0 ? value.trim().toLowerCase() : undefined),
  enum: toLabel,
  list: toList,
  set: toSet,
  map: toMap,
  bucket: toSeries,
  bitlog: toSeries,
};

function toText(value: Value): string {
  return canonicalText(value);
}

interface IntegerRange {
  readonly min: bigint;
  readonly max: bigint;
}

function toInteger(value: Value, range?: IntegerRange): Value | undefined {
  if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) < 32_768) return value + 0;
  if (typeof value === "string" && SHORT_INTEGER_TEXT.test(value)) return inRange(Number(value), range);
  const exact = exactInteger(value);
  if (exact === undefined || (range !== undefined && (exact < range.min || exact > range.max))) return undefined;
  const number = Number(exact);
  return Number.isSafeInteger(number) ? number : String(exact);
}

function inRange(value: number, range: IntegerRange | undefined): number | undefined {
  return range === undefined || (value >= range.min && value <= range.max) ? value : undefined;
}

function exactInteger(value: Value): bigint | undefined {
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value) : undefined;
  if (typeof value === "boolean") return value ? 1n : 0n;
  if (typeof value !== "string") return undefined;
  const text = value.trim();
  if (!INTEGER_TEXT.test(text) || text.length > VARINT_MAX_DIGITS) return undefined;
  return BigInt(text.replace(/^\+|\.0+$/g, ""));
}

/** Zero is stored without a sign, because both zeros are equal and JSON has only one. */
function toNumber(value: Value): number | undefined {
  const number = typeof value === "string" && NUMBER_TEXT.test(value.trim()) ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number + 0 : undefined;
}

function toBoolean(value: Value): boolean | undefined {
  if (value === true || value === 1) return true;
  if (value === false || value === 0) return false;
  const text = typeof value === "string" ? value.trim().toLowerCase() : "";
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" ? false : undefined;
}

function toUuid(value: Value): string | undefined {
  const text = typeof value === "string" ? value.trim().toLowerCase() : "";
  return UUID.test(text) ? text : undefined;
}

/** A number if all stored values of the enum are integers, otherwise a text. */
function toLabel(value: Value, column: ColumnSpec): Value | undefined {
  if (typeof value === "object") return undefined;
  const text = String(value);
  const labels = Object.keys(column.labels ?? {});
  if (labels.length > 0 && !labels.includes(text)) return undefined;
  return labels.every((label) => /^(0|-?[1-9]\d{0,14})$/.test(label)) && /^-?\d{1,15}$/.test(text)
    ? Number(text)
    : text;
}

function toList(value: Value, column: ColumnSpec): Value | undefined {
  const elements = asArray(value, column);
  if (elements === undefined || elements.length > COLLECTION_ELEMENTS_MAX) return undefined;
  return convertAll(elements, column, column.elements?.[0]);
}

/** A set has no positions that a null could keep, so nulls are left out. */
function toSet(value: Value, column: ColumnSpec): Value | undefined {
  const list = toList(value, column);
  if (!Array.isArray(list)) return undefined;
  const elements = list.filter((element: Value) => element !== null);
  const distinct = new Map<string, Value>(elements.map((element: Value) => [canonicalText(element), element]));
  return distinct.size === elements.length ? elements : [...distinct.values()];
}

function toMap(value: Value, column: ColumnSpec): Value | undefined {
  const entries = asObject(value, column);
  if (entries === undefined || Object.keys(entries).length > COLLECTION_ELEMENTS_MAX) return undefined;
  const [keyType, valueType] = column.elements ?? [];
  const converted: Record<string, Value> = {};
  for (const [key, entry] of Object.entries(entries)) {
    if (entry === null) continue;
    const name = convertElement(key, column, keyType);
    const kept = convertElement(entry, column, valueType);
    if (name === undefined || kept === undefined) return undefined;
    setMember(converted, canonicalText(name), kept);
  }
  return converted;
}

function convertAll(elements: readonly Value[], column: ColumnSpec, type: ColumnType | undefined): Value[] | undefined {
  const converted: Value[] = [];
  for (const element of elements) {
    const kept = element === null ? null : convertElement(element, column, type);
    if (kept === undefined) return undefined;
    converted.push(kept);
  }
  return converted;
}

/** Elements without a declared type stay as they are. */
function convertElement(element: Value, column: ColumnSpec, type: ColumnType | undefined): Value | undefined {
  return type === undefined ? element : CONVERTERS[type](element, { name: column.name, type });
}

/** JSON text of an array, or one element. */
function asArray(value: Value, column: ColumnSpec): readonly Value[] | undefined {
  if (Array.isArray(value)) return value as readonly Value[];
  if (typeof value === "object") return undefined;
  if (typeof value === "string" && value.trimStart().startsWith("[")) {
    const parsed = parsedJson(value, column);
    if (Array.isArray(parsed)) return parsed as readonly Value[];
  }
  return [value];
}

function asObject(value: Value, column: ColumnSpec): { readonly [key: string]: Value } | undefined {
  const parsed = parsedJson(value, column);
  return isObject(parsed) ? parsed : undefined;
}

export function isObject(value: Value | undefined): value is { readonly [key: string]: Value } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * With an element type, integers beyond 2^53 stay exact, as text. Without one, numbers are read as doubles; otherwise a
 * large number would become a text.
 */
function parsedJson(value: Value, { elements = [] }: ColumnSpec): Value | undefined {
  return typeof value === "string" ? jsonIn(value, elements.length > 0 ? parseJson : JSON.parse) : value;
}

/** Series hold doubles. */
function toSeries(value: Value): Value | undefined {
  return typeof value === "string" ? jsonIn(value, JSON.parse) : value;
}

function jsonIn(text: string, parse: (text: string) => unknown): Value | undefined {
  try {
    return parse(text) as Value;
  } catch (error) {
    if (isAppError(error, "too_large")) throw error;
    return undefined;
  }
}

function shown(value: Value): string {
  const text = JSON.stringify(value);
  return text.length <= 80 ? text : `${text.slice(0, 80)}…`;
}
