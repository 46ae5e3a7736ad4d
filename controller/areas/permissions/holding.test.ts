import { expect, test } from "vitest";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { holds, requireHolding, requireNoPartToken } from "./holding.ts";
import { ROLES } from "./principal.ts";
import type { DataRule } from "./types.ts";

const rights = (data: readonly DataRule[], grants: readonly string[] = [], paths?: readonly string[]) => ({
  grants,
  data,
  ...(paths && { paths }),
});
const ALL: DataRule = { class: "/", access: "write" };

test.each<readonly [string, Parameters<typeof holds>[0], Parameters<typeof holds>[1], boolean]>([
  ["an administrator has all", ROLES.administrator, rights([ALL], ["a:*", "*:run"], ["/x"]), true],
  ["a part of a tree is had by the tree", rights([ALL]), rights([{ class: "/a", access: "write" }]), true],
  ["a tree is more than a part of it", rights([{ class: "/a", access: "write" }]), rights([ALL]), false],
  ["writing is more than reading", rights([{ class: "/", access: "read" }]), rights([ALL]), false],
  ["a tree with a closed part is less", rights([ALL, { class: "/a", access: "none" }]), rights([ALL]), false],
  [
    "two groups that open a tree together are less than one, which may define classes",
    rights([
      { ...ALL, group: "1" },
      { class: "/a", access: "none", group: "1" },
      { ...ALL, class: "/a", group: "2" },
    ]),
    rights([ALL]),
    false,
  ],
  ["all rows have some of them", rights([ALL]), rights([{ ...ALL, where: "a = 1" }]), true],
  ["rows are less than all", rights([{ ...ALL, where: "a = 1" }]), rights([ALL]), false],
  [
    "reading rows is less than writing them",
    rights([{ ...ALL, access: "read", where: "a = 1" }]),
    rights([{ ...ALL, where: "a = 1" }]),
    false,
  ],
  [
    "writing rows is reading them",
    rights([{ ...ALL, where: "a = 1" }]),
    rights([{ ...ALL, access: "read", where: "a = 1" }]),
    true,
  ],
  [
    "what is closed is not had",
    rights([{ class: "/", access: "none" }]),
    rights([{ class: "/", access: "read" }]),
    false,
  ],
  ["what is closed need not be had", rights([]), rights([{ class: "/", access: "none" }]), true],
  ["other rows are others", rights([{ ...ALL, where: "a = 1" }]), rights([{ ...ALL, where: "a = 2" }]), false],
  ["the same rows are had", rights([{ ...ALL, where: "a = 1" }]), rights([{ ...ALL, where: "a = 1" }]), true],
  ["a hidden column is missing", rights([{ ...ALL, hidden: ["a"] }]), rights([{ ...ALL, hidden: ["b"] }]), false],
  ["more hidden columns are less", rights([{ ...ALL, hidden: ["a"] }]), rights([{ ...ALL, hidden: ["a", "b"] }]), true],
  ["shown columns are not all", rights([{ ...ALL, shown: ["a"] }]), rights([ALL]), false],
  [
    "shown columns are not all of what is read",
    rights([{ ...ALL, access: "read", shown: ["a"] }]),
    rights([{ ...ALL, access: "read" }]),
    false,
  ],
  [
    "other shown columns are others",
    rights([{ ...ALL, shown: ["a"] }]),
    rights([{ ...ALL, shown: ["a", "b"] }]),
    false,
  ],
  ["some shown columns are less", rights([{ ...ALL, shown: ["a", "b"] }]), rights([{ ...ALL, shown: ["a"] }]), true],
  ["a verb of all areas has that of one", rights([], ["*:read"]), rights([], ["hosts:read"]), true],
  ["all of an area has each of its verbs", rights([], ["hosts:*"]), rights([], ["hosts:read"]), true],
  ["one area's verb is not all of it", rights([], ["hosts:read"]), rights([], ["hosts:*"]), false],
  ["three verbs are all of an area", rights([], ["*:read", "*:run", "a:write"]), rights([], ["a:*"]), true],
  ["a path has those below", rights([], [], ["/a"]), rights([], [], ["/a/b"]), true],
  ["a path is not its neighbour", rights([], [], ["/a"]), rights([], [], ["/ab"]), false],
  ["some paths are not all", rights([], [], ["/"]), rights([]), false],
])("%s", (_case, holder, wanted, expected) => {
  expect(holds(holder, wanted)).toBe(expected);
});

test("who gives more than he has is refused, and told what opens more", () => {
  const viewer = testPrincipal("viewer");
  expect(() => requireHolding(viewer, ROLES.viewer)).not.toThrow();
  expect(() => requireHolding(viewer, ROLES.administrator)).toThrow(
    "viewer may not give or change rights beyond the own ones.",
  );
  expect(() => requireHolding(viewer, ROLES.administrator, "the group all")).toThrow(
    "rights beyond the own ones: the group all opens more.",
  );
});

test("a token with a part of the rights of its user changes no rights", () => {
  expect(() => requireNoPartToken({ ...testPrincipal(), byToken: "part" })).toThrow("a part of the rights");
  expect(() => requireNoPartToken({ ...testPrincipal(), byToken: "whole" })).not.toThrow();
  expect(() => requireNoPartToken(testPrincipal())).not.toThrow();
});
