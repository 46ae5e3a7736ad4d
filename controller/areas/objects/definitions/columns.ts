import type { ColumnSpec } from "../types.ts";

/** Columns of one type, for the classes of the platform. */
export function columns(
  type: Exclude<ColumnSpec["type"], "list" | "set" | "map">,
  ...names: readonly string[]
): readonly ColumnSpec[] {
  return names.map((name) => ({ name, type }));
}

/** Columns that hold several texts each. */
export function textColumns(type: "list" | "set", ...names: readonly string[]): readonly ColumnSpec[] {
  return names.map((name) => ({ name, type, elements: ["varchar"] }));
}
