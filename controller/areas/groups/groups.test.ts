import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { GROUPS_PER_CHANGE_MAX } from "../../../common/limits.ts";
import type { KvStore } from "../../store/kv.ts";
import { GroupService } from "./service.ts";

let http: TestHttp;
let admin: string;
let viewer: string;

beforeAll(async () => {
  http = await openTestHttp();
  admin = await http.signIn("admin");
  viewer = await http.signIn("viewer");
});

afterAll(() => http[Symbol.asyncDispose]());

const GROUP = "/admin/perms/group";
const API = "/admin/perms/api";
const form = { "content-type": "application/x-www-form-urlencoded" };

function made(payload: object): Promise<{ status: string; message: unknown; code?: string }> {
  return http.call(admin, { method: "POST", url: GROUP, payload });
}

function listed(url: string): Promise<{ message: unknown }> {
  return http.call(admin, { url });
}

test("the first change of a tenant may take away what it begins with: no key is written and deleted at once", async () => {
  await using fresh = await openTestHttp();
  const { kv } = await fresh.engine.tenant("matrix");
  const twice: string[] = [];
  const txn: KvStore["txn"] = (change) => {
    const keys = change.then.map(({ key }) => key);
    twice.push(...keys.filter((key, at) => keys.indexOf(key) !== at));
    return kv.txn(change);
  };
  const tenant = async (name: string) => ({ ...(await fresh.engine.tenant(name)), kv: wrappedKv(kv, { txn }) });
  const groups = new GroupService({ stores: { system: () => fresh.engine.system(), tenant }, runtime: testRuntime() });
  await groups.api.remove(testPrincipal(), "public");
  await groups.close();
  expect(twice).toEqual([]);
  expect((await fresh.groups.api.list(testPrincipal())).map(({ name }) => name)).not.toContain("public");
});

test("a change names the group, and a user only groups that there are", async () => {
  const [{ groups }, author] = [http, testPrincipal()];
  await expect(groups.update(author, { member: [] })).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("Which group") as string,
  });
  await groups.requireGroups(author, ["/viewers", "5"]);
  await expect(groups.requireGroups(author, ["/viewers", "/viewer"])).rejects.toMatchObject({
    code: "invalid",
    message: "grpset: there is no group /viewer; did you mean /viewers?",
  });
});

describe("a fresh tenant has", () => {
  test("the built-in groups, with what they open", async () => {
    const { message } = await listed(GROUP);
    const names = (message as { fullname: string }[]).map(({ fullname }) => fullname);
    expect(names).toEqual(["/administrators", "/authors", "/everyone", "/operators", "/viewers"]);
    expect(message).toContainEqual({
      id: "5",
      name: "viewers",
      fullname: "/viewers",
      parent: "",
      member: [],
      fields: {},
      readexps: [],
      readonly: ["/"],
      writable: [],
      tags: [],
      isParent: false,
      isldap: false,
      revision: "0",
    });
  });

  test("the API permission public, of everyone", async () => {
    const { message } = await listed(`${API}/public`);
    expect(message).toEqual({
      name: "public",
      pprefix: [
        ...["/app", "/web", "/assets", "/extend", "/matrix/user/signedUser.js", "/matrix/utils/global.js"],
        ...["/matrix/lang/getLangList.js", "/matrix/system/getAppNameByUrl.js"],
      ],
      _group: { _all: ["/everyone"] },
      revision: "0",
    });
  });

  test("built-in groups that take what they open, keep their names and cannot be deleted", async () => {
    for (const id of ["1", "2", "3", "4", "5"]) {
      const refused = await http.call(admin, { method: "DELETE", url: `${GROUP}/${id}` });
      expect(refused).toMatchObject({ code: "invalid", message: expect.stringContaining("built in") });
    }
    const renamed = { id: "5", name: "readers" };
    expect(await http.call(admin, { method: "PUT", url: GROUP, payload: renamed })).toMatchObject({ code: "invalid" });
    const filled = { id: "1", member: ["U/viewer"] };
    expect(await http.call(admin, { method: "PUT", url: GROUP, payload: filled })).toMatchObject({ code: "invalid" });
    const opened = { id: "5", readonly: ["/matrix"] };
    expect(await http.call(admin, { method: "PUT", url: GROUP, payload: opened })).toMatchObject({ status: "ok" });
    expect((await listed(`${GROUP}/5`)).message).toMatchObject({ readonly: ["/matrix"] });
    // The first change stored all built-in definitions, this one too.
    expect((await listed(`${API}/public`)).message).toMatchObject({ _group: { _all: ["/everyone"] } });
  });
});

