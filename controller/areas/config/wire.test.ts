import { afterAll, beforeAll, expect, test } from "vitest";
import { configWorld } from "../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { MASK } from "./rights.ts";

/** The request formats that existing clients send, and the answers they get. */

let engine: TestEngine;
let world: ReturnType<typeof configWorld>;
let http: TestHttp;
let admin: string;

beforeAll(async () => {
  engine = await openTestEngine();
  world = configWorld(engine);
  http = await openTestHttp({ endpoints: world.area.endpoints ?? [] });
  admin = await http.signIn("admin");
});
afterAll(async () => {
  await http[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

const FORM = { "content-type": "application/x-www-form-urlencoded; charset=UTF-8" };

function post(path: string, fields: Record<string, string>, session = admin) {
  return http.call(session, {
    method: "POST",
    url: path,
    headers: FORM,
    payload: new URLSearchParams(fields).toString(),
  });
}

const get = (key: string, session = admin) => http.call(session, { url: `/config/get?key=${encodeURIComponent(key)}` });

/** As a browser sends a FormData. */
async function postForm(path: string, form: FormData, session = admin) {
  const body = new Response(form);
  const headers = { "content-type": body.headers.get("content-type") ?? "" };
  return http.call(session, { method: "POST", url: path, headers, payload: Buffer.from(await body.arrayBuffer()) });
}

test("a read may ask for what was read before", async () => {
  await post("/config/set", { key: "/matrix/etc/cached", value: "1" });
  const url = "/config/get?key=/matrix/etc/cached&cached=true";
  expect(await http.call(admin, { url })).toEqual({
    status: "ok",
    message: { key: "/matrix/etc/cached", value: "1" },
  });
  expect(await http.call(admin, { url: `${url}x` })).toMatchObject({ status: "error", code: "invalid" });
});

test("set and get: a form with an empty ttl, with one, and without", async () => {
  expect(await post("/config/set", { key: "/matrix/etc/a", value: "x=1&y", ttl: "" })).toEqual({
    status: "ok",
    message: "",
  });
  expect(await get("/matrix/etc/a")).toEqual({ status: "ok", message: { key: "/matrix/etc/a", value: "x=1&y" } });
  expect(await post("/config/set", { key: "/matrix/etc/a", value: "", ttl: "600" })).toMatchObject({ status: "ok" });
  expect(await get("/matrix/etc/a")).toMatchObject({ message: { value: "", ttl: expect.any(Number) as number } });
  expect(await post("/config/set", { key: "/matrix/etc/a", value: "y", ttl: "undefined" })).toMatchObject({
    status: "ok",
  });
  expect(await get("/matrix/etc/a")).toEqual({ status: "ok", message: { key: "/matrix/etc/a", value: "y" } });
  expect(await post("/config/set", { key: "/matrix/etc/a", value: "y", ttl: "soon" })).toMatchObject({
    status: "error",
    message: "ttl must be integer.",
  });
});

test("set and del as multipart and as JSON", async () => {
  const form = new FormData();
  form.set("key", "/matrix/etc/multi");
  form.set("value", "a=1&b=二");
  form.set("ttl", "");
  expect(await postForm("/config/set", form)).toMatchObject({ status: "ok" });
  expect(await get("/matrix/etc/multi")).toMatchObject({ message: { value: "a=1&b=二" } });
  const gone = new FormData();
  gone.set("key", "/matrix/etc/multi");
  expect(await postForm("/config/del", gone)).toMatchObject({ status: "ok" });
  expect(await get("/matrix/etc/multi")).toMatchObject({ status: "error", code: "not_found" });
  const payload = { key: "/matrix/etc/json", value: '{"a":1}' };
  expect(await http.call(admin, { method: "POST", url: "/config/set", payload })).toMatchObject({ status: "ok" });
  expect(await get("/matrix/etc/json")).toMatchObject({ message: { value: '{"a":1}' } });
});

test("the tree of /, whose nodes lie in each other; del takes a directory", async () => {
  await post("/config/set", { key: "/matrix/tree/a/one", value: "1" });
  await post("/config/set", { key: "/matrix/tree/two", value: "2" });
  const { message } = (await get("/")) as { message: { nodes: { key: string; nodes: { key: string }[] }[] } };
  expect(message).toMatchObject({ key: "/", dir: true, nodes: [{ key: "/matrix", dir: true }] });
  const tree = message.nodes[0]?.nodes.find(({ key }) => key === "/matrix/tree");
  expect(tree).toEqual({
    key: "/matrix/tree",
    dir: true,
    nodes: [
      { key: "/matrix/tree/a", dir: true, nodes: [{ key: "/matrix/tree/a/one", value: "1" }] },
      { key: "/matrix/tree/two", value: "2" },
    ],
  });
  expect(await post("/config/del", { key: "/matrix/tree" })).toMatchObject({ status: "ok" });
  expect(await get("/matrix/tree")).toMatchObject({ code: "not_found" });
});

test("an export is the bare file, which a client reads, writes again and imports as uploadfile alone", async () => {
  await post("/config/set", { key: "/matrix/exp/a", value: "1" });
  await post("/config/set", { key: "/matrix/exp/s", value: "hunter2", secret: "true" });
  const url = `/config/export?key=/matrix/exp&sessionid=${admin}`;
  const response = await http.app.inject({ url });
  expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
  const parsed: unknown = response.json();
  expect(parsed).toEqual([
    { key: "/matrix/exp/a", value: "1" },
    { key: "/matrix/exp/s", value: MASK, secret: true },
  ]);
  await post("/config/del", { key: "/matrix/exp/a" });
  const form = new FormData();
  form.set("uploadfile", new File([JSON.stringify(parsed)], "exp.json", { type: "application/json" }));
  expect(await postForm("/config/import", form)).toMatchObject({ status: "ok", message: { created: 1, unchanged: 1 } });
  expect((await http.app.inject({ url })).body).toBe(response.body);
  expect(await postForm("/config/import", new FormData())).toMatchObject({ status: "error", code: "invalid" });
});

test("an import in the encoding that is named, or refused with the place of the byte that is no text", async () => {
  const file = Buffer.from("5b7b226b6579223a2278222c2276616c7565223a22b1e0227d5d", "hex");
  const form = new FormData();
  form.set("uploadfile", new File([file], "rel.json"));
  form.set("key", "/matrix/gbk");
  expect(await postForm("/config/import", form)).toMatchObject({
    code: "invalid",
    message: expect.stringContaining("The upload is no utf-8 text at byte 22: name its encoding") as string,
  });
  form.set("encoding", "klingon");
  expect(await postForm("/config/import", form)).toMatchObject({ code: "invalid" });
  form.set("encoding", "gbk");
  expect(await postForm("/config/import", form)).toMatchObject({ message: { created: 1 } });
  expect(await get("/matrix/gbk/x")).toMatchObject({ message: { value: "编" } });
});

test("a form in GBK writes what it says", async () => {
  const answer = await http.app.inject({
    method: "POST",
    url: `/config/set?sessionid=${admin}`,
    payload: "key=/matrix/gbk/form&value=%B1%E0%C2%EB",
    headers: { "content-type": "application/x-www-form-urlencoded; charset=gbk" },
  });
  expect(answer.json()).toMatchObject({ status: "ok" });
  expect(await get("/matrix/gbk/form")).toMatchObject({ message: { value: "编码" } });
});

test("an import with a key before or behind the file, and a plan of it", async () => {
  const file = new File(['[{"key":"x","value":"1"}]'], "rel.json");
  const form = new FormData();
  form.set("uploadfile", file);
  form.set("key", "/matrix/rel");
  form.set("plan", "true");
  expect(await postForm("/config/import", form)).toMatchObject({
    message: { created: 1, changes: [{ key: "/matrix/rel/x", action: "create" }] },
  });
  form.delete("plan");
  expect(await postForm("/config/import", form)).toMatchObject({ message: { created: 1 } });
  expect(await get("/matrix/rel/x")).toMatchObject({ message: { value: "1" } });
});

test("pages, versions, what changed between them, and back", async () => {
  for (const value of ["one", "two"]) await post("/config/set", { key: "/matrix/hist/a", value });
  await post("/config/set", { key: "/matrix/hist/b", value: "b" });
  const page = await http.call(admin, { url: "/config/list?key=/matrix/hist&limit=1" });
  expect(page).toMatchObject({ message: [{ key: "/matrix/hist/a", version: 2, author: "admin" }], meta: {} });
  const { next } = page.meta as { next: string };
  expect(await http.call(admin, { url: `/config/list?key=/matrix/hist&limit=5&after=${next}` })).toMatchObject({
    message: [{ key: "/matrix/hist/b" }],
    meta: {},
  });
  for (const url of [
    `/config/list?key=/matrix/hist&after=${next}&limit=0`,
    "/config/list?key=/matrix/hist&after=/matrix/x",
  ])
    expect(await http.call(admin, { url })).toMatchObject({ code: "invalid" });
  expect(await http.call(admin, { url: "/config/history?key=/matrix/hist/a" })).toMatchObject({
    message: [
      { version: 2, value: "two", author: "admin" },
      { version: 1, value: "one" },
    ],
  });
  expect(await http.call(admin, { url: "/config/diff?key=/matrix/hist/a&from=1&to=2" })).toMatchObject({
    message: { from: { version: 1 }, to: { version: 2 }, patch: expect.stringContaining("-one") as string },
  });
  expect(await post("/config/rollback", { key: "/matrix/hist/a", version: "1" })).toMatchObject({ status: "ok" });
  expect(await get("/matrix/hist/a")).toMatchObject({ message: { value: "one" } });
});

test("who may only read, who is not signed in, and pages of other sites change nothing", async () => {
  await post("/config/set", { key: "/matrix/safe", value: "kept" });
  const viewer = await http.signIn("viewer");
  const file = new FormData();
  file.set("uploadfile", new File(['[{"key":"/matrix/safe","value":"x"}]'], "f.json"));
  for (const path of ["/config/set", "/config/del", "/config/rollback"])
    expect(await post(path, { key: "/matrix/safe", value: "x", version: "1" }, viewer)).toMatchObject({
      code: "denied",
    });
  expect(await postForm("/config/import", file, viewer)).toMatchObject({ code: "denied" });
  expect(await get("/matrix/safe", "nobody")).toMatchObject({ status: "signin" });
  const cookie = { ...FORM, cookie: `matrixSession=${admin}`, "sec-fetch-site": "cross-site" };
  const payload = "key=/matrix/safe&value=x";
  const forged = await http.app.inject({ method: "POST", url: "/config/set", headers: cookie, payload });
  expect(forged.json()).toMatchObject({ status: "error", code: "denied" });
  const basic = { authorization: `Basic ${Buffer.from(`matrix.admin:${PASSWORD}`).toString("base64")}` };
  expect((await http.app.inject({ url: "/config/get?key=/matrix/safe", headers: basic })).json()).toEqual({
    status: "ok",
    message: { key: "/matrix/safe", value: "kept" },
  });
  const other = await http.signIn("admin", "second");
  expect(await get("/matrix/safe", other)).toMatchObject({ code: "not_found" });
});
