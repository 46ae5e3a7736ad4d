import type { Value } from "../value.ts";
import type { MapNode, Span, TextNode, ValueNode } from "./ast.ts";

/** Span of generated nodes, which have no position in a text. */
export const NOWHERE: Span = { start: 0, end: 0 };

/** Node of a value as a script writes it, such that reading it gives the same value. */
export function valueNode(value: Value): ValueNode {
  if (typeof value === "string") return textNode(value);
  if (typeof value === "number") return { kind: "number", text: numberText(value), span: NOWHERE };
  if (value === null || typeof value === "boolean") return { kind: "constant", value, span: NOWHERE };
  if (isList(value)) return { kind: "list", items: value.map(valueNode), span: NOWHERE };
  return mapNode(value);
}

export function textNode(value: string): TextNode {
  return { kind: "text", value, span: NOWHERE };
}

export function mapNode(members: Readonly<Record<string, Value>>): MapNode {
  const entries = Object.entries(members).map(([key, value]) => ({
    kind: "entry" as const,
    key,
    value: valueNode(value),
    span: NOWHERE,
  }));
  return { kind: "map", entries, span: NOWHERE };
}

function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Whole numbers beyond 2^53 get an exponent. Without one, a reader keeps them digit by digit, not as a number. */
function numberText(value: number): string {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}
