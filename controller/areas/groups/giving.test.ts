import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Principal } from "../permissions/index.ts";

/** A change of groups and API permissions neither gives nor takes rights that its author does not have. */

const admin = testPrincipal();
/** Rights to change groups, and to read and write one tree. */
const KEEPER = {
  grants: ["perms:write", "perms:read", "objects:*"],
  data: [{ class: "/matrix/shop", access: "write" }],
};

let http: TestHttp;
let keeper: Principal;
let shopId: string;

beforeAll(async () => {
  http = await openTestHttp();
  const { groups, users } = http;
  await users.create(admin, { username: "keeper", password: PASSWORD, rights: KEEPER as never });
  await users.create(admin, { username: "bob", password: PASSWORD, rights: { grants: [], data: [] } });
  shopId = (await groups.create(admin, { name: "shop", member: ["U/keeper"], writable: ["/matrix/shop"] })).id;
  await groups.create(admin, { name: "store", readonly: ["/matrix/store"] });
  await groups.create(admin, { name: "plain" });
  await groups.create(admin, { name: "inner" });
  await groups.create(admin, { name: "between", member: ["G/inner"] });
  await groups.update(admin, { name: "store", member: ["U/bob", "G/between"] });
  await groups.create(admin, { name: "high", parent: "/shop", writable: ["/matrix/high"] });
  await groups.api.create(admin, "closed", ["/opt/closed"]);
  await groups.api.create(admin, "open", ["/app/more"]);
  keeper = await present("keeper");
});
afterAll(() => http[Symbol.asyncDispose]());

async function present(username: string): Promise<Principal> {
  const found = await http.users.present("matrix", username);
  if (found === undefined) throw new Error(`There is no ${username}.`);
  return found;
}

const BEYOND = { code: "denied", message: expect.stringContaining("beyond the own") as string };

describe("who may change groups, and has not what one gives,", () => {
  test.each<readonly [string, () => Promise<unknown>]>([
    ["joins it", () => http.groups.update(keeper, { name: "operators", member: ["U/keeper"] })],
    ["adds another user to it", () => http.groups.update(keeper, { name: "store", member: ["U/bob", "U/keeper"] })],
    ["adds the own group to it", () => http.groups.update(keeper, { name: "store", member: ["G/shop"] })],
    ["joins one that is a member of it", () => http.groups.update(keeper, { name: "inner", member: ["U/keeper"] })],
    ["empties it", () => http.groups.update(keeper, { name: "store", member: [] })],
    ["opens all of it", () => http.groups.update(keeper, { name: "shop", writable: ["/"] })],
    ["opens another tree by rows", () => http.groups.update(keeper, { name: "shop", readexps: ["/matrix/x: a = 1"] })],
    ["opens it to everybody", () => http.groups.update(keeper, { name: "everyone", readonly: ["/"] })],
    ["makes one that writes /", () => http.groups.create(keeper, { name: "own", writable: ["/"] })],
    ["makes one that reads another tree", () => http.groups.create(keeper, { name: "own", readonly: ["/matrix/x"] })],
    ["renames it", async () => http.groups.update(keeper, { id: await idOf("store"), name: "other" })],
    ["renames one above it", () => http.groups.update(keeper, { id: shopId, name: "market" })],
    ["removes it", async () => void (await http.groups.remove(keeper, "/store"))],
    ["opens closed paths", () => http.groups.api.addGroups(keeper, "closed", ["/plain"])],
    ["closes paths that are closed for him", () => http.groups.api.removeGroups(keeper, "closed", ["/plain"])],
    ["makes an API permission of closed paths", () => http.groups.api.create(keeper, "mine", ["/"])],
    ["widens an API permission", () => http.groups.api.setPaths(keeper, "open", ["/app/more", "/opt"])],
    ["replaces closed paths", () => http.groups.api.setPaths(keeper, "closed", ["/app/more"])],
    ["removes closed paths", () => http.groups.api.remove(keeper, "closed")],
  ])("never %s", async (_way, change) => {
    const before = JSON.stringify([await http.groups.list(admin), await http.groups.api.list(admin)]);
    await expect(change()).rejects.toMatchObject(BEYOND);
    expect(JSON.stringify([await http.groups.list(admin), await http.groups.api.list(admin)])).toBe(before);
  });

  test("changes a group above one that gives more, while its name and its place stay", async () => {
    await expect(http.groups.update(keeper, { id: shopId, tags: ["a"] })).resolves.toMatchObject({ tags: ["a"] });
  });

  test("gives what he has", async () => {
    const { groups } = http;
    await groups.create(keeper, {
      name: "mine",
      readonly: ["/matrix/shop/till"],
      fields: { "/matrix/shop": "-price" },
    });
    await groups.update(keeper, { name: "mine", member: ["U/bob"], writable: ["/matrix/shop"] });
    expect((await present("bob")).data).toContainEqual(
      expect.objectContaining({ class: "/matrix/shop", access: "write" }),
    );
    await groups.api.addGroups(keeper, "open", ["/mine"]);
    expect((await present("bob")).paths).toContain("/app/more");
    await groups.remove(keeper, "/mine");
    expect((await present("bob")).paths).not.toContain("/app/more");
  });
});

