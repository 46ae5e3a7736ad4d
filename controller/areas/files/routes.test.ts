import { createHash } from "node:crypto";
import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fileController, type FileController } from "../../../test/helpers/areas/files.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import type { Stores } from "../../store/engine.ts";
import { fileRoutes } from "./routes.ts";

let http: TestHttp;
let controller: FileController;
let admin: string;
let viewer: string;
let neighbour: string;

beforeAll(async () => {
  // The engine starts together with the HTTP side, which needs the routes, so it is looked up at the first call.
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  controller = fileController(stores, { everyone: (tenant) => http.groups.rightsOfEveryone(tenant) });
  http = await openTestHttp({ endpoints: fileRoutes(controller.files, controller.search) });
  [admin, viewer, neighbour] = [
    await http.signIn("admin"),
    await http.signIn("viewer"),
    await http.signIn("admin", "second"),
  ];
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const OK = { status: "ok", message: "" };
type Part = readonly [name: string, value: string, filename?: string];

function multipart(...parts: readonly Part[]): Pick<InjectOptions, "payload" | "headers"> {
  const texts = parts.map(([name, value, filename]) => {
    const file = filename === undefined ? "" : `; filename="${filename}"`;
    return `--B\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
  });
  return { payload: `${texts.join("")}--B--\r\n`, headers: { "content-type": "multipart/form-data; boundary=B" } };
}

const send = (method: "PUT" | "POST", url: string, ...parts: readonly Part[]) =>
  http.call(admin, { method, url, ...multipart(...parts) });
const get = async (url: string, as = admin) => (await http.call(as, { url })).message;
const raw = (url: string, { as = admin, headers = {} } = {}) =>
  http.app.inject({ url: `${url}${url.includes("?") ? "&" : "?"}sessionid=${as}`, headers });

test("a file is put in the form of the portal, and read in every form", async () => {
  const put = await send(
    "PUT",
    "/fs/web/a%20b.js?issys=",
    ["data", "let x = 1;"],
    ["type", "js"],
    ["attr", '{"title":"T"}'],
    ["index", "true"],
  );
  expect(put).toEqual(OK);
  expect(await get("/fs/web/a%20b.js?type=file")).toBe("let x = 1;");
  expect(await get("/fs/web/a%20b.js?type=check")).toBe(true);
  expect(await get("/fs/web/none?type=check")).toBe(false);
  expect(await get("/fs/web/a%20b.js?type=attr")).toBe('{"title":"T"}');
  expect((await raw("/fs/web/a%20b.js?type=open")).body).toBe("let x = 1;");
  expect((await raw("/fs/web/a%20b.js?type=download")).headers["content-disposition"]).toContain('filename="a b.js"');
});

test("data that is missing or the word null makes a folder or keeps the file", async () => {
  expect(
    await send("PUT", "/fs/made/below", ["data", "null"], ["type", "dir"], ["attr", ""], ["index", "true"]),
  ).toEqual(OK);
  expect(await send("PUT", "/fs/made/other?type=dir", ["attr", '""'])).toEqual(OK);
  expect(await send("PUT", "/fs/made/x.md", ["data", "text"])).toEqual(OK);
  expect(await send("PUT", "/fs/made/x.md", ["data", "null"], ["type", "md"], ["attr", '{"rate":"5"}'])).toEqual(OK);
  expect(await get("/fs/made/x.md?type=file")).toBe("text");
  const listed = (await get("/fs/made?type=dir")) as readonly Record<string, unknown>[];
  expect(listed.map(({ name, ftype, isdir }) => [name, ftype, isdir]).sort()).toEqual([
    ["below", "dir", true],
    ["other", "dir", true],
    ["x.md", "md", false],
  ]);
});

test("a listing has the members that clients read", async () => {
  await send("PUT", "/fs/members/x.json", ["data", "{}"], ["attr", '{"icon":"i"}'], ["tags", "a"], ["tags", "b/c"]);
  expect(await get("/fs/members/?type=dir")).toEqual([
    {
      id: "filesystem:user:/members/x.json",
      class: "/matrix/filesystem",
      name: "x.json",
      parent: "/members",
      fullname: "/members/x.json",
      ftype: "json",
      isdir: false,
      attr: '{"icon":"i"}',
      size: 2,
      ctime: expect.any(Number),
      mtime: expect.any(Number),
      vtime: expect.any(Number),
      owner: "admin",
      username: "admin",
      status: "",
      tags: ["a", "b/c"],
      ispublic: false,
      revision: expect.any(String),
      digest: createHash("sha256").update("{}").digest("hex"),
    },
  ]);
  expect(((await get("/fs/?type=dir")) as readonly { fullname: string }[]).map(({ fullname }) => fullname)).toContain(
    "/members",
  );
  expect(await send("PUT", "/fs/members/x.json?type=tag", ["tags", "z"])).toEqual(OK);
  expect(await get("/fs/members/x.json?type=tag")).toEqual(["z"]);
  expect(await send("PUT", "/fs/members/x.json?type=attr", ["attr", "{}"])).toEqual(OK);
  expect(await get("/fs/members/x.json?type=attr")).toBe("{}");
});

test("several files are uploaded into a folder, those of a chosen folder with their paths", async () => {
  const parts: readonly Part[] = [
    ["index", "true"],
    ["uploadfile", "one", "1.txt"],
    ["uploadfile", "two", "sub/2.txt"],
  ];
  expect(await send("POST", "/fs/up?issys=false", ...parts)).toEqual(OK);
  expect(await get("/fs/up/1.txt?type=file")).toBe("one");
  expect(await get("/fs/up/sub/2.txt?type=file")).toBe("two");
  expect(await send("POST", "/fs/", ["uploadfile", "root", "root.txt"])).toEqual(OK);
  expect(await get("/fs/root.txt?type=file")).toBe("root");
  for (const filename of ["../../out.txt", "..\\\\out.txt", "C:/out.txt"])
    expect(await send("POST", "/fs/up", ["uploadfile", "x", filename])).toMatchObject({ code: "invalid" });
  expect(await send("POST", "/fs/up")).toMatchObject({ code: "invalid" });
});

test("the system's space is apart", async () => {
  await send("PUT", "/fs/apart.txt?issys=true", ["data", "system"]);
  expect(await get("/fs/apart.txt?type=check")).toBe(false);
  expect(await get("/fs/apart.txt?type=file&issys=true")).toBe("system");
});

test("a page of the system's space is shown without naming it, to a user of few rights as well", async () => {
  await send("PUT", "/fs/web/page.html?issys=true", ["data", "system"]);
  expect((await raw("/static/web/page.html", { as: viewer })).body).toBe("system");
  expect(await send("PUT", "/fs/web/page.html", ["data", "user"])).toEqual(OK);
  expect((await raw("/static/web/page.html", { as: viewer })).body).toBe("user");
  expect((await raw("/static/web/page.html?issys=true")).body).toBe("system");
  expect(await send("PUT", "/fs/web/page.html?issys=true", ["data", "system"])).toMatchObject({
    status: "ok",
    warnings: [expect.stringContaining("hides this one")],
  });
  for (const url of [
    "/static/web/page.html",
    "/fs/web/page.html?type=file",
    "/fs/web/page.html?type=check",
    "/fs?type=dir",
  ])
    expect(
      JSON.parse((await raw(`${url}${url.includes("?") ? "&" : "?"}issys=true`, { as: viewer })).body),
    ).toMatchObject({
      code: "denied",
    });
});

test("misspelt paths of verbs are no uploads, and are refused by name, whatever form they come in", async () => {
  const forms: readonly Omit<InjectOptions, "url">[] = [
    multipart(["uploadfile", "x", "x.zip"], ["version", "1"]),
    { payload: "version=1&srcpath=/a", headers: { "content-type": "application/x-www-form-urlencoded" } },
    { payload: '{"responseType":"arraybuffer"}', headers: { "content-type": "application/json" } },
    { headers: { "content-type": "application/zip" } },
    {},
  ];
  for (const verb of ["push", "/push/a", "/pull/a", "/tolocal/a", "/index/a", "export/a", "/import", "/import/a"])
    for (const form of forms)
      expect(await http.call(admin, { method: "POST", url: `/fs/${verb}?issys=true`, ...form }), verb).toMatchObject({
        status: "error",
        code: "invalid",
        message: expect.stringContaining(`POST /fs/${/[a-z]+/.exec(verb)?.[0] ?? ""} takes`),
      });
  for (const verb of ["push", "search"]) expect(await get(`/fs/${verb}?type=check`)).toBe(false);
});

test("files below the name of such a verb are written by PUT and read by GET", async () => {
  for (const verb of ["push", "export", "search"]) {
    expect(await send("PUT", `/fs/${verb}/x.txt`, ["data", verb])).toEqual(OK);
    expect(await get(`/fs/${verb}/x.txt?type=file`)).toBe(verb);
    expect((await raw(`/fs/${verb}/x.txt`)).body).toBe(verb);
  }
});

test("files are renamed, copied, moved and removed, by form or multipart", async () => {
  await send("PUT", "/fs/verbs/a.txt", ["data", "a"]);
  const form = (verb: string, srcpath: string, dstpath: string) =>
    http.call(admin, {
      method: "POST",
      url: `/fs/${verb}?issys=false`,
      payload: new URLSearchParams({ srcpath, dstpath }).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded" },
    });
  expect(await form("rename", "//verbs/a.txt", "/verbs/b.txt")).toEqual(OK);
  expect(await form("copy", "/verbs/b.txt", "/verbs/copies")).toEqual(OK);
  expect(await send("POST", "/fs/move", ["srcpath", "/verbs/copies"], ["dstpath", "/verbs/moved"])).toEqual(OK);
  expect(await get("/fs/verbs/moved/copies/b.txt?type=file")).toBe("a");
  expect(
    await http.call(admin, {
      method: "DELETE",
      url: "/fs/verbs/moved",
      headers: { "content-type": "application/text" },
    }),
  ).toEqual(OK);
  expect(await get("/fs/verbs/moved?type=check")).toBe(false);
  expect(await get("/fs/verbs/b.txt?type=file")).toBe("a");
});

test("bytes come with their type and version, and stored pages run without the session's rights", async () => {
  await send("PUT", "/fs/app/index.html", ["data", "<script>1</script>"]);
  await send("PUT", "/fs/app/x.unknown", ["data", "x"]);
  for (const url of ["/static/app/index.html", "/fs/app/index.html?type=open"]) {
    const page = await raw(url);
    expect(page.headers).toMatchObject({
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": expect.stringMatching(/^sandbox(?!.*allow-same-origin)/),
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "private, no-cache",
    });
    const again = await raw(url, { headers: { "if-none-match": String(page.headers["etag"]) } });
    expect([again.statusCode, again.body]).toEqual([304, ""]);
    expect(again.headers["content-security-policy"]).toBe(page.headers["content-security-policy"]);
  }
  expect((await raw("/static/app/x.unknown")).headers["content-type"]).toBe("application/octet-stream");
  const before = (await raw("/static/app/index.html")).headers["etag"];
  await send("PUT", "/fs/app/index.html", ["data", "changed"]);
  const changed = await raw("/static/app/index.html", { headers: { "if-none-match": String(before) } });
  expect([changed.statusCode, changed.body]).toEqual([200, "changed"]);
  expect(JSON.parse((await raw("/static/app")).body)).toMatchObject({ code: "invalid" });
  expect(JSON.parse((await raw("/static/app/none.js")).body)).toMatchObject({ code: "not_found" });
});

test("readers change nothing, neighbours and strangers see nothing", async () => {
  await send("PUT", "/fs/web/mine.txt", ["data", "mine"]);
  expect(await http.call(viewer, { method: "DELETE", url: "/fs/web/mine.txt" })).toMatchObject({ code: "denied" });
  expect(
    await http.call(viewer, { method: "PUT", url: "/fs/web/mine.txt", ...multipart(["data", "x"]) }),
  ).toMatchObject({
    code: "denied",
  });
  expect(await get("/fs/web/mine.txt?type=file", viewer)).toBe("mine");
  expect(await get("/fs/web/mine.txt?type=check", neighbour)).toBe(false);
  expect(JSON.parse((await raw("/static/web/mine.txt", { as: neighbour })).body)).toMatchObject({ code: "not_found" });
  expect(JSON.parse((await raw("/static/web/mine.txt", { as: "none" })).body)).toMatchObject({ status: "signin" });
});

test("a type that is none, and a path that leaves the space, are refused", async () => {
  expect(await http.call(admin, { url: "/fs/x?type=other" })).toMatchObject({ code: "invalid" });
  for (const path of ["a%2f..%2f..%2fx", "a%5cb", "a%00b"])
    for (const url of [`/fs/${path}?type=open`, `/static/${path}`])
      expect(JSON.parse((await raw(url)).body)).toMatchObject({ code: "invalid" });
});
