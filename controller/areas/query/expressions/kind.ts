import { parseTimestamp } from "../../../../common/timestamps.ts";
import type { Value } from "../../../../common/value.ts";
import type { Column, ColumnType } from "../../objects/index.ts";
import { dayOf } from "./functions/day.ts";

/**
 * The way in which values of a column are compared. Kinds are compared by identity: there is one object for each kind.
 */
export interface Kind {
  readonly type: "number" | "text" | "code" | "boolean" | "time" | "date" | "list" | "map" | "any";
  /** Kind of list elements and map values. */
  readonly element: Kind | undefined;
}

/** Form of scalars in comparisons. An integer that a double does not hold is a bigint. */
export type Comparable = string | number | bigint | boolean;

export const NUMBER: Kind = { type: "number", element: undefined };
export const TEXT: Kind = { type: "text", element: undefined };
export const BOOLEAN: Kind = { type: "boolean", element: undefined };
export const TIME: Kind = { type: "time", element: undefined };
/** Stored as `YYYY-MM-DD`. */
export const DATE: Kind = { type: "date", element: undefined };
/** Text that is compared without its case. */
const CODE: Kind = { type: "code", element: undefined };
/** Each value has its own kind, as in members of maps without declared types, and in buckets. */
export const ANY: Kind = { type: "any", element: undefined };

const SCALARS: Readonly<Partial<Record<ColumnType, Kind>>> = {
  varchar: TEXT,
  text: TEXT,
  uuid: CODE,
  inet: CODE,
  blob: TEXT,
  enum: TEXT,
  int: NUMBER,
  bigint: NUMBER,
  smallint: NUMBER,
  long: NUMBER,
  varint: NUMBER,
  float: NUMBER,
  double: NUMBER,
  boolean: BOOLEAN,
  timestamp: TIME,
  date: DATE,
};
const LISTS = new Map<Kind, Kind>();
const MAPS = new Map<Kind, Kind>();
const NUMBER_TEXT = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i;
const PLAIN_DATE = /^\d{4}-\d\d-\d\d$/;
const INTEGER_TEXT = /^[+-]?\d+$/;

/** The kind of the ids that a relation leads to. */
export const LIST_OF_TEXT: Kind = once(LISTS, "list", TEXT);
export const LIST_OF_ANY: Kind = once(LISTS, "list", ANY);

/** The kind of a list of values of this kind. If they are lists themselves, their elements are joined. */
export function severalOf(kind: Kind): Kind {
  if (kind.type === "list") return kind;
  return kind.type === "map" ? LIST_OF_ANY : once(LISTS, "list", kind);
}

export function isSeveral({ type }: Kind): boolean {
  return type === "list" || type === "map";
}

/** A column of the answer of a SELECT. Its kind may be more exact than its type says. */
export interface KnownKind {
  readonly kind: Kind;
}

export function kindOf(column: Pick<Column, "type" | "elements"> & Partial<KnownKind>): Kind {
  if (column.kind) return column.kind;
  if (column.type === "list" || column.type === "set") return once(LISTS, "list", elementKind(column.elements?.[0]));
  if (column.type === "map") return once(MAPS, "map", elementKind(column.elements?.[1]));
  return SCALARS[column.type] ?? ANY;
}

function elementKind(type: ColumnType | undefined): Kind {
  return type === undefined ? ANY : (SCALARS[type] ?? ANY);
}

function once(kinds: Map<Kind, Kind>, type: "list" | "map", element: Kind): Kind {
  const known = kinds.get(element);
  if (known) return known;
  const kind: Kind = { type, element };
  kinds.set(element, kind);
  return kind;
}

/** The value in the form for comparisons of that kind; absent if that is impossible. */
export function toComparable(kind: Kind, value: Value): Comparable | undefined {
  switch (kind.type) {
    case "number":
      return typeof value === "number" ? value : typeof value === "string" ? numberOf(value) : undefined;
    case "text":
      return typeof value === "string" ? value : isScalar(value) ? String(value) : undefined;
    case "code":
      return typeof value === "string" ? value.trim().toLowerCase() : undefined;
    case "date":
      return dateOf(value);
    case "boolean":
      return typeof value === "boolean" ? value : typeof value === "string" ? booleanOf(value) : undefined;
    case "time":
      return typeof value === "number" ? value : typeof value === "string" ? parseTimestamp(value) : undefined;
    case "list":
    case "map":
      return undefined;
    case "any":
      return isScalar(value) ? value : undefined;
  }
}

/** Below 0, 0 or above 0, like `left - right`. Values of different types are ordered by their types. */
export function compare(left: Comparable, right: Comparable): number {
  const leftRank = rank(left);
  const rightRank = rank(right);
  if (leftRank !== rightRank) return leftRank - rightRank;
  return left < right ? -1 : left > right ? 1 : 0;
}

/** The comparable as a value of a row. */
export function toValue(comparable: Comparable): Value {
  return typeof comparable === "bigint" ? String(comparable) : comparable;
}

export function numberOf(text: string): number | bigint | undefined {
  const trimmed = text.trim();
  if (!NUMBER_TEXT.test(trimmed)) return undefined;
  const number = Number(trimmed);
  return Number.isSafeInteger(number) || !INTEGER_TEXT.test(trimmed) ? number : BigInt(trimmed);
}

function dateOf(value: Value): string | undefined {
  if (typeof value === "string" && PLAIN_DATE.test(value)) return value;
  const timeMs = toComparable(TIME, value);
  const day = typeof timeMs === "number" ? dayOf(timeMs) : "";
  // Years beyond 9999 have more digits.
  return PLAIN_DATE.test(day) ? day : undefined;
}

function booleanOf(text: string): boolean | undefined {
  const lower = text.toLowerCase();
  return lower === "true" ? true : lower === "false" ? false : undefined;
}

function isScalar(value: Value): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function rank(value: Comparable): number {
  return typeof value === "boolean" ? 0 : typeof value === "string" ? 2 : 1;
}
