import { textNode, type ValueNode, valueNode } from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import type { ColumnType } from "../objects/index.ts";

/** Types of columns that take any JSON value. Scripts contain it as JSON text. */
const JSON_TYPES: ReadonlySet<ColumnType> = new Set(["bucket", "bitlog"]);

/** The value of a column in a script. Reading the script gives the same value. */
export function columnNode(type: ColumnType, value: Value): ValueNode {
  return JSON_TYPES.has(type) ? textNode(JSON.stringify(value)) : valueNode(value);
}
