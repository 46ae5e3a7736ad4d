import type { Field, Operand } from "../../../common/mql/index.ts";
import { COLUMN_TYPES, type ColumnName } from "./world.ts";

/** Types of the values in random queries. */
export type Type = "number" | "text" | "boolean" | "time" | "list" | "map";

const NAMES: Readonly<Record<Exclude<Type, "map">, string>> = {
  number:
    "* / abs floor ceil round mod length size year month day hour minute second weekday count sum avg rate stddev percentile",
  text: "|| lower upper trim substring concat replace regexp_extract member time_text",
  boolean: "regexp_match contains",
  time: "bucket date_trunc",
  list: "split top histogram",
};
const RESULTS = new Map(
  Object.entries(NAMES).flatMap(([type, names]) => names.split(" ").map((name) => [name, type as Type] as const)),
);
const CASTS = new Map<string, Type>([
  ...["text", "varchar", "date"].map((name) => [name, "text"] as const),
  ["boolean", "boolean"],
  ["timestamp", "time"],
]);

/** Type of a column, or of a member that every object has. */
export function columnType({ parts }: Field): Type {
  const name = parts.at(-1) ?? "";
  if (name === "vtime") return "time";
  switch (COLUMN_TYPES[name as ColumnName] as string | undefined) {
    case "int":
    case "bigint":
      return "number";
    case "boolean":
      return "boolean";
    case "timestamp":
      return "time";
    case "set<varchar>":
      return "list";
    case "map<varchar,varchar>":
      return "map";
    default:
      return "text";
  }
}

/** Result type by the name of the operator or function, according to the reference. */
export function typeOf(operand: Operand): Type {
  switch (operand.kind) {
    case "field":
      return columnType(operand);
    case "number":
      return "number";
    case "constant":
    case "truth":
      return "boolean";
    case "case":
      return operand.branches[0] ? typeOf(operand.branches[0].then) : "text";
    case "call":
      return RESULTS.get(operand.name) ?? (operand.argument ? typeOf(operand.argument) : "number");
    case "computed":
      return computedType(operand.name, operand.operands);
    default:
      return "text";
  }
}

function computedType(name: string, [first, second]: readonly Operand[]): Type {
  if (name === "cast") return (second?.kind === "text" && CASTS.get(second.value)) || "number";
  if (name === "coalesce") return first ? typeOf(first) : "text";
  if (name !== "+" && name !== "-") return RESULTS.get(name) ?? "text";
  const isTime = first !== undefined && typeOf(first) === "time";
  return isTime && second !== undefined && typeOf(second) !== "time" ? "time" : "number";
}