describe("a group", () => {
  test("is made by the form of the portal and by JSON, and found by parent and id", async () => {
    const url = GROUP;
    const payload = "name=noc&parent=&member%5B%5D=U%2Fviewer&member%5B%5D=G%2Foperators";
    const { message: id } = await http.call(admin, { method: "POST", url, payload, headers: form });
    expect(id).toMatch(/^\d{16,20}$/);
    const rights = { fields: { "/matrix/a": "b,-c" }, readexps: ["/matrix/a: b = 1"], readonly: ["/matrix/a/"] };
    const night = { name: "night", parent: "/noc", member: ["U/bob"], ...rights, writable: ["/matrix/b"], tags: ["t"] };
    const { message: nightId } = await made(night);
    expect((await listed(`${GROUP}/${String(id)}`)).message).toMatchObject({
      fullname: "/noc",
      member: ["U/viewer", "G/operators"],
      isParent: true,
    });
    const revision = expect.any(String) as string;
    const whole = { ...night, id: nightId, fullname: "/noc/night", isParent: false, isldap: false, revision };
    expect((await listed(`${GROUP}?parent=/noc`)).message).toEqual([whole]);
    expect((await listed(`${GROUP}/${String(nightId)}`)).message).toEqual(whole);
  });

  test("that is renamed stays a member and keeps its API permissions", async () => {
    const { message: inner } = await made({ name: "inner" });
    const { message: outer } = await made({ name: "outer", member: ["G/inner"] });
    const payload = { name: "kept", path: ["/kept"] };
    await http.call(admin, { method: "POST", url: API, payload });
    await http.call(admin, { method: "PUT", url: `${API}/kept/group`, payload: { group: ["/inner"] } });
    await http.call(admin, { method: "PUT", url: GROUP, payload: { id: inner, name: "core", parent: "/outer" } });
    expect((await listed(`${GROUP}/${String(outer)}`)).message).toMatchObject({ member: ["G/outer/core"] });
    expect((await listed(`${API}/kept`)).message).toMatchObject({ _group: { _all: ["/outer/core"] } });
  });

  test("that is deleted is no member any more, and goes only when nothing lies below it", async () => {
    await made({ name: "up" });
    const { message: down } = await made({ name: "down", parent: "/up" });
    const { message: other } = await made({ name: "other", member: ["G/up/down"] });
    const [up] = (await listed(GROUP)).message as { id: string; fullname: string }[];
    expect(up).toBeDefined();
    const { message: found } = await listed(GROUP);
    const upId = (found as { id: string; name: string }[]).find(({ name }) => name === "up")?.id ?? "";
    const remove = (id: unknown) => http.call(admin, { method: "DELETE", url: `${GROUP}/${String(id)}` });
    expect(await remove(upId)).toMatchObject({ code: "conflict" });
    expect(await remove(down)).toMatchObject({ status: "ok" });
    expect((await listed(`${GROUP}/${String(other)}`)).message).toMatchObject({ member: [] });
    expect(await remove(upId)).toMatchObject({ status: "ok" });
    expect(await remove(upId)).toMatchObject({ code: "not_found" });
  });

  const wrong: readonly (readonly [string, object, string])[] = [
    ["no name", {}, "invalid"],
    ["a slash in its name", { name: "a/b" }, "invalid"],
    ["a name that is taken", { name: "viewers" }, "conflict"],
    ["a parent that is not there", { name: "w", parent: "/none" }, "not_found"],
    ["a member that is neither", { name: "w", member: ["bob"] }, "invalid"],
    ["a group that is not there", { name: "w", member: ["G/none"] }, "not_found"],
    ["a condition that does not parse", { name: "w", readexps: ["/a: b = "] }, "syntax"],
    ["a condition with a placeholder", { name: "w", readexps: ["/a: b = ?"] }, "invalid"],
    ["no condition", { name: "w", readexps: ["/a:"] }, "invalid"],
    ["a class that is no path", { name: "w", readonly: ["a b"] }, "invalid"],
    ["fields without names", { name: "w", fields: { "/a": " , " } }, "invalid"],
  ];
  test.each(wrong)("with %s is refused", async (_, payload, code) => {
    expect(await made(payload)).toMatchObject({ code });
  });

  test("is no member of itself, however long the way", async () => {
    await made({ name: "c1" });
    await made({ name: "c2", member: ["G/c1"] });
    await made({ name: "c3", member: ["G/c2"] });
    const circle = (name: string, member: string) =>
      http.call(admin, { method: "PUT", url: GROUP, payload: { name, member: [member] } });
    expect(await circle("c1", "G/c3")).toMatchObject({ code: "invalid" });
    expect(await circle("c1", "G/c1")).toMatchObject({ code: "invalid" });
    await made({ name: "n1" });
    await made({ name: "n2", parent: "/n1" });
    const [n1] = ((await listed(GROUP)).message as { id: string; name: string }[]).filter(({ name }) => name === "n1");
    const payload = { id: n1?.id, parent: "/n1/n2" };
    expect(await http.call(admin, { method: "PUT", url: GROUP, payload })).toMatchObject({ code: "invalid" });
  });
});

