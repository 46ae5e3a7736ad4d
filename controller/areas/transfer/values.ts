import { textNode, type ValueNode, valueNode } from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import type { ColumnType } from "../objects/index.ts";

/** These types take any JSON, as JSON text. */
const JSON_TYPES: ReadonlySet<ColumnType> = new Set(["bucket", "bitlog"]);

/** A value of a column as a script writes it, so that reading it gives just this value again. */
export function columnNode(type: ColumnType, value: Value): ValueNode {
  return JSON_TYPES.has(type) ? textNode(JSON.stringify(value)) : valueNode(value);
}
