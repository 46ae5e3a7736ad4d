import { describe, expect, test } from "vitest";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { classAccess } from "./access.ts";
import { allows } from "./grants.ts";
import {
  owing,
  pathAllowed,
  pathVisible,
  readingOnly,
  requireAllOwnGrants,
  requireDefining,
  requireMayChange,
  requireNoDuty,
  requireNoDutyOfProgram,
  requireOneOf,
  requirePath,
  requirePermission,
} from "./principal.ts";
import type { Permission } from "./names.ts";
import type { DataRule, Principal } from "./types.ts";

function granted(...grants: readonly string[]): Principal {
  return { ...testPrincipal(), user: "bob", grants };
}

function ruled(...data: readonly DataRule[]): Principal {
  return { ...testPrincipal(), user: "bob", data };
}

describe("a permission is granted", () => {
  test("by its own name", () => {
    expect(allows(granted("jobs:read"), "jobs:read")).toBe(true);
  });

  test("by its verb in any area", () => {
    expect(allows(granted("*:read"), "jobs:read")).toBe(true);
  });

  test("by its area with any verb", () => {
    for (const permission of ["jobs:read", "jobs:write", "jobs:run"] as const)
      expect(allows(granted("jobs:*"), permission)).toBe(true);
  });

  test("by nothing else", () => {
    for (const grant of ["jobs:write", "*:write", "job:*", "jobs", "*", "", ":read", "objects:*"]) {
      expect(allows(granted(grant), "jobs:read"), grant).toBe(false);
    }
    expect(() => requirePermission(granted(), "jobs:read")).toThrow("bob lacks the permission jobs:read.");
  });
});

test("of several permissions one is enough, and the first is named where none is granted", () => {
  expect(() => requireOneOf(granted("jobs:run"), ["hosts:run", "jobs:run"])).not.toThrow();
  expect(() => requireOneOf(granted("jobs:read"), ["hosts:run", "jobs:run"])).toThrow(
    "lacks the permission hosts:run.",
  );
});

test("who has a duty is told so in place of each permission, and may nothing else", () => {
  const bob = owing(granted("jobs:*"), "second factor");
  expect(allows(bob, "jobs:read")).toBe(false);
  expect(() => requirePermission(bob, "jobs:read")).toThrow("bob must set up a second factor before anything else");
  expect(() => requireNoDuty(owing(granted("jobs:*"), "password"))).toThrow("change the first password");
  expect(() => requireNoDuty(granted())).not.toThrow();
});

test("a program of a user who has a duty is told by a code of its own that a person has to act", () => {
  expect(() => requireNoDutyOfProgram(granted("jobs:*"))).not.toThrow();
  const duties = [
    ["password", "change the first password"],
    ["second factor", "set up a second factor"],
  ] as const;
  for (const [owes, text] of duties)
    expect(() => requireNoDutyOfProgram(owing(granted("jobs:*"), owes))).toThrow(
      expect.objectContaining({
        code: "action_required",
        details: { owes },
        message: expect.stringContaining(text) as string,
      }),
    );
});

test("what runs later with all rights of a user is not begun by a token that has a part of them", () => {
  const bob = granted("jobs:*");
  expect(() => requireAllOwnGrants({ ...bob, byToken: "part" })).toThrow("of which the token has a part");
  for (const principal of [bob, { ...bob, byToken: "whole" } as const])
    expect(() => requireAllOwnGrants(principal)).not.toThrow();
});

test("a path is open by what is above it, and its folders show the way to it, and no other", () => {
  const closed = ["/a/b", "/a", "/", "/a/bc"].map((open) => pathAllowed({ paths: [open] }, "/a/b/c"));
  expect(closed).toEqual([true, true, true, false]);
  const bob = { ...granted(), paths: ["/a/b"] };
  const shown = ["/a/b/c", "/a/b", "/a", "/", "/a/x", "/b"].filter((path) => pathVisible(bob, path));
  expect(shown).toEqual(["/a/b/c", "/a/b", "/a", "/"]);
  expect(pathVisible(granted(), "/b")).toBe(true);
  expect(() => requirePath(bob, "/a/b/c")).not.toThrow();
  expect(() => requirePath(bob, "/a")).toThrow("The path /a is not open to bob.");
});

