import { expect, test } from "vitest";
import type { DataRule } from "../permissions/index.ts";
import { rulesOf } from "./compile.ts";
import type { GroupRights } from "./types.ts";

const NOTHING: GroupRights = { readonly: [], writable: [], readexps: [], fields: {} };
const compiled = (rights: Partial<GroupRights>): readonly DataRule[] =>
  rulesOf("g", { ...NOTHING, ...rights }).map(({ group, ...rule }) => (expect(group).toBe("g"), rule));

test.each<readonly [what: string, rights: Partial<GroupRights>, rules: readonly DataRule[]]>([
  ["nothing opens nothing", {}, []],
  ["a tree is read", { readonly: ["/m"] }, [{ class: "/m", access: "read" }]],
  [
    "a tree that is read and written is written",
    { readonly: ["/m"], writable: ["/m"] },
    [{ class: "/m", access: "write" }],
  ],
  [
    "a part of a tree that is written is written though it is also read",
    { readonly: ["/m/a"], writable: ["/m"] },
    [
      { class: "/m/a", access: "write" },
      { class: "/m", access: "write" },
    ],
  ],
  ["slashes at the end of a path are left out", { readonly: [" /m/a// "] }, [{ class: "/m/a", access: "read" }]],
  ["all classes are a tree", { readonly: ["/"] }, [{ class: "/", access: "read" }]],
  [
    "rows of a tree alone are read, and nothing else of it",
    { readexps: ["/m : a = 1"] },
    [{ class: "/m", access: "read", where: "a = 1", rowsOnly: true }],
  ],
  [
    "rows narrow a tree that is open, and several are each enough",
    { writable: ["/m"], readexps: ["/m: a = 1", "/m: b = 2"] },
    [{ class: "/m", access: "write", where: "(a = 1) OR (b = 2)" }],
  ],
  [
    "a condition without a path narrows what is open, by the fields it asks for once each",
    { readonly: ["/m"], readexps: ["a = 1 and (a = 2 or config.os = 'x')"] },
    [
      {
        ...{ class: "/m", access: "read" },
        anywhere: [{ where: "a = 1 and (a = 2 or config.os = 'x')", fields: ["a", "config"] }],
      },
      { class: "/", access: "none" },
    ],
  ],
  [
    "a condition without a path alone opens its rows of all classes",
    { readexps: ["a = 1"] },
    [{ class: "/", access: "read", rowsOnly: true, anywhere: [{ where: "a = 1", fields: ["a"] }] }],
  ],
  [
    "columns are shown or hidden, by the longest path",
    { readonly: ["/m", "/m/a"], fields: { "/m": "a, b ,-c", "/m/a": "*, - d" } },
    [
      { class: "/m", access: "read", hidden: ["c"], shown: ["a", "b"] },
      { class: "/m/a", access: "read", hidden: ["d"] },
    ],
  ],
  [
    "columns alone open no class",
    { readonly: ["/m"], fields: { "/n": "a" } },
    [
      { class: "/m", access: "read" },
      { class: "/n", access: "none" },
    ],
  ],
  [
    "hidden columns leave all others",
    { readonly: ["/m"], fields: { "/m": "-a" } },
    [{ class: "/m", access: "read", hidden: ["a"] }],
  ],
])("%s", (_what, rights, rules) => {
  expect(compiled(rights)).toEqual(rules);
});

test.each<readonly [rights: Partial<GroupRights>, error: string]>([
  [{ readonly: ["m"] }, 'readonly: "m" is no class path.'],
  [{ writable: ["/m//a"] }, 'writable: "/m//a" is no class path.'],
  [{ readonly: ["/m\u0000"] }, "is no class path."],
  [{ readexps: ["/m :  "] }, "has no condition."],
  [{ readexps: [" "] }, "has no condition."],
  [{ readexps: ["count(*) > 1"] }, "asks more than a row condition may"],
  [{ readexps: ["a['2026-01-01':] = 1"] }, "asks more than a row condition may"],
  [{ readexps: ["a = ?"] }, "asks more than a row condition may"],
  [{ fields: { "/m": " , " } }, "fields: /m names no columns"],
])("%j is refused", (rights, error) => {
  expect(() => compiled(rights)).toThrow(error);
});
