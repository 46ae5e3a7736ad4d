import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { appcontextRoutes } from "./routes.ts";
import { AppcontextService } from "./service.ts";

let http: TestHttp;
let admin: string;

beforeAll(async () => {
  // The HTTP side opens the engine but needs the routes first, so the engine is looked up at the first call.
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  const appcontext = new AppcontextService({ stores, runtime: testRuntime(realClock) });
  http = await openTestHttp({ endpoints: appcontextRoutes(appcontext) });
  admin = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

const call = (method: "GET" | "POST" | "PUT" | "DELETE", path: string, payload?: string | object, type?: string) =>
  http.call(admin, {
    method,
    url: `/appcontext/${path}`,
    ...(payload !== undefined && { payload }),
    ...(type !== undefined && { headers: { "content-type": type } }),
  });

const OK = { status: "ok", message: "" };

test.each([
  "text/plain;charset=UTF-8",
  "application/json;charset=utf-8",
  "json",
  "application/x-www-form-urlencoded",
  "application/octet-stream",
])("a variable is the body as it came, sent as %s", async (type) => {
  // Members named like parameters are part of the text.
  for (const text of [' {"key":"other", "ttl":"x","sessionid":1}', "[1, 2]", "ttl=1&key=b", "a\tb\r\n", "{broken"]) {
    expect(await call("POST", "wire", text, type)).toEqual(OK);
    expect(await call("GET", "wire")).toEqual({ status: "ok", message: text });
  }
});

test("a variable has a ttl, is removed, and may be empty", async () => {
  expect(await call("POST", "k%2F%20%C3%A9?ttl=60", "text", "text/plain")).toEqual(OK);
  expect(await call("GET", "k%2F%20%C3%A9")).toEqual({ status: "ok", message: "text" });
  expect(await call("POST", "k?ttl=-5", "text", "text/plain")).toMatchObject({ status: "error", code: "invalid" });
  expect(await call("POST", "k?ttl=soon", "text", "text/plain")).toMatchObject({ status: "error", code: "invalid" });
  expect(await call("POST", "k?ttl=undefined", "", "text/plain")).toEqual(OK);
  expect(await call("GET", "k")).toEqual({ status: "ok", message: "" });
  expect(await call("DELETE", "k")).toEqual(OK);
  expect(await call("DELETE", "k")).toEqual(OK);
  expect(await call("GET", "k")).toMatchObject({ status: "error", code: "not_found" });
  expect(await call("POST", "collection", "a key like any other", "text/plain")).toEqual(OK);
  expect(await call("GET", "collection")).toEqual({ status: "ok", message: "a key like any other" });
});

test("items are made, read, replaced and removed one by one", async () => {
  const { message: id } = await call("POST", "collection/wire", { name: "web", ttl: 5 });
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  const item = `collection/wire/${String(id)}`;
  expect(await call("GET", item)).toEqual({ status: "ok", message: { id, name: "web", ttl: 5 } });
  expect(await call("PUT", `${item}?ttl=600`, '{"name":"db","id":"x"}', "text/plain;charset=UTF-8")).toEqual({
    ...OK,
    warnings: [`The member id of an item is its id in the collection, ${String(id)}.`],
  });
  expect(await call("GET", item)).toEqual({ status: "ok", message: { id, name: "db" } });
  expect(await call("PUT", "collection/wire/mine", {})).toMatchObject({ status: "error", code: "not_found" });
  expect(await call("POST", "collection/wire/mine", { n: 1 })).toEqual(OK);
  expect(await call("POST", "collection/wire/mine", { n: 2 })).toEqual(OK);
  expect(await call("GET", "collection/wire")).toEqual({
    status: "ok",
    message: [
      { name: "db", id },
      { n: 2, id: "mine" },
    ],
  });
  expect(await call("DELETE", item)).toEqual(OK);
  expect(await call("DELETE", item)).toEqual(OK);
  expect(await call("GET", item)).toMatchObject({ status: "error", code: "not_found" });
  expect(await call("DELETE", "collection/wire")).toEqual(OK);
  expect(await call("GET", "collection/wire")).toEqual({ status: "ok", message: [] });
});

test("a list is narrowed by where, and is one item by type", async () => {
  for (let size = 1; size <= 9; size++) await call("POST", "collection/sizes", { size });
  const where = encodeURIComponent("size > 3 && size % 2 = 0");
  const sizesOf = async (query: string) => {
    const { message } = await call("GET", `collection/sizes?${query}`);
    return (Array.isArray(message) ? message : [message]).map((one: { size?: number }) => one.size);
  };
  expect(await sizesOf(`where=${where}`)).toEqual([4, 6, 8]);
  expect(await sizesOf(`where=${where}&type=first`)).toEqual([4]);
  expect(await sizesOf(`where=${where}&type=last`)).toEqual([8]);
  expect(await sizesOf("type=last&where=")).toEqual([9]);
  expect(await sizesOf("type=")).toHaveLength(9);
  expect(await call("GET", "collection/sizes?type=last&where=size%3E9")).toEqual(OK);
  expect(await call("GET", "collection/sizes?type=middle")).toMatchObject({ code: "invalid" });
  expect(await call("GET", "collection/sizes?where=size%20%3D")).toMatchObject({
    code: "syntax",
    message: "[Parser] at line 1 column 7: expected a field or a value but found the end.",
  });
  const long = await call("GET", `collection/sizes?where=${"(".repeat(1_000_000)}`);
  expect(long).toMatchObject({ status: "error", code: "too_large" });
});

test("a long list comes whole", async () => {
  const text = "x".repeat(500);
  for (let n = 0; n < 300; n++) await call("POST", "collection/long", { n, text });
  const { message } = await call("GET", "collection/long");
  expect((message as readonly { n: number }[]).map(({ n }) => n)).toEqual(Array.from({ length: 300 }, (_, n) => n));
});

test("a body that is missing or no JSON object is refused", async () => {
  expect(await call("POST", "collection/refused", "a=1", "application/x-www-form-urlencoded")).toMatchObject({
    code: "syntax",
  });
  expect(await call("POST", "collection/refused", "[]")).toMatchObject({ code: "invalid" });
  expect(await call("POST", "collection/refused/x")).toMatchObject({ code: "invalid" });
  expect(await call("POST", "refused")).toMatchObject({ code: "invalid" });
  expect(await call("POST", "refused", "x".repeat(2_000_000), "text/plain")).toMatchObject({ code: "too_large" });
  expect(await call("GET", "collection/refused")).toEqual({ status: "ok", message: [] });
});

test("a viewer reads and changes nothing", async () => {
  await call("POST", "seen", "text", "text/plain");
  const viewer = await http.signIn("viewer");
  expect(await http.call(viewer, { url: "/appcontext/seen" })).toEqual({ status: "ok", message: "text" });
  expect(await http.call(viewer, { url: "/appcontext/collection/seen" })).toEqual({ status: "ok", message: [] });
  for (const [method, path] of [
    ["POST", "seen"],
    ["DELETE", "seen"],
    ["POST", "collection/seen"],
    ["DELETE", "collection/seen"],
    ["POST", "collection/seen/x"],
    ["PUT", "collection/seen/x"],
    ["DELETE", "collection/seen/x"],
  ] as const)
    expect(await http.call(viewer, { method, url: `/appcontext/${path}` })).toMatchObject({ code: "denied" });
});
