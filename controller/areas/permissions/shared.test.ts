import { describe, expect, test } from "vitest";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { allows } from "./grants.ts";
import { pathAllowed } from "./principal.ts";
import { sharedGrant, sharedRights } from "./shared.ts";
import type { Permission } from "./names.ts";
import type { DataRule, Principal } from "./types.ts";

const PARTS = ["jobs", "hosts", "*"].flatMap((area) => ["read", "write", "*"].map((verb) => `${area}:${verb}`));
const GRANTS = PARTS.filter((grant) => grant !== "*:*");
const ASKED: readonly Permission[] = ["jobs:read", "jobs:write", "hosts:read", "hosts:write", "users:read"];

function caller(part: Partial<Principal>): Principal {
  return { ...testPrincipal(), user: "ann", ...part };
}

function author(part: Partial<Principal>): Principal {
  return { ...testPrincipal(), user: "bob", ...part };
}

test("what two grants have in common is what both allow", () => {
  for (const one of GRANTS)
    for (const other of GRANTS)
      for (const permission of ASKED)
        expect(allows({ grants: sharedGrant(one, other) }, permission), `${one} and ${other}: ${permission}`).toBe(
          allows({ grants: [one] }, permission) && allows({ grants: [other] }, permission),
        );
});

test("two grants of other areas or verbs have nothing in common", () => {
  expect([sharedGrant("jobs:read", "hosts:read"), sharedGrant("*:read", "jobs:write")]).toEqual([[], []]);
});

test("of many grants every pair counts", () => {
  const shared = sharedRights(
    caller({ grants: ["*:read", "jobs:write"] }),
    author({ grants: ["jobs:*", "hosts:read"] }),
  );
  expect(ASKED.filter((permission) => allows(shared, permission))).toEqual(["jobs:read", "jobs:write", "hosts:read"]);
});

test("it is the caller who acts", () => {
  expect(sharedRights(caller({}), author({}))).toMatchObject({ user: "ann" });
});

describe("of paths those are open that are open to both", () => {
  const asked = ["/a", "/a/b", "/a/b/c", "/a/bc", "/d", "/"];
  test.each<[one: readonly string[] | undefined, other: readonly string[] | undefined]>([
    [undefined, undefined],
    [["/a"], undefined],
    [undefined, ["/a/b"]],
    [["/a"], ["/a/b", "/d"]],
    [["/a/b", "/d"], ["/a"]],
    [["/a"], ["/d"]],
    [["/"], ["/a/b"]],
    [[], ["/"]],
  ])("%j and %j", (one, other) => {
    const open = (paths: readonly string[] | undefined) => (paths === undefined ? {} : { paths });
    const shared = sharedRights(caller(open(one)), author(open(other)));
    for (const path of asked)
      expect(pathAllowed(shared, path), path).toBe(pathAllowed(open(one), path) && pathAllowed(open(other), path));
  });
});

describe("of objects", () => {
  const all: readonly DataRule[] = [{ class: "/", access: "write" }];
  const part: readonly DataRule[] = [{ class: "/m", access: "read", where: "a = 1" }];
  const elsewhere: readonly DataRule[] = [{ class: "/n", access: "write" }];

  test("the rules of the one hold where the other one is restricted in nothing", () => {
    expect(sharedRights(caller({ data: part }), author({ data: all })).data).toEqual(part);
    expect(sharedRights(caller({ data: all }), author({ data: part })).data).toEqual(part);
  });

  test("equal rules hold as they are", () => {
    expect(sharedRights(caller({ data: part }), author({ data: structuredClone(part) })).data).toEqual(part);
  });

  test("different rules have no common one, and that is said", () => {
    expect(() => sharedRights(caller({ data: part }), author({ data: elsewhere }))).toThrow(
      "ann and bob see and write objects by different rules: ann has to save this before running it.",
    );
  });
});
