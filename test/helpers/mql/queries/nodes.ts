import type {
  Count,
  Field,
  Item,
  NumberNode,
  Operand,
  SelectItem,
  Source as FromSource,
  Tail,
  ValueNode,
  WindowItem,
} from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { COLUMN_TYPES, type ColumnName, RELATIONS, SINGLE } from "../world.ts";

export const span = { start: 0, end: 0 };

export const OPEN: Tail = { orderBy: [], limit: undefined, offset: undefined, cursor: undefined };

export const TEXTS: readonly ColumnName[] = ["s1", "s2", "x1"];

export const SEVERAL: readonly ColumnName[] = ["g1", "m1"];

/** A class, with or without its subclasses, and the fields that can be named there. */
export interface Source {
  readonly ref: FromSource;
  readonly names: readonly ColumnName[];
  /** Columns that every class of the source has. */
  readonly shared: readonly ColumnName[];
  /** True for the result of a SELECT: it has no time, no relations and no order. */
  readonly isAnswer?: true;
}

export function isScalar(name: string): name is ColumnName {
  return !SEVERAL.includes(name as ColumnName);
}

export function isText(name: string): boolean {
  return TEXTS.includes(name as ColumnName) || name === "id" || name === "class";
}

export function isRelation(name: string): boolean {
  return RELATIONS.some((type) => type === name);
}

/** Returns true if the field is a single value and not a list of the values of several objects. */
export function isOne({ parts }: Field): boolean {
  return !isRelation(parts.at(-1) ?? "") && parts.every((part) => !isRelation(part) || part === SINGLE);
}

export function isSingle(value: Operand): boolean {
  return value.kind !== "field" || isScalar(value.parts.at(-1) ?? "");
}

/** Makes the names of the outputs unique, except for aliases. */
export function unlike(items: readonly Item[]): readonly Item[] {
  return items.map((one, at) => ({
    ...one,
    alias:
      one.alias ??
      (items.some((other, before) => before < at && JSON.stringify(other.value) === JSON.stringify(one.value))
        ? `d${at}`
        : undefined),
  }));
}

export function aliasedAs(name: string): (one: WindowItem, at: number) => WindowItem {
  return (one, at) => ({ ...one, alias: `${name}${at}` });
}

export function output(one: Item): Operand {
  return one.alias === undefined ? one.value : field([one.alias]);
}

export function star(): SelectItem {
  return { kind: "star", alias: undefined, span };
}

export function item(value: Operand, alias?: string): Item {
  return { kind: "item", value, alias, span };
}

export function field(parts: readonly string[]): Field {
  return { kind: "field", parts, span };
}

export function text(value: string): ValueNode {
  return { kind: "text", value, span };
}

export function number(value: number): Count {
  return numberNode(value);
}

export function numberNode(value: number): NumberNode {
  return { kind: "number", text: String(value), span };
}

/** Times become text. */
export function valueNode(name: string, value: Value): ValueNode {
  if (typeof value === "boolean") return { kind: "constant", value, span };
  if (COLUMN_TYPES[name as ColumnName] === "timestamp")
    return text(new Date(Number(value)).toISOString().slice(0, 19).replace("T", " "));
  return typeof value === "number" ? { kind: "number", text: String(value), span } : text(String(value));
}
