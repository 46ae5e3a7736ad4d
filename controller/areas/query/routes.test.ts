import { expect, test } from "vitest";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { MemoryObjects } from "../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService, queryRoutes } from "./index.ts";

const objects = new MemoryObjects({ nowMs: () => 0 });
const client = {
  remote: "",
  session: undefined,
  maySignIn: true,
  ticket: undefined,
  browser: false,
  holds: () => false,
  lastEventId: undefined,
};
const endpoints = queryRoutes({ query: new QueryService({ objects, runtime: { clock: realClock } }) });

async function call(
  method: "GET" | "POST",
  input: object,
  options: { readonly text?: string; readonly principal?: Principal } = {},
) {
  const endpoint = endpoints.find((one) => one.method === method);
  const { text, principal = testPrincipal() } = options;
  const present = () => Promise.resolve(principal);
  const { signal } = new AbortController();
  const answer = await endpoint?.handler({ principal, input, files: [], text, client, signal, present });
  if (!answer || !("rows" in answer)) throw new Error("not an answer of rows");
  const rows: unknown[] = [];
  for await (const page of answer.rows) rows.push(...page);
  return { rows, meta: answer.meta, ...(answer.warnings && { warnings: answer.warnings }) };
}

test("one path for both methods, open to readers: changes are refused by what the principal may write", async () => {
  expect(endpoints.map(({ method, path, permission }) => `${method} ${path} ${permission}`)).toEqual([
    "GET /mxobject/mql objects:read",
    "POST /mxobject/mql objects:read",
  ]);
  const refused = call("POST", { mql: "create class /matrix/x (a int)" }, { principal: testPrincipal("viewer") });
  await expect(refused).rejects.toMatchObject({ code: "denied" });
});

test("the statement comes as member, as body, or with values; meta only when asked for", async () => {
  await call("POST", { mql: "create class if not exists /matrix/box (host varchar, size int, keys(host))" });
  expect(
    await call("POST", {
      mql: "insert into /matrix/box (host, size) values (?, ?)",
      values: [
        ["a", 1],
        ["b", 2],
      ],
    }),
  ).toEqual({
    rows: [{ count: 2, ids: ["box:a", "box:b"] }],
    meta: undefined,
  });
  const flat = await call("POST", { mql: "select size from /matrix/box where host = ?", values: ["b"] });
  expect(flat.rows).toEqual([{ size: 2 }]);
  const raw = await call("POST", { meta: true }, { text: "select host from /matrix/box order by host" });
  expect(raw).toMatchObject({
    rows: [{ host: "a" }, { host: "b" }],
    meta: { type: "select", rootclass: "/matrix/box" },
  });
  expect(JSON.parse(JSON.stringify(raw.meta))).toMatchObject({ columns: { "/matrix/box": [{ name: "host" }] } });
  expect((await call("GET", { mql: "select edge type", meta: true })).meta).toMatchObject({ type: "select edge" });
});

test("a cursor is answered in meta, and its page without asking for meta", async () => {
  const first = await call("POST", { mql: "select host from /matrix/box order by host limit 1", cursor: "" });
  expect(first.rows).toEqual([{ host: "a" }]);
  const { cursor } = JSON.parse(JSON.stringify(first.meta)) as { readonly cursor: string };
  const next = await call("GET", { mql: "select host from /matrix/box order by host limit 1", cursor });
  expect(next.rows).toEqual([{ host: "b" }]);
});

test("no statement at all is an error", async () => {
  await expect(call("POST", {}, { text: "  " })).rejects.toMatchObject({ code: "invalid" });
});

test("over HTTP: form, JSON, raw text under any content type, and query all reach it; rows stream into the envelope", async () => {
  await using http = await openTestHttp({ endpoints: [...endpoints] });
  const session = await http.signIn("admin");
  const url = "/mxobject/mql";
  const text = "select host from /matrix/box where host = 'a'";
  const message = [{ host: "a" }];
  const form = "application/x-www-form-urlencoded";
  const post = (payload: string, type: string) =>
    http.call(session, { method: "POST", url, payload, headers: { "content-type": type } });
  expect(await post(`mql=${encodeURIComponent(text)}&meta=true`, form)).toMatchObject({
    status: "ok",
    message,
    meta: { type: "select" },
  });
  expect(
    await post(JSON.stringify({ mql: text.replace("'a'", "?"), values: [["a"]] }), "application/json"),
  ).toMatchObject({ status: "ok", message });
  for (const type of ["text/plain", "application/json;charset=utf-8", form])
    expect(await post(text, type), type).toMatchObject({ status: "ok", message });
  expect(
    await http.call(session, { method: "GET", url: `${url}?mql=${encodeURIComponent(text)}&meta=true` }),
  ).toMatchObject({ message, meta: { type: "select" } });
  expect(await post("select host form /x", "text/plain")).toMatchObject({ status: "error", code: "syntax" });
  const pageUrl = `${url}?mql=${encodeURIComponent("select host from /matrix/box order by host limit 1")}&cursor=`;
  const page = await http.call(session, { method: "GET", url: pageUrl });
  expect(page).toMatchObject({ message, meta: { type: "select", cursor: expect.any(String) as string } });
  const { cursor } = page.meta as { readonly cursor: string };
  expect(await http.call(session, { method: "GET", url: `${pageUrl}${cursor}` })).toMatchObject({
    message: [{ host: "b" }],
  });
  expect(await http.call(session, { method: "GET", url: `${pageUrl}nonsense` })).toMatchObject({
    status: "error",
    code: "invalid",
  });
});

test("over HTTP: a graph is the one row of its answer", async () => {
  await using http = await openTestHttp({ endpoints: [...endpoints] });
  const payload = `create edge type if not exists holds; create class if not exists /matrix/box (host varchar, size int, keys(host));
    insert into /matrix/box (host, holds) values ('from', ''), ('to', 'box:from'); match path a (a:"box:from") <-[:holds]- () return size`;
  const answer = await http.call(await http.signIn("admin"), {
    method: "POST",
    url: "/mxobject/mql?meta=true",
    payload,
    headers: { "content-type": "text/plain" },
  });
  const nodes = ["from", "to"].map((name) => ({ id: `box:${name}`, class: "/matrix/box", name, size: null }));
  const edges = [{ id: "box:to holds box:from", class: "holds", source: "box:to", target: "box:from" }];
  const paths = [{ a: "box:from" }];
  const graph = { nodes: expect.arrayContaining(nodes) as unknown, edges, paths, pathtags: ["a"] };
  expect(answer).toMatchObject({ status: "ok", message: [{ graph }], meta: { type: "path", rootclass: "" } });
});

test("what was done although it may be a mistake is told in warnings", async () => {
  await call("POST", {
    mql: "create edge type hangs; create class if not exists /matrix/hook (name varchar, keys(name))",
  });
  const { warnings } = await call("POST", { mql: "insert into /matrix/hook name='a', hangs='hook:b'" });
  expect(warnings).toEqual([expect.stringContaining("there is no hook:b")]);
});
