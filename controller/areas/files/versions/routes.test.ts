import { afterAll, beforeAll, expect, test } from "vitest";
import { fileController, type FileController } from "../../../../test/helpers/areas/files.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import type { Stores } from "../../../store/engine.ts";
import { fileRoutes } from "../routes.ts";

let http: TestHttp;
let controller: FileController;
let admin: string;
let viewer: string;

beforeAll(async () => {
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  controller = fileController(stores, { everyone: (tenant) => http.groups.rightsOfEveryone(tenant) });
  http = await openTestHttp({ endpoints: fileRoutes(controller.files, controller.search) });
  [admin, viewer] = [await http.signIn("admin"), await http.signIn("viewer")];
});
afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await http[Symbol.asyncDispose]();
});

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const form = (payload: string) => ({ payload, headers: FORM });
const put = (path: string, data: string, query = "") =>
  http.call(admin, { method: "PUT", url: `/fs${path}${query}`, ...form(`data=${encodeURIComponent(data)}`) });
const get = (url: string, as = admin) => http.call(as, { url });
const raw = (url: string, headers = {}) => http.app.inject({ url: `${url}?sessionid=${admin}`, headers });

test("push and pull answer a bare number; issys and version are taken from query and body", async () => {
  await put("/web/a.js", "1");
  await put("/web/a.js", "system", "?issys=true");
  const push = (query: string, body: string) =>
    http.call(admin, { method: "POST", url: `/fs/push/web${query}`, ...form(body) });
  const pull = (query: string, body: string) =>
    http.call(admin, { method: "POST", url: `/fs/pull/web${query}`, ...form(body) });
  expect(await push("", "version=1")).toEqual({ status: "ok", message: 1 });
  expect(await push("", "version=1&issys=false")).toEqual({ status: "ok", message: 0 });
  await put("/web/a.js", "2");
  expect(await push("?version=2", "")).toEqual({ status: "ok", message: 1 });
  expect(await pull("?issys=false", "version=1")).toEqual({ status: "ok", message: 1 });
  expect((await get("/fs/web/a.js?type=file")).message).toBe("1");
  expect(await pull("?issys=true", "version=1")).toMatchObject({ code: "not_found" });
  expect(await push("", "version=1&issys=true")).toEqual({ status: "ok", message: 1 });
  expect(await push("", "")).toMatchObject({ code: "invalid" });
  expect(await push("", "version=a/b")).toMatchObject({ code: "invalid" });
  expect(await pull("", "version=3")).toMatchObject({ code: "not_found" });
});

test("versions are listed page by page and deleted", async () => {
  const list = (query = "") => get(`/files/versions/web${query}`);
  const [first, second] = (await list()).message as readonly Record<string, unknown>[];
  expect(first).toEqual({ name: "1", user: "admin", time: expect.any(Number), entries: 2, bytes: 1 });
  expect(second).toMatchObject({ name: "2" });
  expect(await list("?limit=1")).toMatchObject({ message: [{ name: "1" }], meta: { next: "1" } });
  expect(await list("?limit=1&after=1")).toMatchObject({ message: [{ name: "2" }] });
  const remove = (version: string) =>
    http.call(admin, { method: "DELETE", url: `/files/versions/web?version=${version}` });
  expect(await remove("1")).toEqual({ status: "ok", message: "" });
  expect(await remove("1")).toMatchObject({ code: "not_found" });
  expect(await http.call(admin, { method: "DELETE", url: "/files/versions/web" })).toMatchObject({ code: "invalid" });
  expect(await list()).toMatchObject({ message: [{ name: "2" }] });
  expect((await get("/fs/web/a.js?type=file")).message).toBe("1");
});

test("a user of few rights lists versions of open paths, and nothing else", async () => {
  const post = (url: string) => http.call(viewer, { method: "POST", url, ...form("version=2") });
  for (const verb of ["push", "pull", "tolocal"])
    expect(await post(`/fs/${verb}/web`)).toMatchObject({ code: "denied" });
  expect(await get("/files/versions/web", viewer)).toMatchObject({ message: [{ name: "2", entries: 2, bytes: 1 }] });
  await put("/closed/a", "a");
  expect(await http.call(admin, { method: "POST", url: "/fs/push/closed?version=2" })).toMatchObject({ message: 1 });
  expect(await get("/files/versions/closed", viewer)).toMatchObject({ code: "denied" });
  expect(await get("/files/versions/web?issys=true", viewer)).toMatchObject({ code: "denied" });
  expect(await http.call(viewer, { method: "DELETE", url: "/files/versions/web?version=2" })).toMatchObject({
    code: "denied",
  });
});

test("a snapshot is served like /static: type, sandbox, ETag and no cache", async () => {
  await put("/page/index.html", "<script>1</script>");
  const kept = await http.call(admin, { method: "POST", url: "/fs/tolocal/page?issys=false" });
  expect(kept).toEqual({ status: "ok", message: "" });
  const answer = await raw("/local/matrix/page/index.html");
  const served = await raw("/static/page/index.html");
  expect(answer.body).toBe("<script>1</script>");
  for (const name of ["content-type", "content-security-policy", "cache-control", "x-content-type-options"])
    expect(answer.headers[name], name).toBe(served.headers[name]);
  expect(answer.headers["content-security-policy"]).toContain("sandbox");
  const again = await raw("/local/matrix/page/index.html", { "if-none-match": answer.headers.etag });
  expect(again.statusCode).toBe(304);
  await put("/page/index.html", "other");
  expect((await raw("/local/matrix/page/index.html")).body).toBe("<script>1</script>");
  expect(JSON.parse((await raw("/local/other/page/index.html")).body)).toMatchObject({ code: "not_found" });
  expect(await http.call(admin, { method: "DELETE", url: "/local/matrix/page" })).toEqual({
    status: "ok",
    message: "",
  });
  expect(JSON.parse((await raw("/local/matrix/page/index.html")).body)).toMatchObject({ code: "not_found" });
});

test("other spellings of these verbs store no upload", async () => {
  const upload = '--B\r\nContent-Disposition: form-data; name="uploadfile"; filename="x"\r\n\r\nx\r\n--B--\r\n';
  const headers = { "content-type": "multipart/form-data; boundary=B" };
  for (const verb of ["push", "pull", "tolocal"])
    for (const url of [`/fs/${verb}`, `/fs/${verb}/`, `/fs/./${verb}/a`, `/fs//${verb}/a`]) {
      const answer = await http.call(admin, { method: "POST", url, payload: upload, headers });
      expect(answer, url).toMatchObject({ status: "error" });
      expect((await get(`/fs/${verb}?type=check`)).message).toBe(false);
    }
});
