import { describe, expect, test } from "vitest";
import type { Value } from "../../../../common/value.ts";
import type { ColumnSpec, ColumnType } from "../types.ts";
import { decodeCell, encodeCell } from "./codec.ts";
import { canonicalValue } from "./values.ts";

const column = (type: ColumnType, more: Partial<ColumnSpec> = {}): ColumnSpec => ({ name: "c", type, ...more });

const ACCEPTED: readonly [ColumnType, Value, Value][] = [
  ["varchar", 5, "5"],
  ["varchar", true, "true"],
  ["varchar", { a: 1 }, '{"a":1}'],
  ["varchar", "", ""],
  ["int", "42", 42],
  ["int", " -7 ", -7],
  ["int", "5.0", 5],
  ["int", -2147483648, -2147483648],
  ["smallint", "32767", 32767],
  ["bigint", "9007199254740991", 9007199254740991],
  ["bigint", "9223372036854775807", "9223372036854775807"],
  ["varint", "-123456789012345678901234567890", "-123456789012345678901234567890"],
  ["double", "1e3", 1000],
  ["float", ".5", 0.5],
  ["double", -0, 0],
  ["float", "-0.0", 0],
  ["boolean", "TRUE", true],
  ["boolean", 0, false],
  ["timestamp", "2026-01-02 03:04:05", Date.UTC(2026, 0, 2, 3, 4, 5)],
  ["timestamp", "2026-01-02 03:04:05.678", Date.UTC(2026, 0, 2, 3, 4, 5, 678)],
  ["timestamp", "2026-01-02T03:04:05+02:00", Date.UTC(2026, 0, 2, 1, 4, 5)],
  ["timestamp", "2026-01-02", Date.UTC(2026, 0, 2)],
  ["timestamp", "1767323045678", 1767323045678],
  ["date", "2026-1-2", "2026-01-02"],
  ["date", Date.UTC(1969, 11, 31, 23), "1969-12-31"],
  ["uuid", "550E8400-E29B-41D4-A716-446655440000", "550e8400-e29b-41d4-a716-446655440000"],
  ["inet", "FE80::1", "fe80::1"],
  ["blob", "AQID", "AQID"],
  ["list", '[1,"a"]', [1, "a"]],
  ["list", [1, null, 2, null], [1, null, 2, null]],
  ["set", ["b", "a", "b"], ["b", "a"]],
  ["set", ["b", null, "b"], ["b"]],
  ["set", "one", ["one"]],
  ["map", '{"k":{"n":1},"gone":null}', { k: { n: 1 } }],
  ["bucket", [[1, 2]], [[1, 2]]],
];

const REFUSED: readonly [ColumnType, Value][] = [
  ["int", "4x"],
  ["int", 1.5],
  ["int", 2147483648],
  ["smallint", 40000],
  ["bigint", "9223372036854775808"],
  ["int", [1]],
  ["double", "NaN"],
  ["double", "0x10"],
  ["boolean", "yes"],
  ["timestamp", "2026-02-30"],
  ["timestamp", "2026-01-01 25:00"],
  ["timestamp", "soon"],
  ["date", "2026"],
  ["uuid", "x"],
  ["inet", "1.2.3"],
  ["blob", "not base64!"],
  ["map", "[1]"],
  ["map", "{"],
  ["list", { a: 1 }],
  ["varchar", "half \ud800"],
  ["text", "\udc00\ud800"],
  ["list", [["in a list", { n: "\ud800" }]]],
  ["map", { "\ud800": 1 }],
  ["bucket", [[1, "\ud800"]]],
];

describe("values", () => {
  test.each(ACCEPTED)("%s takes %j as %j and gives it back from its cell", (type, given, expected) => {
    const value = canonicalValue(column(type), given);
    expect(value).toEqual(expected);
    expect(decoded(encodeCell(type, value ?? null, "c"))).toEqual(expected);
    expect(canonicalValue(column(type), value ?? null)).toEqual(expected);
  });

  test.each(REFUSED)("%s refuses %j by the column's name", (type, given) => {
    expect(() => canonicalValue(column(type), given)).toThrow(/^\[Format\] column c: .* is no /);
  });

  test("null clears, and empty text does where text is not the type", () => {
    expect(canonicalValue(column("varchar"), null)).toBeUndefined();
    for (const type of ["int", "timestamp", "set", "map", "enum", "boolean"] as const)
      expect(canonicalValue(column(type), "")).toBeUndefined();
  });

  test("an enum knows its stored values, numbers where all are", () => {
    const state = column("enum", { labels: { "1": ["up"], "0": ["down"] } });
    expect(canonicalValue(state, "1")).toBe(1);
    expect(canonicalValue(state, 0)).toBe(0);
    expect(() => canonicalValue(state, "2")).toThrow("[Format] column c");
    expect(canonicalValue(column("enum", { labels: { up: [], "1": [] } }), 1)).toBe("1");
  });

  test("elements have their declared types", () => {
    expect(canonicalValue(column("set", { elements: ["int"] }), '["5",5,"6"]')).toEqual([5, 6]);
    expect(() => canonicalValue(column("list", { elements: ["int"] }), ["x"])).toThrow("list<int>");
    const [long, text] = ["9007199254740993", "[9007199254740993]"];
    expect(canonicalValue(column("list", { elements: ["bigint"] }), text)).toEqual([long]);
    expect(canonicalValue(column("map", { elements: ["varchar", "bigint"] }), `{"n":${long}}`)).toEqual({ n: long });
    expect(canonicalValue(column("list", { elements: ["double"] }), "[12345678901234567000]")).toEqual([
      12345678901234567000,
    ]);
    expect(canonicalValue(column("map", { elements: ["varchar", "timestamp"] }), { a: "2026-01-02" })).toEqual({
      a: Date.UTC(2026, 0, 2),
    });
  });

  test("a cell over its limit is refused by the column's name", () => {
    expect(() => encodeCell("text", "x".repeat(1_100_000), "body")).toThrow("column body");
  });

  test("a cell of a format of a later version is refused", () => {
    expect(() => decoded(Uint8Array.of(200, 1))).toThrow("does not know");
  });
});

/** From the middle of other bytes, as it lies in the store. */
function decoded(cell: Uint8Array): Value {
  const around = Buffer.concat([Buffer.of(255), cell, Buffer.alloc(32, 255)]);
  return decodeCell(around, 1, 1 + cell.length);
}
