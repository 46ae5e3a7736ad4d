import type { ValueNode } from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import type { ColumnType } from "../objects/index.ts";

/** Nodes that are made and not read stand nowhere. */
export const NOWHERE = { span: { start: 0, end: 0 } } as const;
/** Whatever JSON they hold, these take it as JSON text. */
const JSON_TYPES: ReadonlySet<ColumnType> = new Set(["bucket", "bitlog"]);

/** A value of a column as a script writes it, so that reading it gives just this value again. */
export function columnNode(type: ColumnType, value: Value): ValueNode {
  return JSON_TYPES.has(type) ? textNode(JSON.stringify(value)) : valueNode(value);
}

export function valueNode(value: Value): ValueNode {
  if (typeof value === "string") return textNode(value);
  if (typeof value === "number") return { kind: "number", text: numberText(value), ...NOWHERE };
  if (value === null || typeof value === "boolean") return { kind: "constant", value, ...NOWHERE };
  return structureNode(value);
}

export function textNode(value: string): ValueNode & { readonly kind: "text" } {
  return { kind: "text", value, ...NOWHERE };
}

function structureNode(value: Value & object): ValueNode {
  if (Array.isArray(value)) return { kind: "list", items: value.map((item: Value) => valueNode(item)), ...NOWHERE };
  const entries = Object.entries(value).map(([key, entry]) => ({ kind: "entry" as const, key, value: valueNode(entry as Value), ...NOWHERE }));
  return { kind: "map", entries, ...NOWHERE };
}

/** Whole numbers beyond 2^53 are numbers to a reader only when they are written with an exponent; without one they are kept digit by digit. */
function numberText(value: number): string {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? value.toExponential() : String(value);
}
