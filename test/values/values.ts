/** The class to which every way in writes, and from which every way out reads. */
export const CLASS = "/matrix/exact";

/** Base types of the columns. Each one also exists as the element type of a list and as the value type of a map. */
export const TYPES = ["bigint", "double", "timestamp", "date", "varchar"] as const;
export type BaseType = (typeof TYPES)[number];

/** A value that some way might change, in the notations of the ways. */
export interface TestedValue {
  readonly name: string;
  readonly type: BaseType;
  /** In MQL. */
  readonly mql: string;
  /** In JSON. */
  readonly json: string;
  /** In a line of a log or a cell of a table; `undefined`: it has no text. */
  readonly text: string | undefined;
  /** In a script, whose numbers are doubles: a whole number beyond 2^53 is a text. */
  readonly script: string;
  /** The answer of every way out, in JSON of the HTTP interface; `undefined`: the type cannot hold the value. */
  readonly held: string | undefined;
  /** A neighbouring value in MQL, which must not be confused with it. Absent: there is none. */
  readonly near?: string;
  /** The page's name for the stored value, if it differs from the written value. */
  readonly mark?: string;
}

function whole(name: string, digits: string, more: Partial<TestedValue>): TestedValue {
  const held = `"${digits}"`;
  return { name, type: "bigint", mql: digits, json: digits, text: digits, script: held, held, ...more };
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

function time(
  name: string,
  type: "timestamp" | "date",
  written: string,
  more: Pick<TestedValue, "held" | "near">,
): TestedValue {
  const json = `"${written}"`;
  return { name, type, mql: `'${written}'`, json, text: written, script: json, ...more };
}

export const LONE_SURROGATE = "lone surrogate";

export const VALUES: readonly TestedValue[] = [
  whole("2^53+1", "9007199254740993", { near: "9007199254740992" }),
  whole("-2^63", "-9223372036854775808", { near: "-9223372036854775807" }),
  whole("2^63-1", "9223372036854775807", { near: "9223372036854775806" }),
  whole("2^63", "9223372036854775808", { held: undefined }),
  whole("2^53+1 as `.0`", "9007199254740993.0", { held: '"9007199254740993"', near: "9007199254740994" }),
  whole("2^53+1.5", "9007199254740993.5", { held: undefined }),
  double("-0", "-0.0", { held: "0", mark: "as `0`", near: "-5e-324" }),
  double("1e308", "1e308", { held: "1e+308", near: "1.0000000000000002e308" }),
  time("year 1", "timestamp", "0001-01-01T00:00:00.000Z", { held: "-62135596800000", near: "-62135596799999" }),
  time("year 9999", "timestamp", "9999-12-31T23:59:59.999Z", { held: "253402300799999", near: "253402300799998" }),
  time("day of year 1", "date", "0001-01-01", { held: '"0001-01-01"', near: "'0001-01-02'" }),
  time("day of year 9999", "date", "9999-12-31", { held: '"9999-12-31"', near: "'9999-12-30'" }),
  text(LONE_SURROGATE, '"a\\ud800b"', { text: undefined, held: undefined }),
  text("NUL", '"a\\u0000b"', { near: '"ab"' }),
  text("combining", '"e\\u0301\\u0323"', { near: '"\\u1eb9\\u0301"' }),
  text("empty", '""', { near: "' '" }),
  { name: "null", type: "varchar", mql: "null", json: "null", text: undefined, script: "null", held: "null" },
];

/** A column with one value, an element of a list, or the value of a map's member. */
export type Shape = "plain" | "list" | "map";

export function columnOf(type: BaseType, shape: Shape = "plain"): string {
  return shape === "plain" ? `c_${type}` : `${shape}_${type}`;
}

/** The statement that creates `path`, with a key column `k`. */
export function classText(path: string): string {
  const columns = TYPES.flatMap((type) => [
    `${columnOf(type)} ${type}`,
    `${columnOf(type, "list")} list<${type}>`,
    `${columnOf(type, "map")} map<varchar,${type}>`,
  ]);
  return `create class ${path} (k varchar, ${columns.join(", ")}, keys(k), index(${TYPES.map((type) => columnOf(type)).join(", ")})) with autosearch=true`;
}