async function idOf(name: string): Promise<string> {
  return (await http.groups.find(admin, `/${name}`)).id;
}

describe("a token with a part of its user's rights", () => {
  const token = async (...scopes: string[]): Promise<Principal> => {
    const made = await http.users.signIns.makeToken(await present("admin"), { name: "t", scopes, days: 1, remote: "" });
    const found = await http.users.byToken(made, "");
    if (found === undefined) throw new Error("The token is no token.");
    return found;
  };

  test("changes no rights, not even those that it has", async () => {
    const part = await token("perms:write", "perms:read", "users:*", "objects:*");
    const { groups, users } = http;
    const ways: readonly (() => Promise<unknown>)[] = [
      () => groups.create(part, { name: "by-token" }),
      () => groups.create(part, { name: "by-token", writable: ["/matrix/shop"] }),
      () => groups.update(part, { name: "plain", member: ["U/bob"] }),
      () => groups.update(part, { name: "operators", member: ["U/bob"] }),
      () => groups.remove(part, "/plain"),
      () => groups.api.create(part, "p", ["/app"]),
      () => groups.api.setPaths(part, "open", ["/app/less"]),
      () => groups.api.addGroups(part, "open", ["/plain"]),
      () => groups.api.removeGroups(part, "open", ["/plain"]),
      () => groups.api.remove(part, "open"),
      () => users.signInPolicy.set(part, { secondFactor: "optional" }),
      () => users.create(part, { ...person("t1"), rights: { grants: ["objects:read"], data: [] } }),
      () => users.create(part, { ...person("t2"), groups: ["/plain"] }),
      () => users.update(part, "bob", { groups: ["/plain"] }),
      () => users.update(part, "bob", { rights: { grants: ["objects:read"], data: [] } }),
    ];
    for (const way of ways) await expect(way(), String(way)).rejects.toMatchObject({ code: "denied" });
    const before = await http.groups.find(admin, "/plain");
    expect(before).toMatchObject({ member: [] });
  });

  test("makes no user of a name that a group waits for, and makes others", async () => {
    const part = await token("users:*", "objects:*");
    await http.groups.update(admin, { name: "shop", member: ["U/keeper", "U/awaited"] });
    await expect(http.users.create(part, person("awaited"))).rejects.toMatchObject({ code: "denied" });
    await expect(http.users.create(part, person("unknown"))).resolves.toMatchObject({ username: "unknown" });
  });

  test("with all of them changes what its user may", async () => {
    const whole = await token("*:read", "*:write", "*:run");
    await expect(http.groups.update(whole, { name: "plain", tags: ["a"] })).resolves.toMatchObject({ tags: ["a"] });
  });

  const person = (username: string) => ({ username, password: PASSWORD, rights: { grants: [], data: [] } });
});
