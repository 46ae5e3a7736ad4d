/** The class of which every way in writes an object, and every way out reads it. */
export const CLASS = "/matrix/exact";

/** Base types of the columns; each also as the elements of a list and the values of a map. */
export const TYPES = ["bigint", "double", "timestamp", "date", "varchar"] as const;
export type BaseType = (typeof TYPES)[number];

/** A value that some way might alter, in the forms in which ways carry it. */
export interface TestedValue {
  readonly name: string;
  readonly type: BaseType;
  /** As MQL writes it. */
  readonly mql: string;
  /** As JSON writes it. */
  readonly json: string;
  /** As a line of a log or a cell of a table holds it; `undefined`: there is no such text. */
  readonly text: string | undefined;
  /** As a script writes it: its numbers are doubles, so a whole number beyond 2^53 is a text. */
  readonly script: string;
  /** As every way out answers it, JSON of the HTTP interface; `undefined`: the type does not hold it. */
  readonly held: string | undefined;
  /** How the page calls what is held, where it is not written like the value. */
  readonly mark?: string;
}

function whole(name: string, digits: string, held: string | undefined = `"${digits}"`): TestedValue {
  return { name, type: "bigint", mql: digits, json: digits, text: digits, script: `"${digits}"`, held };
}

function double(name: string, digits: string, more: Pick<TestedValue, "held"> & Partial<TestedValue>): TestedValue {
  return { name, type: "double", mql: digits, json: digits, text: digits, script: digits, ...more };
}

function text(name: string, json: string, more: Partial<TestedValue> = {}): TestedValue {
  const content = JSON.parse(json) as string;
  return {
    name,
    type: "varchar",
    mql: json,
    json,
    text: content,
    script: json,
    held: JSON.stringify(content),
    ...more,
  };
}

function time(name: string, type: "timestamp" | "date", written: string, held: string): TestedValue {
  const json = `"${written}"`;
  return { name, type, mql: `'${written}'`, json, text: written, script: json, held };
}

export const LONE_SURROGATE = "lone surrogate";

export const VALUES: readonly TestedValue[] = [
  whole("2^53+1", "9007199254740993"),
  whole("-2^63", "-9223372036854775808"),
  whole("2^63-1", "9223372036854775807"),
  whole("2^63", "9223372036854775808", undefined),
  double("-0", "-0.0", { held: "0", mark: "as `0`" }),
  double("1e308", "1e308", { held: "1e+308" }),
  time("year 1", "timestamp", "0001-01-01T00:00:00.000Z", "-62135596800000"),
  time("year 9999", "timestamp", "9999-12-31T23:59:59.999Z", "253402300799999"),
  time("day of year 1", "date", "0001-01-01", '"0001-01-01"'),
  time("day of year 9999", "date", "9999-12-31", '"9999-12-31"'),
  text(LONE_SURROGATE, '"a\\ud800b"', { text: undefined, held: undefined }),
  text("NUL", '"a\\u0000b"'),
  text("combining", '"e\\u0301\\u0323"'),
  text("empty", '""'),
  { name: "null", type: "varchar", mql: "null", json: "null", text: undefined, script: "null", held: "null" },
];

/** Whether a column is one value, the element of a list, or the value of a map's member. */
export type Shape = "plain" | "list" | "map";

export function columnOf(type: BaseType, shape: Shape = "plain"): string {
  return shape === "plain" ? `c_${type}` : `${shape}_${type}`;
}

/** The statement that makes `path`, with a key column `k`. */
export function classText(path: string): string {
  const columns = TYPES.flatMap((type) => [
    `${columnOf(type)} ${type}`,
    `${columnOf(type, "list")} list<${type}>`,
    `${columnOf(type, "map")} map<varchar,${type}>`,
  ]);
  return `create class ${path} (k varchar, ${columns.join(", ")}, keys(k), index(${TYPES.map((type) => columnOf(type)).join(", ")})) with autosearch=true`;
}
