import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Row, Value } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { fileController, type FileController } from "../../../test/helpers/areas/files.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { ROLES, type Principal } from "../permissions/index.ts";
import { QueryService, SearchService } from "../query/index.ts";
import { ExportService } from "../transfer/index.ts";
import { fileRoutes } from "./routes.ts";

/** Paths closed to a user stay closed on every way to a file, even when the user has other permissions. */

let http: TestHttp;
let controller: FileController;
let bob: string;

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  controller = fileController(stores, { everyone: (tenant) => http.groups.rightsOfEveryone(tenant) });
  http = await openTestHttp({ endpoints: fileRoutes(controller.files, controller.search) });
  const admin = testPrincipal();
  const rights = { grants: ["files:read", "files:write"], data: [] };
  await http.users.create(admin, { username: "bob", password: PASSWORD, rights });
  const caller = { company: "matrix", remote: "test", traceparent: "" };
  bob = (await http.users.signIn({ ...caller, username: "bob", password: PASSWORD })).session;
  for (const path of [
    "/web/index.html",
    "/opt/tools/a.js",
    "/opt/toolsmith",
    "/opt/keys/k",
    "/home/ann/a",
    "/home/bob/b",
  ])
    await controller.files.write(admin, { path, space: "user" }, { text: path });
  await http.groups.create(admin, { name: "crew", member: ["U/bob"] });
  await http.groups.api.create(admin, "tools", ["/opt/tools"]);
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const denied = expect.objectContaining({ code: "denied" });
const get = (url: string) => http.call(bob, { url });
const names = async (url: string) => {
  const { message } = await get(url);
  return (message as { fullname: string }[]).map(({ fullname }) => fullname).sort();
};

describe("a user", () => {
  test("reads what everyone may, and the own home folder", async () => {
    expect(await get("/fs/web/index.html?type=file")).toMatchObject({ message: "/web/index.html" });
    expect(await get("/fs/home/bob/b?type=file")).toMatchObject({ message: "/home/bob/b" });
    expect(await get("/fs/home/ann/a?type=file")).toEqual(denied);
  });

  test("leaves nothing in a browser but what is open to everybody", async () => {
    const kept = async (path: string, headers: Record<string, string> = {}) => {
      const answers = await Promise.all(
        [`/static${path}?`, `/fs${path}?type=open&`, `/fs${path}?type=download&`].map((url) =>
          http.app.inject({ url: `${url}sessionid=${bob}`, headers }),
        ),
      );
      const [status] = new Set(answers.map(({ statusCode }) => statusCode));
      return [status, ...new Set(answers.map((answer) => answer.headers["cache-control"]))];
    };
    const etag = String((await http.app.inject(`/static/home/bob/b?sessionid=${bob}`)).headers["etag"]);
    expect(await kept("/web/index.html")).toEqual([200, "private, no-cache"]);
    expect(await kept("/home/bob/b")).toEqual([200, "no-store"]);
    expect(await kept("/home/bob/b", { "if-none-match": etag })).toEqual([304, "no-store"]);
    expect(await kept("/home/ann/a")).toEqual([500, "no-store"]);
    const admin = testPrincipal();
    await http.groups.api.create(admin, "for all", ["/home/bob"]);
    await http.groups.api.addGroups(admin, "for all", ["/everyone"]);
    expect(await kept("/home/bob/b")).toEqual([200, "private, no-cache"]);
    await http.groups.api.remove(admin, "for all");
    expect(await kept("/home/bob/b")).toEqual([200, "no-store"]);
    const everyone = await http.groups.find(admin, "/everyone");
    const readexps = ["/matrix/filesystem: fullname like '/web/*'"];
    await http.groups.update(admin, { id: everyone.id, readexps });
    expect(await kept("/web/index.html")).toEqual([200, "no-store"]);
    await http.groups.update(admin, { id: everyone.id, readexps: [] });
    expect(await kept("/web/index.html")).toEqual([200, "private, no-cache"]);
  });

  test("meets every other path closed, by every way", async () => {
    for (const type of ["file", "open", "download", "check", "attr", "tag"])
      expect(await get(`/fs/opt/keys/k?type=${type}`), type).toEqual(denied);
    expect(await get("/static/opt/keys/k")).toEqual(denied);
    expect(await get("/fs/opt/keys?type=dir")).toEqual(denied);
    const changes = [
      { method: "PUT", url: "/fs/opt/keys/k", payload: { data: "mine" } },
      { method: "PUT", url: "/fs/opt/keys/new", payload: { data: "mine" } },
      { method: "PUT", url: "/fs/opt/keys/k", payload: { type: "tag", tags: ["t"] } },
      { method: "DELETE", url: "/fs/opt/keys/k" },
      { method: "DELETE", url: "/fs/opt" },
      { method: "POST", url: "/fs/copy", payload: { srcpath: "/opt/keys/k", dstpath: "/home/bob" } },
      { method: "POST", url: "/fs/move", payload: { srcpath: "/opt/keys/k", dstpath: "/home/bob" } },
      { method: "POST", url: "/fs/move", payload: { srcpath: "/home/bob/b", dstpath: "/opt/keys" } },
      { method: "POST", url: "/fs/rename", payload: { srcpath: "/opt/keys", dstpath: "/home/bob/keys" } },
      { method: "POST", url: "/fs/rename", payload: { srcpath: "/home/bob/b", dstpath: "/opt/keys/b" } },
    ] as const;
    for (const request of changes) expect(await http.call(bob, request), request.url).toEqual(denied);
    const files = controller.files;
    const principal = await http.users.bySession(bob, "");
    if (principal === undefined) throw new Error("bob is signed in");
    const id = "filesystem:user:/opt/keys/k";
    await expect(files.retag(principal, id, [])).rejects.toMatchObject({
      code: "denied",
      details: { path: "/opt/keys/k" },
    });
    const { text } = await files.read(testPrincipal(), "/opt/keys/k");
    expect(text).toBe("/opt/keys/k");
  });

  test("sees of folders above open paths only the way to these", async () => {
    expect(await names("/fs/?type=dir")).toEqual(["/home", "/web"]);
    expect(await names("/fs/home?type=dir")).toEqual(["/home/bob"]);
    expect(await get("/fs/opt?type=check")).toEqual(denied);
  });

  test("reads and changes below a path from the call on in which its group is given it, and not any more after", async () => {
    const admin = testPrincipal();
    await http.groups.api.addGroups(admin, "tools", ["/crew"]);
    expect(await get("/fs/opt/tools/a.js?type=file")).toMatchObject({ message: "/opt/tools/a.js" });
    expect(await names("/fs/opt?type=dir")).toEqual(["/opt/tools"]);
    expect(await get("/fs/opt/toolsmith?type=file")).toEqual(denied);
    const put = { method: "PUT", url: "/fs/opt/tools/b.js", payload: { data: "b" } } as const;
    expect(await http.call(bob, put)).toMatchObject({ status: "ok" });
    await http.groups.api.removeGroups(admin, "tools", ["/crew"]);
    expect(await get("/fs/opt/tools/a.js?type=file")).toEqual(denied);
    expect(await http.call(bob, put)).toEqual(denied);
  });
});

