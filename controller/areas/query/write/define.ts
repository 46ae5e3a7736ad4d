import { AppError } from "../../../../common/errors.ts";
import { unknownName } from "../../../../common/text/nearest.ts";
import type { AlterClass, ClassOption, ColumnDefinition, CreateClass, MapNode } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import { setMember } from "../../../../common/members.ts";
import type {
  ClassChange,
  ClassKind,
  ClassOptions,
  ClassSpec,
  ColumnSpec,
  ColumnType,
  KeyMode,
} from "../../objects/index.ts";
import { DURATION_UNITS, durationSeconds } from "../expressions/functions/duration.ts";
import { type Arguments, isList, isMap, literal } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const COLUMN_TYPES: ReadonlySet<string> = new Set<ColumnType>([
  "varchar",
  "text",
  "int",
  "bigint",
  "smallint",
  "long",
  "varint",
  "float",
  "double",
  "boolean",
  "timestamp",
  "date",
  "blob",
  "uuid",
  "inet",
  "list",
  "map",
  "set",
  "enum",
  "bucket",
  "bitlog",
]);
const ELEMENT_COUNTS: Readonly<Partial<Record<ColumnType, number>>> = { list: 1, set: 1, map: 2 };
const TEXT_OPTIONS = ["alias", "nickname", "remedy"] as const;
/** Options of a class that have an effect. */
export const CLASS_OPTIONS: readonly string[] = [
  ...TEXT_OPTIONS,
  "ttl",
  "versionttl",
  "time_zone",
  "key",
  "kind",
  "version",
  "autosearch",
];

/** `CREATE CLASS` in the form that the objects area takes. */
export function classSpec(statement: CreateClass, values: Arguments): ClassSpec {
  const { kind, options } = classOptions(statement.options, values);
  return {
    path: statement.class.path,
    columns: statement.columns.map((column) => about(column.span, () => columnSpec(column, values))),
    ...(statement.keys.length > 0 ? { keys: [...new Set(statement.keys)] } : {}),
    ...(statement.indexes.length > 0 ? { indexes: [...new Set(statement.indexes)] } : {}),
    ...(kind === undefined ? {} : { kind }),
    ...(Object.keys(options).length > 0 ? { options } : {}),
  };
}

export function classChange(statement: AlterClass, values: Arguments): ClassChange {
  const { alteration } = statement;
  switch (alteration.kind) {
    case "addColumn":
      return {
        kind: "add column",
        column: about(alteration.column.span, () => columnSpec(alteration.column, values)),
      };
    case "dropColumn":
      return { kind: "drop column", name: alteration.name };
    case "addKey":
      return { kind: "add key", name: alteration.name };
    case "dropKey":
      return { kind: "drop key", name: alteration.name };
    case "addIndex":
      return { kind: "add index", name: alteration.name };
    case "dropIndex":
      return { kind: "drop index", name: alteration.name };
    case "setOptions":
      return { kind: "set options", options: changedOptions(alteration.options, values) };
  }
}

function columnSpec(column: ColumnDefinition, values: Arguments): ColumnSpec {
  const type = columnType(column.type, column.name);
  const elements = column.elements.map((element) => columnType(element, column.name));
  if (elements.length > 0 && elements.length !== ELEMENT_COUNTS[type]) {
    throw new AppError(
      "invalid",
      `[Valid] ${column.name}: ${type} takes ${ELEMENT_COUNTS[type] ?? "no"} element types.`,
    );
  }
  return {
    name: column.name,
    type,
    ...(elements.length > 0 ? { elements } : {}),
    ...(column.title === undefined ? {} : { title: column.title }),
    ...(column.details ? columnDetails(type, column.name, literal(column.details satisfies MapNode, values)) : {}),
  };
}

function columnType(type: string, column: string): ColumnType {
  if (COLUMN_TYPES.has(type)) return type as ColumnType;
  const text = `[Valid] ${column}: there is no column type ${type}.`;
  throw unknownName(text, { name: type, among: COLUMN_TYPES, code: "invalid" });
}

function columnDetails(type: ColumnType, name: string, details: Value): Pick<ColumnSpec, "labels" | "options"> {
  if (!isMap(details)) throw new RangeError("a map node makes a map");
  if (type !== "enum") return { options: details };
  const labels = Object.entries(details).map(([value, label]) => [value, labelTexts(label)] as const);
  if (labels.length === 0) throw new AppError("invalid", `[Valid] ${name}: an enum needs values.`);
  return { labels: Object.fromEntries(labels) };
}

/** Label and description, or a label alone. */
function labelTexts(label: Value): readonly string[] {
  return (isList(label) ? label : [label]).map((text) => (typeof text === "string" ? text : JSON.stringify(text)));
}

function changedOptions(list: readonly ClassOption[], values: Arguments): Partial<ClassOptions> {
  const { kind, options } = classOptions(list, values);
  if (kind !== undefined) throw new AppError("invalid", "[Valid] The kind of a class is fixed when it is created.");
  return options;
}

interface Options {
  readonly kind: ClassKind | undefined;
  readonly options: Partial<ClassOptions>;
}

/** Unknown options are hints for other stores: they are kept and shown. */
function classOptions(list: readonly ClassOption[], values: Arguments): Options {
  const options: Partial<Mutable<ClassOptions>> = {};
  const hints: Record<string, Value> = {};
  let kind: ClassKind | undefined;
  for (const option of list) {
    const value = literal(option.value, values);
    const text = TEXT_OPTIONS.find((name) => name === option.name);
    if (text) options[text] = value === null ? undefined : String(value);
    else if (option.name === "ttl") options.ttlSeconds = ttlSeconds(option, value);
    else if (option.name === "versionttl") options.versionTtlSeconds = ttlSeconds(option, value);
    else if (option.name === "time_zone") options.timeZone = value === null || value === "" ? undefined : String(value);
    else if (option.name === "key") options.keyMode = oneOf<KeyMode>(option, value, ["manu", "uuid", "md5"]);
    else if (option.name === "kind") kind = oneOf<ClassKind>(option, value, ["entity", "record"]);
    else if (option.name === "version" || option.name === "autosearch") options[option.name] = truth(option, value);
    else setMember(hints, option.name, value);
  }
  if (Object.keys(hints).length > 0) options.hints = hints;
  return { kind, options };
}

/** Seconds, also for a value without a unit. 0 and -1 mean for ever (`undefined`). */
function ttlSeconds(option: ClassOption, value: Value): number | undefined {
  const [amount, unit] =
    option.unit === undefined && typeof value === "string" ? value.trim().split(/\s+/) : [value, option.unit];
  const seconds = durationSeconds(amount, unit);
  if (seconds === undefined || Number(amount) < -1) {
    throw new AppError(
      "invalid",
      `[Valid] ${option.name} = ${String(amount)}${unit ? ` ${unit}` : ""}: a whole number and a unit (${DURATION_UNITS.join(", ")}).`,
    );
  }
  return seconds <= 0 ? undefined : seconds;
}

function truth(option: ClassOption, value: Value): boolean {
  const text = String(value).toLowerCase();
  if (text === "true" || text === "1") return true;
  if (text === "false" || text === "0") return false;
  throw new AppError("invalid", `[Valid] ${option.name} is true or false.`);
}

function oneOf<T extends string>(option: ClassOption, value: Value, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === String(value).toLowerCase());
  if (found !== undefined) return found;
  throw new AppError("invalid", `[Valid] ${option.name} is one of ${allowed.join(", ")}.`);
}