describe("an API permission", () => {
  test("has paths and groups, which are set and taken away", async () => {
    const call = (method: "POST" | "PUT" | "DELETE", url: string, payload: string) =>
      http.call(admin, { method, url, payload, headers: form });
    expect(await call("POST", API, "name=tools&path=/opt/tools/&path=/script/a.js")).toMatchObject({ status: "ok" });
    expect((await listed(`${API}/tools`)).message).toEqual({
      name: "tools",
      pprefix: ["/opt/tools", "/script/a.js"],
      _group: { _all: [] },
      revision: expect.any(String) as string,
    });
    expect(await call("POST", API, "name=tools&path=/x")).toMatchObject({ code: "conflict" });
    await call("PUT", `${API}/tools`, "path=/opt");
    await call("PUT", `${API}/tools/group`, "group=/viewers&group=/authors");
    await call("PUT", `${API}/tools/group`, "group=/operators");
    const all = ["/authors", "/operators", "/viewers"];
    expect((await listed(`${API}/tools`)).message).toMatchObject({ pprefix: ["/opt"], _group: { _all: all } });
    await http.call(admin, { method: "DELETE", url: `${API}/tools/group?group=/viewers&group=/authors` });
    expect((await listed(API)).message).toContainEqual({
      name: "tools",
      pprefix: ["/opt"],
      _group: { _all: ["/operators"] },
      revision: expect.any(String) as string,
    });
    expect(await http.call(admin, { method: "DELETE", url: `${API}/tools` })).toMatchObject({ status: "ok" });
    for (const method of ["GET", "DELETE"] as const)
      expect(await http.call(admin, { method, url: `${API}/tools` })).toMatchObject({ code: "not_found" });
  });

  test.each(["../etc", "relative", ""])("with the path %j is refused", async (path) => {
    const payload = { name: "bad", path: [path] };
    expect(await http.call(admin, { method: "POST", url: API, payload })).toMatchObject({ code: "invalid" });
  });
});