/** A user who may read all objects and all files, limited to open paths. */
describe("a viewer finds files of open paths only", () => {
  const FILES = "/matrix/filesystem";
  const OPEN = ["/home", "/home/vic", "/home/vic/v", "/web", "/web/index.html"];
  const CLOSED = "/opt/keys/k";
  const words = /opt|ann/;
  let query: QueryService;
  let search: SearchService;
  let exports: ExportService;
  let vic: Principal;

  beforeAll(async () => {
    const admin = testPrincipal();
    const { objects } = controller;
    const runtime = testRuntime(realClock);
    query = new QueryService({ objects, runtime });
    search = new SearchService({ objects, runtime });
    exports = new ExportService({ objects, query, runtime });
    await http.users.create(admin, { username: "vic", password: PASSWORD, rights: ROLES.viewer });
    const caller = { company: "matrix", username: "vic", password: PASSWORD, remote: "test", traceparent: "" };
    vic = (await http.users.bySession((await http.users.signIn(caller)).session, "")) as Principal;
    await controller.files.write(admin, controller.user("/home/vic/v"), { text: "v" });
    await controller.files.write(admin, { path: "/web/of/the/system", space: "system" }, { text: "s" });
    await query.rows(
      admin,
      "create class /matrix/note (name varchar, path varchar, keys(name)); create edge type about",
    );
    for (const path of ["/web/index.html", CLOSED])
      await query.rows(admin, "insert into /matrix/note name = ?, path = ?, about = [?]", [
        path,
        path,
        `filesystem:user:${path}`,
      ]);
  });

  const rows = (text: string, values: readonly Value[] = []) => query.rows(vic, text, values);

  test("by a SELECT, its conditions, sub-selects and unions", async () => {
    const all = await rows(`select fullname, owner, digest from ${FILES} order by fullname`);
    expect(all.map(({ fullname }) => fullname)).toEqual(OPEN);
    expect(JSON.stringify(await rows(`select * from ${FILES} limit -1`))).not.toMatch(words);
    for (const condition of [
      `id = 'filesystem:user:${CLOSED}'`,
      `fullname = '${CLOSED}'`,
      "name = 'k'",
      "fullname like '/opt*'",
      "parent = '/opt/keys'",
    ])
      expect(await rows(`select name from ${FILES} where ${condition}`), condition).toEqual([]);
    expect(await rows(`select name from /matrix/note where path in (select fullname from ${FILES})`)).toHaveLength(1);
    expect(
      await rows(`select name from ${FILES} where name = 'k' union select name from ${FILES} where name = 'v'`),
    ).toEqual([{ name: "v" }]);
    expect(await rows(`select fullname from (select fullname, name from ${FILES}) where name = 'k'`)).toEqual([]);
    expect(await rows(`select name, vtime from ${FILES} order by vtime desc limit 20`)).toHaveLength(OPEN.length);
  });

  test("also where objects are only counted, grouped or told by number", async () => {
    expect(await rows(`select count(*) as n from ${FILES}`)).toEqual([{ n: OPEN.length }]);
    expect(await rows(`select count(*) as n from ${FILES} where name = 'k'`)).toEqual([{ n: 0 }]);
    expect(await rows(`select parent, count(*) as n from ${FILES} group by parent order by parent`)).toEqual([
      { parent: "/", n: 2 },
      { parent: "/home", n: 1 },
      { parent: "/home/vic", n: 1 },
      { parent: "/web", n: 1 },
    ]);
    expect(await rows(`select max(size) as s, top(name, 9) as t from ${FILES} where ftype <> 'dir'`)).toMatchObject([
      { s: "/web/index.html".length },
    ]);
    const measured = await rows(`explain analyze select name from ${FILES}`);
    expect(measured.find(({ work }) => work === `read ${FILES}`)).toMatchObject({
      rows: OPEN.length,
      estimated: null,
    });
    expect(await rows(`explain select count(*) from ${FILES} where name = 'k'`)).not.toContainEqual(
      expect.objectContaining({ work: expect.stringContaining("without rows") }),
    );
  });

  test("by a JOIN, a MATCH and what relations lead to", async () => {
    const joined = `select n.name, f.owner from /matrix/note n join (f:${FILES}) on f.fullname = n.path`;
    expect(await rows(joined)).toEqual([{ name: "/web/index.html", owner: "administrator" }]);
    expect(await rows("select name from /matrix/note where about is not null")).toEqual([{ name: "/web/index.html" }]);
    expect(await rows("select about.owner from /matrix/note where name = ?", [CLOSED])).toEqual([
      { "about.owner": null },
    ]);
    const [graph] = await rows(`match (n:/matrix/note)-[:about]->(f:${FILES})`);
    expect(JSON.stringify(graph)).toContain("filesystem:user:/web/index.html");
    expect(JSON.stringify(graph)).not.toContain("filesystem:user:/opt");
  });

  test("by a search and an export", async () => {
    const found = await search.search(vic, `${FILES} | fullname=*`);
    const answered: Row[] = [];
    for await (const page of found.rows) answered.push(...page);
    expect(answered.map(({ fullname }) => fullname).sort()).toEqual(OPEN);
    let script = "";
    for await (const piece of await exports.script(vic, { class: FILES })) script += piece;
    expect(script).toContain("/home/vic/v");
    expect(script).not.toMatch(words);
  });

  test("to be tagged, and of changes that are told", async () => {
    const writer = { ...vic, grants: ["*:read", "*:write"], data: [{ class: "/", access: "write" }] as const };
    expect(await query.rows(writer, `update ${FILES} tags = ['mine'] where name in ('k', 'v')`)).toEqual([
      { count: 1 },
    ]);
    const tagged = `select name from ${FILES} where tags = 'mine'`;
    expect(await query.rows(testPrincipal(), tagged)).toEqual([{ name: "v" }]);
    const filter = await controller.objects.visible.of(vic, FILES);
    const told = (fullname: string) =>
      filter.sees({ id: `filesystem:user:${fullname}`, values: { fullname }, vtimeMs: 0, ctimeMs: 0 });
    expect([CLOSED, "/opt", "/home/ann/a", "/web/new"].map(told)).toEqual([false, false, false, true]);
  });

  test("as administrators find all of them, also those of the system's space, and insert none", async () => {
    const insert = `insert into ${FILES} space='user', fullname='/web/of/the/system'`;
    await expect(query.rows(testPrincipal(), insert)).rejects.toMatchObject({ code: "denied" });
    const ofSystem = await query.rows(testPrincipal(), `select name from ${FILES} where name = 'system'`);
    expect(ofSystem).toEqual([{ name: "system" }]);
    const all = await query.rows(testPrincipal(), `select count(*) as n from ${FILES} where name = 'k'`);
    expect(all).toEqual([{ n: 1 }]);
  });
});
