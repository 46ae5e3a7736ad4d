import { AppError } from "../../../../common/errors.ts";
import { parseJson } from "../../../../common/json.ts";
import { textNode, type ValueNode, valueNode } from "../../../../common/mql/index.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import type { Value } from "../../../../common/value.ts";
import { canonicalValue, type Column } from "../../objects/index.ts";
import { columnNode } from "../values.ts";
import type { HeadedCell, SheetTarget } from "./types.ts";

/** Spreadsheet programs keep 15 digits of a number. Greater whole numbers may be rounded. */
const EXACT_BELOW = 1e15;
const WHOLE = /^\s*[+-]?\d+(\.0*)?\s*$/;
const SHOWN_CHARACTERS = 80;

/**
 * The value as a script writes it. A cell without content gives null, which clears the column. `AppError("invalid")` if
 * the content is not a value of the column's type, or if the type would change it.
 */
export function cellNode({ name, column }: SheetTarget, cell: HeadedCell | undefined): ValueNode {
  if (cell === undefined) return valueNode(null);
  if (cell.fault !== undefined) throw new AppError("invalid", `[Format] ${cell.fault}.`);
  const text = exactText(name, cell, column?.type);
  if (!column)
    return text.trimStart().startsWith("[") && name !== "id" ? valueNode(parsed(name, text)) : textNode(text);
  if (column.type === "varchar" || column.type === "text") return textNode(text);
  if (text === "") return valueNode(null);
  return typedNode(column, text, cell);
}

function typedNode(column: Column, text: string, { kind }: HeadedCell): ValueNode {
  switch (column.type) {
    case "timestamp":
    case "date":
      if (kind === "number")
        throw fault(column.name, text, "is a number: give its cell the format of a date, or write it in ISO 8601");
      // A number alone is refused, because it may mean seconds, milliseconds or days.
      if (/^\s*[+-]?\d+\s*$/.test(text))
        throw fault(column.name, text, "is no time in ISO 8601, as 2026-01-31T12:00:00Z");
      break;
    case "float":
    case "double":
      requireExact(column.name, text);
      break;
    case "list":
    case "set":
      return jsonNode(column, text, Array.isArray, 'is no list as JSON, as ["a","b"]');
    case "map":
      return jsonNode(column, text, isMap, 'is no map as JSON, as {"a":1}');
    case "bucket":
    case "bitlog":
      return jsonNode(column, text, () => true, "is no JSON");
    default:
  }
  canonicalValue(column, text);
  return textNode(text);
}

function jsonNode(column: Column, text: string, isRight: (value: Value) => boolean, reason: string): ValueNode {
  const value = parsed(column.name, text);
  if (!isRight(value)) throw fault(column.name, text, reason);
  canonicalValue(column, value);
  return columnNode(column.type, value);
}

function parsed(name: string, text: string): Value {
  try {
    return parseJson(text) as Value;
  } catch (error) {
    throw fault(name, text, "is no JSON", error);
  }
}

function isMap(value: Value): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The text of a cell. For a number of a workbook, the shortest text with exactly this value. */
function exactText(name: string, { text, kind }: HeadedCell, type: Column["type"] | undefined): string {
  if (kind !== "number") return text;
  const number = Number(text);
  if (!Number.isFinite(number)) throw fault(name, text, "is no number");
  const isRounded = Number.isInteger(number) && Math.abs(number) >= EXACT_BELOW;
  if (isRounded && type !== "double" && type !== "float")
    throw fault(name, text, "is a number of more than 15 digits, which spreadsheet programs round: make it a text");
  return String(number);
}

/**
 * `AppError("invalid")` for numbers that a double would change: large whole numbers, and numbers so small that they
 * become 0.
 */
function requireExact(name: string, text: string): void {
  const number = Number(text);
  const isWhole = WHOLE.test(text) && Number.isFinite(number);
  const isAltered = isWhole ? BigInt(text.trim().replace(/\.0*$|^\+/g, "")) !== BigInt(number) : number === 0;
  if (isAltered && /[1-9]/.test(text.replace(/[eE].*/, "")))
    throw fault(name, text, "is no number that a double holds");
}

function fault(name: string, text: string, reason: string, cause?: unknown): AppError {
  const shown = JSON.stringify(text.length <= SHOWN_CHARACTERS ? text : `${beginningOf(text, SHOWN_CHARACTERS)}…`);
  return new AppError("invalid", `[Format] column ${name}: ${shown} ${reason}.`, { cause, details: { column: name } });
}
