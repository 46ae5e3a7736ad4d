import { expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { MemoryObjects } from "../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { SearchService, searchRoutes } from "./index.ts";

test("a search comes as form, JSON, plain body or query; rows stream into the envelope, meta only when asked for", async () => {
  const objects = new MemoryObjects({ nowMs: () => 0 });
  await objects.createClass(testPrincipal(), {
    path: "/matrix/box",
    columns: [{ name: "host", type: "varchar" }],
    keys: ["host"],
    options: { autosearch: true },
  });
  await objects.unrestricted.insert(testPrincipal(), "/matrix/box", [{ host: "a b" }, { host: "c" }]);
  const endpoints = searchRoutes({ search: new SearchService({ objects, runtime: testRuntime(realClock) }) });
  expect(endpoints.map(({ method, path, permission }) => `${method} ${path} ${permission}`)).toEqual([
    "GET /mxobject/search objects:read",
    "POST /mxobject/search objects:read",
  ]);
  await using http = await openTestHttp({ endpoints: [...endpoints] });
  const session = await http.signIn("admin");
  const url = "/mxobject/search";
  const condition = "#/matrix/box: | host=a b | print host, class";
  const encoded = encodeURIComponent(condition);
  const message = [{ host: "a b", class: "/matrix/box" }];
  const form = "application/x-www-form-urlencoded";
  const post = (payload: string, type: string) =>
    http.call(session, { method: "POST", url, payload, headers: { "content-type": type } });
  expect(await post(`cond=${encoded}&meta=true`, form)).toMatchObject({
    status: "ok",
    message,
    meta: { type: "select", rootclass: "/matrix/box" },
  });
  expect(await post(`cond=${encoded}`, form)).toEqual({ status: "ok", message });
  expect(await post(JSON.stringify({ cond: condition, meta: true }), "application/json")).toMatchObject({
    status: "ok",
    message,
    meta: { columns: {} },
  });
  for (const type of ["text/plain", form, "application/json;charset=utf-8"])
    expect(await post(condition, type), type).toEqual({ status: "ok", message });
  expect(await http.call(session, { method: "GET", url: `${url}?cond=${encoded}&meta=true` })).toMatchObject({
    message,
    meta: { type: "select" },
  });
  expect(await post(`debug>${condition}`, "text/plain")).toMatchObject({
    message,
    meta: { plan: expect.any(Array) as unknown },
  });
  expect(await post("c", "text/plain")).toMatchObject({ status: "ok", message: [{ id: "box:c" }] });
  expect(await post("a | top", "text/plain")).toMatchObject({ status: "error", code: "syntax" });
  expect(await post("  ", "text/plain")).toMatchObject({ status: "error", code: "invalid" });
  const viewer = await http.signIn("viewer");
  const refused = await http.call(viewer, {
    method: "POST",
    url,
    payload: "#/matrix/box: | delete",
    headers: { "content-type": "text/plain" },
  });
  expect(refused).toMatchObject({ status: "error", code: "denied" });
});
