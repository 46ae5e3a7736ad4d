import type { Value } from "../value.ts";
import type { MapNode, Span, TextNode, ValueNode } from "./ast.ts";

/** Trees that are made and not read have no place in a text. */
export const NOWHERE: Span = { start: 0, end: 0 };

/** The value as a script writes it, so that reading it gives just this value again. */
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

/**
 * Whole numbers beyond 2^53 are numbers to a reader only when they are written with an exponent; without one they are
 * kept digit by digit.
 */
function numberText(value: number): string {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}
