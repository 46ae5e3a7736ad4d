import { expect, test } from "vitest";
import { MANUAL_HITS_MAX } from "../limits.ts";
import { searchManual, wordsOf, type ManualIndex } from "./search.ts";

const section = (url: string) => ({ url, page: "Page", heading: url, excerpt: "" });

const INDEX: ManualIndex = {
  sections: ["/a", "/b", "/c"].map(section),
  words: [
    ["host", [0, 3, 1, 8]],
    ["hosts", [2, 20]],
    ["policy", [1, 1, 2, 1]],
    ["time", [0, 1]],
    ["time_zone", [2, 1]],
    ["zone", [2, 1]],
  ],
};
const found = (query: string) => searchManual(INDEX, query).map(({ url }) => url);

test("a section is found by all words of a query, in any case, as whole words or beginnings", () => {
  expect(found("Policy host")).toEqual(["/b", "/c"]);
  expect(found("pol time")).toEqual(["/c"]);
  expect(found("policy time nothing")).toEqual([]);
  expect(found("olicy")).toEqual([]);
});

test("a whole word counts more than the beginning of another, and a heavier word more than a lighter one", () => {
  expect(found("host")).toEqual(["/b", "/c", "/a"]);
  const both: ManualIndex = {
    ...INDEX,
    words: [
      ["host", [0, 8]],
      ["hosts", [0, 1, 1, 2]],
    ],
  };
  expect(searchManual(both, "host").map(({ url }) => url)).toEqual(["/a", "/b"]);
});

test("words that every section has are ignored, and a query without others finds nothing", () => {
  expect(found("what is the policy of a host?")).toEqual(["/b", "/c"]);
  for (const query of ["", "  ", "the of", "?!", "a"]) expect(found(query)).toEqual([]);
});

test("a name with underscores is found whole and by its parts", () => {
  expect(wordsOf("Set time_zone, please")).toEqual(["set", "time_zone", "time", "zone", "please"]);
  expect(found("time_zone")).toEqual(["/c"]);
  expect(found("zone")).toEqual(["/c"]);
});

test("a long query is read up to its bounds, and answers are bounded", () => {
  expect(found(`host ${"x".repeat(500)}`)).toEqual([]);
  expect(found(`host ${" ".repeat(300)}nothing`)).toEqual(found("host"));
  expect(found("ho hos host po pol poli polic policy nothing")).toEqual(["/c", "/b"]);
  const many = { sections: Array.from({ length: 50 }, (_, at) => section(`/${at}`)) };
  const words = [["host", many.sections.flatMap((_, at) => [at, 1])]] as const;
  expect(searchManual({ ...many, words }, "host")).toHaveLength(MANUAL_HITS_MAX);
});
