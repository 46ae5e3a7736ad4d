import type { Column, ColumnType } from "../objects/index.ts";

type IndexOption = Readonly<Record<string, string>>;

const TEXT: IndexOption = { type: "string" };

/** Descriptions of the index of each column type, in the form that clients expect. */
const INDEX_OPTIONS = {
  varchar: TEXT,
  text: { type: "text" },
  int: { type: "integer" },
  bigint: { type: "long" },
  smallint: { type: "integer" },
  long: { type: "long" },
  varint: { type: "bigint" },
  float: { type: "float" },
  double: { type: "double" },
  boolean: { type: "boolean" },
  timestamp: { type: "date", pattern: "timestamp" },
  date: { type: "date", pattern: "yyyy-MM-dd" },
  blob: { type: "bytes" },
  uuid: { type: "uuid" },
  inet: { type: "inet" },
  list: TEXT,
  map: TEXT,
  set: TEXT,
  enum: TEXT,
  bucket: { type: "bytes" },
  bitlog: { type: "bytes" },
} satisfies Record<ColumnType, IndexOption>;

const BY_NAME: ReadonlyMap<string, IndexOption> = new Map(Object.entries(INDEX_OPTIONS));

export const COLUMN_TYPES = [...BY_NAME.keys()];

export function indexOption(type: string): IndexOption {
  return BY_NAME.get(type) ?? TEXT;
}

/** For an enum, clients expect the type of the numbers that represent its labels. */
export function baseType(type: string): string {
  return type === "enum" ? "smallint" : type;
}

export function typeParameters(column: Pick<Column, "elements" | "labels" | "options">): unknown {
  return column.elements ?? column.labels ?? column.options ?? [];
}