describe("who may do this", () => {
  test("is who has perms:write; a viewer looks", async () => {
    expect(await http.call(viewer, { url: GROUP })).toMatchObject({ status: "ok" });
    const refused = [
      { method: "POST", url: GROUP, payload: { name: "mine" } },
      { method: "PUT", url: GROUP, payload: { id: "5", member: ["U/viewer"] } },
      { method: "DELETE", url: `${GROUP}/5` },
      { method: "POST", url: API, payload: { name: "mine", path: ["/"] } },
      { method: "PUT", url: `${API}/public`, payload: { path: ["/"] } },
      { method: "PUT", url: `${API}/public/group`, payload: { group: ["/viewers"] } },
      { method: "DELETE", url: `${API}/public/group?group=/everyone` },
      { method: "DELETE", url: `${API}/public` },
      { method: "GET", url: "/admin/perms/app/refresh" },
      { method: "POST", url: "/admin/perms/app/refresh" },
    ] as const;
    for (const request of refused)
      expect(await http.call(viewer, request), request.url).toMatchObject({ code: "denied" });
  });

  test("changes one's own tenant only", async () => {
    const second = await http.signIn("admin", "second");
    const { message: id } = await made({ name: "private" });
    expect(await http.call(second, { url: `${GROUP}/${String(id)}` })).toMatchObject({ code: "not_found" });
    expect(await http.call(second, { method: "DELETE", url: `${GROUP}/${String(id)}` })).toMatchObject({
      code: "not_found",
    });
    expect((await http.call(second, { url: API })).message).toHaveLength(1);
  });
});

describe("a user", () => {
  let user: string;
  const rights = { grants: [], data: [] };

  beforeAll(async () => {
    await http.users.create(testPrincipal(), { username: "carol", password: PASSWORD, rights });
    user = (await http.users.signIn({ username: "carol", company: "matrix", password: PASSWORD, ...CALLER })).session;
  });

  const principal = async () => {
    const found = await http.users.bySession(user, "");
    if (found === undefined) throw new Error("carol is signed in");
    return found;
  };

  test("of no group has what everyone has", async () => {
    expect(await principal()).toMatchObject({
      groups: ["/everyone"],
      grants: ["files:read", "scripts:read"],
      data: [],
    });
    expect((await principal()).paths).toContain("/home/carol");
  });

  test("of a group that is a member of another has what both open, from the next call on", async () => {
    await made({ name: "crew", member: ["U/carol"], writable: ["/matrix/crew"] });
    expect(await principal()).toMatchObject({ grants: expect.arrayContaining(["objects:read", "objects:write"]) });
    await http.call(admin, { method: "PUT", url: GROUP, payload: { name: "viewers", member: ["G/crew"] } });
    const both = await principal();
    expect(new Set(both.groups)).toEqual(new Set(["/everyone", "/viewers", "/crew"]));
    expect(both.grants).toContain("*:read");
    await http.call(admin, { method: "PUT", url: GROUP, payload: { name: "crew", member: [] } });
    expect(await principal()).toMatchObject({ groups: ["/everyone"], data: [] });
  });

  test("that is removed leaves its groups, and a new one of that name gets nothing of the earlier one", async () => {
    const own = testPrincipal();
    const make = () => http.users.directory.create(own, { username: "dave", password: PASSWORD, rights });
    const names = ["watch", ...Array.from({ length: GROUPS_PER_CHANGE_MAX }, (_, at) => `watch${at}`)];
    const first = await make();
    for (const name of names) await made({ name, member: ["U/dave", "U/carol"], readonly: ["/matrix/watch"] });
    expect(await http.users.directory.remove(own, first.id)).toEqual([]);
    const listedGroups = (await listed(GROUP)).message as { name: string; member: string[] }[];
    for (const { name, member } of listedGroups) if (names.includes(name)) expect(member).toEqual(["U/carol"]);

    await make();
    const { session } = await http.users.signIn({
      username: "dave",
      company: "matrix",
      password: PASSWORD,
      ...CALLER,
    });
    expect(await http.users.bySession(session, "")).toMatchObject({ groups: ["/everyone"], data: [] });
  });

  test("keeps the same rights, as an object, while no definition changes", async () => {
    let first = await principal();
    // Reports of changes by earlier tests may still arrive.
    const isSame = async () => {
      const second = await principal();
      const same = second.grants === first.grants;
      first = second;
      return same;
    };
    await expect.poll(isSame).toBe(true);
    await http.call(admin, { url: "/admin/perms/app/refresh" });
    expect((await principal()).grants).not.toBe(first.grants);
  });
});

const CALLER = { remote: "test", traceparent: "" };
