import { textNode, type ValueNode, valueNode } from "../../../common/mql/index.ts";
import type { Value } from "../../../common/value.ts";
import type { ColumnType } from "../objects/index.ts";

/** Types that take any JSON value, as JSON text. */
const JSON_TYPES: ReadonlySet<ColumnType> = new Set(["bucket", "bitlog"]);

/** Value of a column as a script writes it, such that reading it gives the same value. */
export function columnNode(type: ColumnType, value: Value): ValueNode {
  return JSON_TYPES.has(type) ? textNode(JSON.stringify(value)) : valueNode(value);
}