describe("a principal that reads only", () => {
  test.each<[grant: string, kept: readonly Permission[]]>([
    ["jobs:read", ["jobs:read"]],
    ["jobs:*", ["jobs:read"]],
    ["*:read", ["jobs:read", "hosts:read"]],
    ["jobs:write", []],
    ["jobs:run", []],
    ["*:write", []],
    ["*:run", []],
  ])("keeps of the grant %s what it may read: %j", (grant, kept) => {
    const principal = readingOnly(granted(grant), "No proof.");
    const all = ["jobs:read", "jobs:write", "jobs:run", "hosts:read", "hosts:write", "hosts:run"] as const;
    expect(all.filter((permission) => allows(principal, permission))).toEqual(kept);
  });

  test("writes no class, sees the rows and columns it saw before, and reads nothing that was closed to it", () => {
    const principal = readingOnly(
      ruled(
        { class: "/m/own", access: "write", where: "a = 1", hidden: ["b"] },
        { class: "/m/seen", access: "read" },
        { class: "/m/closed", access: "none" },
      ),
      "No proof.",
    );
    const own = { readable: true, writable: false, where: "a = 1", hidden: new Set(["b"]) };
    expect(classAccess(principal, { path: "/m/own", columns: [{ name: "b" }] })).toMatchObject(own);
    expect(classAccess(principal, "/m/seen")).toMatchObject({ readable: true, writable: false });
    expect(classAccess(principal, "/m/closed")).toMatchObject({ readable: false, writable: false });
  });

  test("is told why it may not change anything, and which permission it lacks to read", () => {
    const principal = readingOnly(granted("jobs:*"), "No proof.");
    expect(() => requirePermission(principal, "jobs:write")).toThrow("No proof.");
    expect(() => requirePermission(principal, "jobs:run")).toThrow("No proof.");
    expect(() => requirePermission(principal, "hosts:read")).toThrow("bob lacks the permission hosts:read.");
    expect(() => requireMayChange(principal)).toThrow("No proof.");
    expect(() => requireMayChange(granted())).not.toThrow();
  });
});

describe("of the data rules", () => {
  const write: DataRule = { class: "/", access: "write" };

  test("the longest path decides, whole components count, and without one there is no access", () => {
    const principal = ruled(
      write,
      { class: "/m/ent", access: "read", where: "a = 1", hidden: ["b"] },
      { class: "/m/ent/open", access: "write" },
    );
    expect(classAccess(principal, { path: "/m/ent/box", columns: [{ name: "b" }] })).toMatchObject({
      readable: true,
      writable: false,
      where: "a = 1",
      hidden: new Set(["b"]),
    });
    expect(classAccess(principal, "/m/ent/open")).toMatchObject({ writable: true, where: undefined });
    expect(classAccess(principal, "/m/entry")).toMatchObject({ writable: true, where: undefined });
    const shorterLast = ruled({ class: "/m/ent", access: "read" }, write);
    expect(classAccess(shorterLast, "/m/ent")).toMatchObject({ writable: false });
    expect(classAccess(ruled({ class: "/m/ent", access: "write" }), "/m")).toMatchObject({
      readable: false,
      writable: false,
    });
  });

  test("one that restricts a class, or one below it, keeps its holder from defining it", () => {
    const restricted: readonly Partial<DataRule>[] = [
      { access: "none" },
      { access: "read" },
      { where: "a = 1" },
      { hidden: ["b"] },
    ];
    for (const path of ["/m/ent", "/m/ent/box"]) {
      for (const restriction of restricted) {
        const rule: DataRule = { class: path, access: "write", ...restriction };
        expect(() => requireDefining(ruled(write, rule), "/m/ent"), JSON.stringify(rule)).toThrow(
          "may not define /m/ent",
        );
      }
    }
    expect(() => requireDefining(ruled(), "/m/ent"), "without any rule").toThrow("may not define /m/ent");
    requireDefining(
      ruled(write, { class: "/m/entry", access: "none" }, { class: "/m/ent/box", access: "write", hidden: [] }),
      "/m/ent",
    );
    const grants = ["objects:write", "schema:write"];
    expect(() => requireDefining({ ...ruled(write), grants }, "/m/ent")).not.toThrow();
    for (const missing of grants) {
      const others = { ...ruled(write), grants: grants.filter((grant) => grant !== missing) };
      expect(() => requireDefining(others, "/m/ent")).toThrow(missing);
    }
  });
});

test("a token with a part of its user's rights is named where it lacks one, and otherwise the user", () => {
  const bob = granted();
  const lacks = (more: object) => () => requirePermission({ ...bob, ...more }, "jobs:read");
  expect(lacks({ byToken: "part", tokenName: "ci" })).toThrow("The token ci of bob lacks the permission jobs:read.");
  expect(lacks({ byToken: "part" })).toThrow("The token of bob lacks the permission jobs:read.");
  // The token has all that its user has, so a token with more scopes would not help.
  expect(lacks({ byToken: "whole", tokenName: "ci" })).toThrow(/^bob lacks the permission jobs:read\.$/);
});
