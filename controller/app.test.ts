import type { FastifyInstance } from "fastify";
import { describe, expect, test } from "vitest";
import type { LostTenant, Readiness } from "./store/engine.ts";
import { AppError } from "../common/errors.ts";
import { READY_KEPT_MS } from "../common/limits.ts";
import { PASSWORD } from "../test/helpers/http/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../test/helpers/time/runtime.ts";
import { buildHttp } from "./app.ts";
import { http, admin, viewer, useThings } from "../test/helpers/http/http-things.ts";

const basic = (login: string, password = PASSWORD): string =>
  `Basic ${Buffer.from(`${login}:${password}`).toString("base64")}`;

describe("the HTTP interface", () => {
  useThings();

  describe("who is let in", () => {
    test("nobody signed in: 200 and where to sign in", async () => {
      const response = await http.app.inject({ url: "/thing/a" });
      expect(response.statusCode).toBe(200);
      expect(response.json()).toEqual({ status: "signin", message: "/user/login" });
      expect((await http.app.inject({ url: "/thing/a?sessionid=wrong" })).json()).toMatchObject({ status: "signin" });
      expect(
        (
          await http.app.inject({
            url: "/thing/a",
            headers: { authorization: basic("matrix.admin", "wrong password") },
          })
        ).json(),
      ).toMatchObject({ status: "signin" });
    });

    test("by cookie, query, form field, multipart field, JSON member and Basic", async () => {
      const form = new FormData();
      form.set("sessionid", admin);
      form.set("name", "a");
      const ways = [
        { headers: { cookie: `other=1; matrixSession=${admin}` }, payload: { name: "a" } },
        { url: `/thing?sessionid=${admin}`, payload: { name: "a" } },
        { payload: `name=a&sessionid=${admin}`, headers: { "content-type": "application/x-www-form-urlencoded" } },
        { payload: form },
        { payload: { name: "a", sessionid: admin } },
        { headers: { authorization: basic("matrix.admin") }, payload: { name: "a" } },
      ];
      for (const way of ways) {
        const response = await http.app.inject({ method: "POST", url: "/thing", ...way });
        expect(response.json()).toEqual({ status: "ok", message: { name: "a", tenant: "matrix", user: "admin" } });
      }
    });

    test("a session belongs to its tenant, whatever else is sent", async () => {
      const other = await http.signIn("admin", "second");
      const answer = await http.call(other, {
        method: "POST",
        url: "/thing?company=matrix",
        payload: { name: "a", company: "matrix" },
      });
      expect(answer.message).toMatchObject({ tenant: "second" });
      await http.users.create(testPrincipal("administrator", "second"), {
        username: "only-here",
        password: PASSWORD,
        rights: { role: "viewer" },
      });
      const wrong = await http.app.inject({ url: "/thing/a", headers: { authorization: basic("matrix.only-here") } });
      expect(wrong.json()).toMatchObject({ status: "signin" });
    });

    test("a viewer reads, is refused on writes, and the refusal is on record", async () => {
      expect(await http.call(viewer, { url: "/thing/a" })).toEqual({ status: "ok", message: { name: "a" } });
      const before = http.trail.records.length;
      const refused = await http.call(viewer, { method: "POST", url: "/thing", payload: { name: "a" } });
      expect(refused).toMatchObject({
        status: "error",
        code: "denied",
        message: expect.stringContaining("objects:write"),
      });
      const [record, ...more] = http.trail.records.slice(before);
      expect(record).toMatchObject({
        tenant: "matrix",
        user: "viewer",
        permission: "objects:write",
        action: "POST /thing",
        outcome: "denied",
        code: "denied",
      });
      expect(more).toEqual([]);
    });

    test("a link on a page of another site changes nothing with the browser's cookie", async () => {
      const send = (site: string, options: object) =>
        http.app.inject({
          method: "POST",
          url: "/thing",
          payload: { name: "a" },
          ...options,
          headers: { "sec-fetch-site": site, cookie: `matrixSession=${admin}` },
        });
      expect((await send("cross-site", {})).json()).toMatchObject({ status: "error", code: "denied" });
      expect((await send("same-origin", {})).json()).toMatchObject({ status: "ok" });
      expect((await send("cross-site", { url: `/thing?sessionid=${admin}` })).json()).toMatchObject({ status: "ok" });
      expect((await send("cross-site", { method: "GET", url: "/thing/a", payload: undefined })).json()).toMatchObject({
        status: "ok",
      });
    });

    test("every change is on record with its outcome, and no read", async () => {
      const before = http.trail.records.length;
      await http.call(admin, { url: "/thing/a" });
      await http.call(admin, { method: "POST", url: "/thing", payload: { name: "a" } });
      await http.call(admin, { method: "POST", url: "/thing", payload: {} });
      const outcomes = http.trail.records.slice(before).map(({ outcome, code, action }) => ({ outcome, code, action }));
      expect(outcomes).toEqual([
        { outcome: "ok", code: "ok", action: "POST /thing" },
        { outcome: "failed", code: "invalid", action: "POST /thing" },
      ]);
      expect(await http.audit.verifyChain(testPrincipal())).toMatchObject({ problems: [] });
    });
  });

  describe("what goes wrong", () => {
    test("500 with the text twice and a code", async () => {
      const response = await http.app.inject({ url: `/fail/conflict?sessionid=${admin}` });
      expect(response.statusCode).toBe(500);
      expect(response.json()).toEqual({
        status: "error",
        message: "it is conflict",
        error: "it is conflict",
        code: "conflict",
      });
    });

    test("precise status and problem details only for who names the type", async () => {
      const headers = { accept: "application/problem+json", traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` };
      const response = await http.app.inject({ url: `/fail/conflict?sessionid=${admin}`, headers });
      expect(response.statusCode).toBe(409);
      expect(response.headers["content-type"]).toContain("application/problem+json");
      expect(response.json()).toMatchObject({
        type: "urn:odp:error:conflict",
        status: 409,
        detail: "it is conflict",
        code: "conflict",
        traceparent: expect.stringContaining("a".repeat(32)),
      });
      expect((await http.app.inject({ url: "/thing/a", headers })).statusCode).toBe(401);
      expect((await http.app.inject({ url: "/thing/a", headers: { accept: "*/*" } })).statusCode).toBe(200);
    });

    test("a bug of ours shows nothing but its trace", async () => {
      const response = await http.app.inject({ url: `/fail/bug?sessionid=${admin}` });
      expect(response.json()).toMatchObject({ status: "error", code: "internal" });
      expect(response.body).not.toContain("cellar");
      expect(response.body).toContain(String(response.headers.traceparent).split("-")[1]);
    });

    test("unknown routes, unreadable paths, unknown methods", async () => {
      expect((await http.app.inject({ url: "/nowhere" })).json()).toMatchObject({ status: "error", code: "not_found" });
      const unreadable = await http.app.inject({ url: "/thing/%zz?sessionid=a-session" });
      expect(unreadable.json()).toMatchObject({ status: "error", code: "invalid" });
      expect(unreadable.body).not.toContain("a-session");
    });

    test.each(["PATCH", "DELETE", "TRACE"] as const)(
      "the path of %s names the methods that it allows",
      async (method) => {
        const sent = { method, url: "/thing/a" };
        const allow = "GET, HEAD, OPTIONS";
        const plain = await http.app.inject(sent);
        expect([plain.statusCode, plain.headers.allow]).toEqual([405, allow]);
        expect(plain.json()).toMatchObject({
          status: "error",
          code: "method_not_allowed",
          message: `There is no ${method} /thing/a.`,
          details: { allow: allow.split(", ") },
        });
        const precise = await http.app.inject({ ...sent, headers: { accept: "application/problem+json" } });
        expect([precise.statusCode, precise.headers.allow]).toEqual([405, allow]);
        const probe = await http.app.inject({ method, url: "/healthz" });
        expect(probe.headers.allow).toBe(allow);
        expect((await http.app.inject({ method: "OPTIONS", url: "/healthz" })).statusCode).toBe(204);
        expect((await http.app.inject({ method, url: "/nowhere" })).headers).not.toHaveProperty("allow");
      },
    );

    test("a wrong field is named; a body over its limit is refused", async () => {
      expect(await http.call(admin, { url: "/rows?count=many" })).toMatchObject({
        code: "invalid",
        message: "count must be integer.",
      });
      expect(
        await http.call(admin, {
          method: "POST",
          url: "/text",
          payload: "x".repeat(101),
          headers: { "content-type": "text/plain" },
        }),
      ).toMatchObject({ code: "too_large" });
    });
  });

  describe("paths", () => {
    test("encoded slashes belong to the rest and to one segment, decoded once", async () => {
      expect(await http.call(admin, { url: "/tree/a%2Fb/c%20d/%25" })).toMatchObject({ message: "a/b/c d/%" });
      expect(await http.call(admin, { url: "/tree/ä%252F/x" })).toMatchObject({ message: "ä%2F/x" });
      expect(await http.call(admin, { url: "/thing/a%2Fb" })).toMatchObject({ message: { name: "a/b" } });
    });

    test("a slash at the end makes no difference, a long name neither", async () => {
      expect(await http.call(admin, { url: "/thing/a/" })).toMatchObject({ status: "ok" });
      expect(await http.call(admin, { url: `/thing/${"x".repeat(1_000)}` })).toMatchObject({ status: "ok" });
    });

    test("HEAD and OPTIONS", async () => {
      const head = await http.app.inject({ method: "HEAD", url: `/thing/a?sessionid=${admin}` });
      expect([head.statusCode, head.body]).toEqual([200, ""]);
      const options = await http.app.inject({ method: "OPTIONS", url: "/thing/a" });
      expect([options.statusCode, options.headers.allow]).toEqual([204, "GET, HEAD, OPTIONS"]);
    });

    test("a content type without a body is no error", async () => {
      for (const type of [
        "application/text",
        "application/zip",
        "json",
        "nonsense",
        "multipart/form-data; boundary=x",
      ]) {
        expect(
          await http.call(admin, { method: "POST", url: "/text", headers: { "content-type": type } }),
        ).toMatchObject({ status: "ok" });
      }
    });
  });

  test("no plugin has a hook in the way of every call", async () => {
    const hooks: readonly (readonly [string, number])[] = HOOKS.map((name) => [name, hooksOf(http.app, name)]);
    expect(hooks.filter(([, count]) => count > 0)).toEqual([
      ["onRequest", 1],
      ["onResponse", 1],
    ]);
  });

  test("probes, metrics and the interface's own description", async () => {
    expect((await http.app.inject({ url: "/healthz" })).json()).toEqual({ status: "ok" });
    expect((await http.app.inject({ url: "/readyz" })).json()).toEqual({ status: "ok" });
    const metrics = (await http.app.inject({ url: "/metrics" })).body;
    expect(metrics).toContain(`odp_http_calls_total{method="GET",route="/thing/:name",code="ok"}`);
    expect(metrics).toContain("process_resident_memory_bytes");
    const document = (await http.app.inject({ url: "/openapi.json" })).json();
    expect(document.paths["/thing/{name}"].get).toMatchObject({
      "x-permission": "objects:read",
      parameters: [{ name: "name", in: "path", required: true }],
    });
    expect(document.paths["/upload"].post.requestBody.content).toHaveProperty("multipart/form-data");
    expect(document.paths["/user/signin"].post.security).toEqual([]);
    expect(document.servers).toEqual([expect.objectContaining({ url: "/" })]);
    expect(Object.keys(document.paths["/text"].post.requestBody.content)).toEqual([
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/json",
    ]);
    expect(document.paths["/upload"].post.requestBody.content["multipart/form-data"].schema).toMatchObject({
      properties: { uploadfile: { items: { format: "binary" } } },
    });
    expect(document.info.description).toContain("application/problem+json");
  });
});

test("what a look at the stores found holds for a second, a failure too, and for all who ask at once", async () => {
  let held = 0;
  let damaged: readonly { readonly tenant: string; readonly rows: number; readonly tables: readonly string[] }[] = [];
  const clock = new TestClock();
  let looks = 0;
  let lost: readonly LostTenant[] = [];
  const looked = (): Promise<Readiness> =>
    ++looks === 1
      ? Promise.reject(new AppError("unavailable", "etcd is not ready: no leader"))
      : Promise.resolve({ lost });
  const app = await buildHttp({
    runtime: testRuntime(clock),
    endpoints: [],
    sockets: [],
    services: {
      signIn: {
        bySession: async () => undefined,
        byPassword: async () => undefined,
        byToken: async () => undefined,
        onChange: () => {},
      },
      audit: { ready: async () => {}, write: async () => {}, record: async () => {} },
      ready: looked,
      damaged: () => damaged,
      heldTargets: () => held,
    },
    settings: { dataDir: "/nonexistent", version: "0" },
  });
  const ask = async (): Promise<readonly [number, unknown]> => {
    const answer = await app.inject({ url: "/readyz" });
    return [answer.statusCode, answer.json()];
  };
  const failed = [503, expect.objectContaining({ code: "unavailable", message: "etcd is not ready: no leader" })];
  expect(await Promise.all([ask(), ask()])).toEqual([failed, failed]);
  clock.advance(READY_KEPT_MS - 1);
  expect(await ask()).toEqual(failed);
  expect(looks).toBe(1);
  clock.advance(1);
  expect(await ask()).toEqual([200, { status: "ok" }]);
  damaged = [{ tenant: "matrix", rows: 2, tables: ["objects"] }];
  // A damaged row must not take a controller out of service.
  expect(await ask()).toEqual([200, { status: "ok", damaged }]);
  damaged = [];
  held = 2;
  const warnings = ["2 changes of targets held: see GET /monitoring/targets."];
  expect(await ask()).toEqual([200, { status: "ok", warnings }]);
  held = 0;
  expect(looks).toBe(2);
  // The other tenants are still served.
  lost = [{ tenant: "matrix", keyspace: "odp_matrix" }];
  clock.advance(READY_KEPT_MS);
  expect(await ask()).toEqual([200, { status: "ok", lost }]);
  await app.close();
});

const HOOKS = [
  ...["onRequest", "preParsing", "preValidation", "preHandler", "preSerialization"],
  ...["onError", "onSend", "onResponse", "onRequestAbort", "onTimeout"],
];

/** Number of hooks that Fastify runs for each call. It tells them only through the symbol of its hooks. */
function hooksOf(app: FastifyInstance, name: string): number {
  const symbol = Object.getOwnPropertySymbols(app).find(({ description }) => description === "fastify.hooks");
  const hooks =
    symbol && (app as unknown as Record<symbol, Readonly<Record<string, readonly unknown[] | null>>>)[symbol];
  if (hooks === undefined) throw new Error("Fastify keeps its hooks elsewhere.");
  return hooks[name]?.length ?? 0;
}
