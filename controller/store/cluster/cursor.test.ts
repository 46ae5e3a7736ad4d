import { expect, test } from "vitest";
import { readCursor, requestText, writeCursor } from "./cursor.ts";

const request = requestText("odp_matrix", "find", { terms: ["a"] });

test("a cursor gives back its place to the same request", () => {
  expect(readCursor(request, { limit: 5, cursor: writeCursor(request, "00ff") })).toBe("00ff");
  expect(readCursor(request, { limit: 5 })).toBeUndefined();
});

test.each([
  ["another request's", writeCursor(requestText("odp_matrix", "find", { terms: ["b"] }), "00ff")],
  ["another tenant's", writeCursor(requestText("odp_second", "find", { terms: ["a"] }), "00ff")],
  ["no", "rubbish"],
  ["an empty", ""],
])("%s cursor is refused", (_, cursor) => {
  expect(() => readCursor(request, { limit: 5, cursor })).toThrow(expect.objectContaining({ code: "invalid" }));
});

test.each([0, -1, 1.5, 1_001])("a page of %s items is refused", (limit) => {
  expect(() => readCursor(request, { limit })).toThrow(expect.objectContaining({ code: "invalid" }));
});
