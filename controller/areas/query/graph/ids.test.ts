import { expect, test } from "vitest";
import { idMatcher, labelOf } from "./ids.ts";

test.each([
  ["box:1", ["box:1"], ["box:12", "box:"]],
  ["box:*", ["box:1", "box:", "box:a:b"], ["xbox:1", "bo:1"]],
  ["box:b[1-5]", ["box:b1", "box:b5"], ["box:b0", "box:b6", "box:b", "box:b12"]],
  ["box:[abx-z]*1", ["box:a1", "box:y--1", "box:x11"], ["box:c1", "box:a2", "box:1"]],
  ["*:web[*]*", ["*:web[*]*", "a:web**", "x:web*1"], ["box:web1", "box:web[*]*"]],
  ["主机:[一-龥]*", ["主机:二", "主机:三x"], ["主机:a"]],
  ["box:eth[0]", ["box:eth0", "box:eth[0]"], ["box:eth1"]],
  ["a**b*", ["ab", "aXbY", "abb"], ["b", "aX"]],
])("%s", (pattern, matching, others) => {
  const matches = idMatcher(pattern);
  for (const id of matching) expect(matches(id), id).toBe(true);
  for (const id of others) expect(matches(id), id).toBe(false);
});

test("many stars over a long id end soon", () => {
  expect(idMatcher(`${"*a".repeat(500)}b`)("a".repeat(10_000))).toBe(false);
});

test("the label is known when it is no pattern itself", () => {
  expect([labelOf("box:*"), labelOf("b*:1"), labelOf("*"), labelOf(":x"), labelOf("box:a:b")]).toEqual([
    "box",
    undefined,
    undefined,
    undefined,
    "box",
  ]);
});
