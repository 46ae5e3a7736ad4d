import { expect, test } from "vitest";
import { ADMINISTRATORS_ID, BUILT_IN_GROUPS } from "./builtin.ts";
import { Definitions } from "./definitions.ts";
import type { GroupRecord, PathRecord } from "./types.ts";

const NONE = { parent: "", member: [], readonly: [], writable: [], readexps: [], fields: {}, tags: [] } as const;
const group = (id: string, more: Partial<GroupRecord> = {}): GroupRecord => ({ ...NONE, id, name: `g${id}`, ...more });
const definitions = (groups: readonly GroupRecord[], paths: readonly PathRecord[] = []) =>
  new Definitions({ revision: 1, groups: [...BUILT_IN_GROUPS, ...groups], paths });
const member = (username: string, more: object = {}) => ({ username, isAdministrator: false, ...more });

test("a group has the names above it before its own, and one that is gone has none", () => {
  const all = definitions([group("10"), group("11", { parent: "10", member: ["U/bob", "G10", "G99"] })]);
  expect([all.fullname("11"), all.fullname("10"), all.fullname("99")]).toEqual(["/g10/g11", "/g10", ""]);
  expect([all.named("/g10/g11")?.id, all.named("/g11")]).toEqual(["11", undefined]);
  expect(all.view(all.get("11")!)).toMatchObject({
    ...{ fullname: "/g10/g11", parent: "/g10", member: ["U/bob", "G/g10"], hasChildren: false },
  });
  expect(all.view(all.get("10")!)).toMatchObject({ parent: "", hasChildren: true });
  const named = { name: "p", paths: ["/x"], groups: ["11", "99", "10"] };
  expect(all.apiView(named)).toEqual({ name: "p", paths: ["/x"], groups: ["/g10", "/g10/g11"], revision: "0" });
});

test("a user is in the groups that name him, in those that he names, and in those that have these as members", () => {
  const all = definitions([
    group("10", { member: ["U/acme/bob"] }),
    group("11", { member: ["G10", "G12", "G99"] }),
    // A circle that two controllers of former versions could create.
    group("12", { member: ["G11"] }),
    group("13"),
    group("14", { member: ["U/bobby"] }),
  ]);
  const groupsOf = (of: object) => [...all.groupsOf(member("bob", of))].sort();
  expect(groupsOf({})).toEqual(["1", "10", "11", "12"]);
  expect(groupsOf({ groups: ["13", "/g14", "/gone"] })).toEqual(["1", "10", "11", "12", "13", "14"]);
  expect(groupsOf({ groups: [ADMINISTRATORS_ID, "/administrators"] })).not.toContain(ADMINISTRATORS_ID);
  expect(groupsOf({ isAdministrator: true })).toContain(ADMINISTRATORS_ID);
  expect([...all.below("11")].sort()).toEqual(["10", "11", "12", "99"]);
});

test("the users of a group are those of the groups below it that are seen, up to a number", () => {
  const all = definitions([
    group("10", { member: ["U/ann", "G11", "U/bob"] }),
    group("11", { member: ["U/bob", "U/cid", "U/dan"] }),
  ]);
  const usersIn = (max: number) => all.usersIn("10", max, (of) => of !== "U/cid");
  expect([usersIn(9), usersIn(2), usersIn(0)]).toEqual([["/ann", "/bob", "/dan"], ["/ann", "/bob"], []]);
});

test("the rights of a user are what his groups open beside his own, with the endpoints that this takes", () => {
  const all = definitions(
    [
      group("10", { member: ["U/reader"], readonly: ["/m"] }),
      group("11", { member: ["U/writer"], writable: ["/m"] }),
      group("12", { member: ["U/blind"], fields: { "/m": "a" } }),
      group("13", { member: ["G10"] }),
    ],
    [
      { name: "p", paths: ["/x", "/y"], groups: ["10", "12"] },
      { name: "q", paths: ["/y", "/z"], groups: ["13"] },
    ],
  );
  const everyone = ["files:read", "scripts:read"];
  expect(all.rightsOf(member("reader"))).toEqual({
    groups: ["/everyone", "/g10", "/g13"],
    grants: ["objects:read", ...everyone],
    data: [{ class: "/m", access: "read", group: "10" }],
    paths: ["/x", "/y", "/z", "/home/reader"],
  });
  expect(all.rightsOf(member("writer")).grants).toEqual(["objects:read", "objects:write", ...everyone]);
  expect(all.rightsOf(member("blind"))).toMatchObject({ grants: everyone, paths: ["/x", "/y", "/home/blind"] });
  const own = { grants: ["hosts:read"], data: [{ class: "/own", access: "read" }] } as const;
  expect(all.rightsOf(member("reader", { own }))).toMatchObject({
    grants: ["hosts:read", "objects:read", ...everyone],
    data: [own.data[0], { class: "/m" }],
  });
  expect(all.rightsOf(member("root", { isAdministrator: true, own }))).not.toHaveProperty("paths");
  expect(all.rightsOfGroup("10")).toMatchObject({ groups: ["/g10"], grants: ["objects:read"], paths: ["/x", "/y"] });
  expect(all.rightsThrough("10")).toMatchObject({ groups: ["/g10", "/g13"], paths: ["/x", "/y", "/z"] });
});

test("equal rights are one object", () => {
  const all = definitions([group("10", { readonly: ["/m"] })]);
  const bob = member("bob", { groups: ["10"] });
  expect(all.rightsOf(bob)).toBe(all.rightsOf(bob));
  expect(all.rightsOf(member("ann", { groups: ["10"] })).data).toBe(all.rightsOf(bob).data);
  expect(all.rightsOfGroup("10")).toBe(all.rightsOfGroup("10"));
});
