import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { ClassGuard } from "../objects/index.ts";
import { ExplainService } from "./explain.ts";
import { groupRoutes } from "./routes.ts";

const TRAIL: ClassGuard = { reading: { permission: "audit:read" } };
const HOSTS: ClassGuard = { reading: { permission: "hosts:read", isOpenToGroups: true }, permission: "hosts:write" };
const guardOf = (_: unknown, path: string) =>
  Promise.resolve(
    new Map([
      ["/matrix/trail", TRAIL],
      ["/matrix/hosts", HOSTS],
    ]).get(path),
  );

let http: TestHttp;
let explaining: ExplainService;
const admin = testPrincipal();

beforeAll(async () => {
  http = await openTestHttp();
  const { groups, users } = http;
  explaining = new ExplainService({ groups, users, endpoints: () => groupRoutes(groups), guardOf });
  const rights = { grants: [], data: [] };
  await users.create(admin, { username: "bob", password: PASSWORD, rights });
  const opened = { writable: ["/matrix/box"], readexps: ["/matrix/box: a = 1"], fields: { "/matrix/box": "-b" } };
  await groups.create(admin, { name: "noc", member: ["U/bob"], ...opened });
  await groups.create(admin, { name: "all", member: ["G/noc"], readonly: ["/matrix/box"] });
  await groups.api.create(admin, "tools", ["/opt/tools"]);
  await groups.api.addGroups(admin, "tools", ["/all"]);
});
afterAll(() => http[Symbol.asyncDispose]());

const NOC = { group: "/noc", how: "write /matrix/box, rows where a = 1, without b", member: ["/bob"] };

test("of a class it says which groups open it, how, and to whom", async () => {
  const writing = await explaining.explain(admin, { user: "bob", class: "/matrix/box/", write: true });
  expect(writing).toMatchObject({
    user: "bob",
    allowed: true,
    why: ["/noc gives writing objects of /matrix/box: write /matrix/box, rows where a = 1, without b."],
  });
  expect(new Set(writing.groups)).toEqual(new Set(["/everyone", "/noc", "/all"]));
  expect(writing.who.map(({ group }) => group).sort()).toEqual(["/administrators", "/authors", "/noc", "/operators"]);
  expect(writing.who).toContainEqual(NOC);
  const reading = await explaining.explain(admin, { user: "bob", class: "/matrix/box" });
  expect(reading.who).toContainEqual({ group: "/all", how: "read /matrix/box", member: ["/bob"] });
  expect(await explaining.explain(admin, { user: "bob", class: "/matrix/other" })).toMatchObject({
    allowed: false,
    why: [expect.stringContaining("bob lacks reading objects of /matrix/other")],
  });
  expect(await explaining.explain(admin, { user: "viewer", class: "/matrix/other" })).toMatchObject({
    allowed: true,
    why: ["viewer has reading objects of /matrix/other by rights of his own: read /."],
  });
});

test("of a class of the platform it says which permission reading and writing take", async () => {
  await http.groups.create(admin, { name: "eyes", member: ["U/bob"], readonly: ["/matrix/trail", "/matrix/hosts"] });
  const asked = async (path: string, write = false) => {
    const { allowed, why } = await explaining.explain(admin, { user: "bob", class: path, write });
    return [allowed, ...why];
  };
  expect(await asked("/matrix/trail")).toEqual([
    false,
    "bob lacks reading objects of /matrix/trail: no group of the user, and no right of his own, opens the class; it takes the permission audit:read.",
  ]);
  expect(await asked("/matrix/trail", true)).toEqual([
    false,
    "bob lacks writing objects of /matrix/trail: nothing writes them but their owner.",
  ]);
  expect(await asked("/matrix/hosts")).toEqual([
    true,
    "/eyes gives reading objects of /matrix/hosts: read /matrix/hosts.",
  ]);
  expect(await asked("/matrix/hosts", true)).toEqual([false, expect.stringContaining("the permission hosts:write")]);
  const viewer = await explaining.explain(admin, { user: "viewer", class: "/matrix/trail" });
  expect(viewer.why).toEqual([
    "viewer has reading objects of /matrix/trail by rights of his own: the permission audit:read, and read /.",
  ]);
});

test("of a path, by which API permission's path; of the home folder, that it is the user's own", async () => {
  expect(await explaining.explain(admin, { user: "bob", path: "/opt/tools/a.js" })).toMatchObject({
    allowed: true,
    why: ["/all gives the path /opt/tools/a.js: /opt/tools."],
  });
  expect(await explaining.explain(admin, { user: "bob", path: "/opt/toolsmith" })).toMatchObject({ allowed: false });
  expect(await explaining.explain(admin, { user: "bob", path: "/home/bob/x" })).toMatchObject({
    allowed: true,
    why: ["bob has the path /home/bob/x as his own."],
  });
});

test("of an endpoint, by which permission", async () => {
  const question = { user: "bob", endpoint: "delete /admin/perms/api/public?x=1" };
  expect(await explaining.explain(admin, question)).toMatchObject({
    allowed: false,
    why: ["bob lacks the permission perms:write for DELETE /admin/perms/api/:name."],
    who: [{ group: "/administrators", how: "the permission perms:write", member: [] }],
  });
  expect(await explaining.explain(admin, { user: "admin", endpoint: "GET /admin/perms/group" })).toMatchObject({
    allowed: true,
    why: ["/administrators gives GET /admin/perms/group: the permission perms:read."],
  });
});

test("it asks for one thing that is there, by who may look at permissions and users", async () => {
  const refused: readonly (readonly [object, string])[] = [
    [{}, "invalid"],
    [{ class: "/a", path: "/b" }, "invalid"],
    [{ endpoint: "GET /none" }, "not_found"],
    [{ user: "nobody", class: "/a" }, "not_found"],
    [{ path: "a/../b" }, "invalid"],
  ];
  for (const [question, code] of refused)
    await expect(
      explaining.explain(admin, { user: "bob", ...question }),
      JSON.stringify(question),
    ).rejects.toMatchObject({
      code,
    });
  const unable = { ...admin, grants: ["perms:read"] };
  await expect(explaining.explain(unable, { user: "bob", class: "/a" })).rejects.toMatchObject({ code: "denied" });
});

test("who asks again after a group lost a right is told so", async () => {
  await http.groups.create(admin, { name: "late", readonly: ["/matrix/late"] });
  const givers = async () =>
    (await explaining.explain(admin, { user: "bob", class: "/matrix/late" })).who.map(({ group }) => group);
  expect(await givers()).toContain("/late");
  expect(await givers()).toContain("/late");
  await http.groups.update(admin, { name: "late", readonly: [] });
  expect(await givers()).not.toContain("/late");
});
