import { afterAll, beforeAll, expect, test } from "vitest";
import { TABLE_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { tableRoutes } from "./routes.ts";
import { TableService } from "./service.ts";

let http: TestHttp;
let admin: string;

beforeAll(async () => {
  // The engine starts together with the HTTP side, which needs the routes, so it is looked up at the first call.
  const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };
  const tables = new TableService({ stores, runtime: testRuntime(realClock) });
  http = await openTestHttp({ endpoints: tableRoutes(tables) });
  admin = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

const call = (method: "GET" | "POST" | "PUT" | "DELETE", path: string, payload?: string | object, type?: string) =>
  http.call(admin, {
    method,
    url: `/extend${path}`,
    ...(payload !== undefined && { payload }),
    ...(type !== undefined && { headers: { "content-type": type } }),
  });

const ok = (message: unknown) => ({ status: "ok", message });

test("a table is made, changed, read and removed; every success answers rows", async () => {
  expect(await call("GET", "")).toEqual(ok([]));
  const rows = [{ key: "10.0.0.1", val: "web", nested: { a: [1, null] } }, { val: null }];
  expect(await call("POST", "/hosts", rows)).toEqual(ok(rows));
  expect(await call("GET", "")).toEqual(ok(["hosts"]));
  expect(await call("GET", "/hosts")).toEqual(ok(rows));
  const after = [{ key: "10.0.0.1", val: "db" }, { val: null }, { key: "10.0.0.2" }];
  expect(await call("PUT", "/hosts", [{ key: "10.0.0.1", val: "db" }, { key: "10.0.0.2" }])).toEqual(ok(after));
  expect(await call("GET", "/hosts")).toEqual(ok(after));
  expect(await call("PUT", "/made%2Fby%20put", [])).toEqual(ok([]));
  expect(await call("GET", "")).toEqual(ok(["hosts", "made/by put"]));
  expect(await call("DELETE", "/hosts")).toEqual(ok([]));
  expect(await call("GET", "/hosts")).toMatchObject({ status: "error", code: "not_found" });
  expect(await call("DELETE", "/hosts")).toMatchObject({ status: "error", code: "not_found" });
});

test.each(["text/plain;charset=UTF-8", "application/json;charset=utf-8", "json", "application/x-www-form-urlencoded"])(
  "rows are JSON, sent as %s",
  async (type) => {
    expect(await call("POST", "/types", ' [{"key":1,"__proto__":{"x":1},"name":"n"}]', type)).toEqual(
      ok([{ key: 1, name: "n" }]),
    );
    expect(await call("GET", "/types")).toEqual(ok([{ key: 1, name: "n" }]));
  },
);

test("what is no list of objects is refused, and changes nothing", async () => {
  const rows = [{ key: "a" }];
  await call("POST", "/refused", rows);
  for (const body of ['{"key":"a"}', "[1]", "[null]", "[[]]", "[{]", "key=a", '[{"key":{}}]', ""]) {
    expect(await call("POST", "/refused", body, "application/json"), body).toMatchObject({ status: "error" });
    expect(await call("PUT", "/refused", body, "text/plain"), body).toMatchObject({ status: "error" });
  }
  const large = `[{"key":"${"x".repeat(TABLE_BODY_MAX_BYTES)}"}]`;
  expect(await call("POST", "/refused", large, "application/json")).toMatchObject({ code: "too_large" });
  const deep = `[{"key":"a","x":${"[".repeat(1_000)}${"]".repeat(1_000)}}]`;
  expect(await call("POST", "/refused", deep, "application/json")).toMatchObject({ status: "error" });
  expect(await call("GET", "/refused")).toEqual(ok(rows));
});

test("a viewer reads and changes nothing", async () => {
  await call("POST", "/seen", [{ key: "a" }]);
  const viewer = await http.signIn("viewer");
  expect(await http.call(viewer, { url: "/extend/seen" })).toEqual(ok([{ key: "a" }]));
  for (const method of ["POST", "PUT", "DELETE"] as const)
    expect(await http.call(viewer, { method, url: "/extend/seen", payload: [] })).toMatchObject({ code: "denied" });
});
