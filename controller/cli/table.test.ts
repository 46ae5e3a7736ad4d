import { expect, it } from "vitest";
import { table } from "./table.ts";

it("shows rows under their columns, in the order these first appear", () => {
  expect(
    table([
      { id: "a:1", n: 1 },
      { id: "a:22", note: { k: "v" } },
    ]),
  ).toBe(["id    n  note", "----  -  ---------", "a:1   1", 'a:22     {"k":"v"}'].join("\n"));
});

it("says so when there are none", () => {
  expect(table([])).toBe("no rows");
});

it("cuts what is too wide, and keeps a row on its line", () => {
  expect(
    table([{ text: `${"x".repeat(100)}` }, { text: "a\nb" }])
      .split("\n")
      .map((line) => line.length),
  ).toEqual([4, 60, 60, 3]);
});
