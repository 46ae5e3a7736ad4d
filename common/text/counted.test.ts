import { expect, test } from "vitest";
import { counted } from "./counted.ts";

test("a number stands before the noun in its form", () => {
  expect([0, 1, 2].map((count) => counted(count, "record"))).toEqual(["0 records", "1 record", "2 records"]);
  expect([1, 3].map((count) => counted(count, "entry is", "entries are"))).toEqual(["1 entry is", "3 entries are"]);
});
