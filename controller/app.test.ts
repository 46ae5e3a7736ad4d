import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LostTenant, Readiness } from "./store/engine.ts";
import { AppError } from "../common/errors.ts";
import { HTTP_CALL_DEADLINE_MS, READY_KEPT_MS, SIGN_IN_FREE_FAILURES_PER_USER } from "../common/limits.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../test/helpers/areas/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../test/helpers/time/runtime.ts";
import { buildHttp } from "./app.ts";
import { endpoint, type Endpoint } from "./http/interface/endpoint.ts";

const Free = Type.Record(Type.String(), Type.Unknown());
const seen: { rowsEnded: boolean } = { rowsEnded: false };

const things: readonly Endpoint[] = [
  endpoint({
    method: "GET",
    path: "/thing/:name",
    permission: "objects:read",
    summary: "one thing",
    input: Type.Object({ name: Type.String() }),
    output: Type.Object({ name: Type.String() }),
    handler: async ({ input }) => ({ message: { name: input.name, secret: "never sent" } as { name: string } }),
  }),
  endpoint({
    method: "POST",
    path: "/thing",
    permission: "objects:write",
    summary: "makes one",
    body: "json",
    input: Type.Object({ name: Type.String(), company: Type.Optional(Type.String()) }),
    output: Type.Unknown(),
    handler: async ({ input, principal }) => ({
      message: { ...input, tenant: principal.tenant, user: principal.user },
    }),
  }),
  endpoint({
    method: "GET",
    path: "/tree/*",
    permission: "objects:read",
    summary: "takes the rest",
    input: Type.Object({ "*": Type.String() }),
    output: Type.String(),
    handler: async ({ input }) => ({ message: input["*"] }),
  }),
  endpoint({
    method: "POST",
    path: "/upload",
    permission: "objects:write",
    summary: "reads files back",
    body: "multipart",
    input: Type.Object({ name: Type.Optional(Type.String()), hosts: Type.Optional(Type.Array(Type.String())) }),
    output: Type.Unknown(),
    handler: async ({ input, files }) => ({
      message: {
        ...input,
        files: await Promise.all(
          files.map(async ({ field, filename, path, size }) => ({
            field,
            filename,
            size,
            text: await readFile(path, "utf8"),
          })),
        ),
      },
    }),
  }),
  endpoint({
    method: "GET",
    path: "/fail/:code",
    permission: "objects:read",
    summary: "fails",
    input: Type.Object({ code: Type.String() }),
    output: Type.Unknown(),
    handler: async ({ input }) => {
      if (input.code === "bug") throw new TypeError("the secret is 42");
      throw new AppError(input.code as "conflict", `it is ${input.code}`);
    },
  }),
  endpoint({
    method: "GET",
    path: "/rows",
    permission: "objects:read",
    summary: "many rows",
    input: Type.Object({ count: Type.Integer(), failAt: Type.Optional(Type.Integer()) }),
    output: Type.Array(Type.Object({ n: Type.Integer() })),
    handler: async ({ input }) => ({ rows: pages(input.count, input.failAt), meta: { type: "select" } }),
  }),
  endpoint({
    method: "GET",
    path: "/file",
    permission: "objects:read",
    summary: "bare bytes",
    input: Type.Object({}),
    output: Type.String(),
    handler: async () => ({
      content: Readable.from([Buffer.from("by"), Buffer.from("tes")]),
      contentType: "application/zip",
      filename: 'a"ä.zip',
    }),
  }),
  endpoint({
    method: "GET",
    path: "/hang",
    permission: "objects:read",
    summary: "never answers",
    input: Type.Object({}),
    output: Type.String(),
    handler: () => new Promise<never>(() => {}),
  }),
  endpoint({
    method: "POST",
    path: "/text",
    permission: "jobs:run",
    summary: "free text",
    body: "text",
    bodyMaxBytes: 100,
    input: Type.Object({}),
    output: Type.Unknown(),
    handler: async ({ text }) => ({ message: text ?? null }),
  }),
];

async function* pages(count: number, failAt = Infinity): AsyncGenerator<readonly unknown[]> {
  seen.rowsEnded = false;
  try {
    for (let n = 0; n < count; n += 100) {
      if (n >= failAt) throw new AppError("unavailable", "the store went away");
      yield await Promise.resolve(
        Array.from({ length: Math.min(100, count - n) }, (_, at) => ({ n: n + at, secret: 1 })),
      );
      yield [];
    }
  } finally {
    seen.rowsEnded = true;
  }
}

const basic = (login: string, password = PASSWORD): string =>
  `Basic ${Buffer.from(`${login}:${password}`).toString("base64")}`;

describe("the HTTP interface", () => {
  let http: TestHttp;
  let admin: string;
  let viewer: string;

  beforeAll(async () => {
    http = await openTestHttp({ endpoints: things });
    admin = await http.signIn("admin");
    viewer = await http.signIn("viewer");
  });
  afterAll(() => http[Symbol.asyncDispose]());

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
      expect(response.body).not.toContain("42");
      expect(response.body).toContain(String(response.headers.traceparent).split("-")[1]);
    });

    test("unknown routes, unreadable paths, unknown methods", async () => {
      expect((await http.app.inject({ url: "/nowhere" })).json()).toMatchObject({ status: "error", code: "not_found" });
      expect((await http.app.inject({ method: "PATCH", url: "/thing" })).json()).toMatchObject({
        status: "error",
        code: "not_found",
      });
      const unreadable = await http.app.inject({ url: "/thing/%zz?sessionid=a-session" });
      expect(unreadable.json()).toMatchObject({ status: "error", code: "invalid" });
      expect(unreadable.body).not.toContain("a-session");
    });

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

  describe("uploads", () => {
    const multipart = (parts: string, end = "--B--\r\n") => ({
      payload: parts.replaceAll("\n", "\r\n") + end,
      headers: { "content-type": "multipart/form-data; boundary=B" },
    });
    const file = (name: string, text: string) =>
      `--B\nContent-Disposition: form-data; name="uploadfile"; filename="${name}"\n\n${text}\n`;
    const field = (name: string, text: string) => `--B\nContent-Disposition: form-data; name="${name}"\n\n${text}\n`;

    test("files and fields come in order with their names and are gone afterwards", async () => {
      const parts =
        field("name", "n") +
        file("dir/ä.txt", "one") +
        field("hosts[]", "x") +
        file("b.txt", "") +
        field("hosts[]", "y");
      const answer = await http.call(admin, { method: "POST", url: "/upload", ...multipart(parts) });
      expect(answer).toEqual({
        status: "ok",
        message: {
          name: "n",
          hosts: ["x", "y"],
          files: [
            { field: "uploadfile", filename: "dir/ä.txt", size: 3, text: "one" },
            { field: "uploadfile", filename: "b.txt", size: 0, text: "" },
          ],
        },
      });
      await expect.poll(() => readdir(join(http.engine.dir, "uploads"))).toEqual([]);
    });

    test("a body that is cut off or has no boundary is refused by name, and nothing stays", async () => {
      const cut = multipart(field("name", "n") + file("a.txt", "one"), "");
      expect(await http.call(admin, { method: "POST", url: "/upload", ...cut })).toMatchObject({
        code: "invalid",
        message: expect.stringMatching(/multipart body is broken/),
      });
      const without = { ...cut, headers: { "content-type": "multipart/form-data" } };
      expect(await http.call(admin, { method: "POST", url: "/upload", ...without })).toMatchObject({
        code: "invalid",
        message: expect.stringMatching(/multipart body is broken/),
      });
      await expect.poll(() => readdir(join(http.engine.dir, "uploads"))).toEqual([]);
    });

    test("too many files are refused", async () => {
      const many = multipart(file("a", "x").repeat(257));
      expect(await http.call(admin, { method: "POST", url: "/upload", ...many })).toMatchObject({ code: "too_large" });
    });

    test("a file that was not chosen makes no difference to the others", async () => {
      const none = `--B\r\nContent-Disposition: form-data; name="first"; filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n`;
      const payload = `${none}--B\r\nContent-Disposition: form-data; name="second"; filename="b"\r\n\r\nbytes\r\n${none}--B--\r\n`;
      const answer = await http.call(admin, {
        method: "POST",
        url: "/upload",
        payload,
        headers: { "content-type": "multipart/form-data; boundary=B" },
      });
      expect(answer).toEqual({
        status: "ok",
        message: { files: [{ field: "second", filename: "b", size: 5, text: "bytes" }] },
      });
    });

    test("a part without a name, and fields nested without end, are refused in our words", async () => {
      const send = async (type: string, payload: string) =>
        http.call(admin, { method: "POST", url: "/upload", payload, headers: { "content-type": type } });
      const nameless = (more: string) =>
        send("multipart/form-data; boundary=B", `--B\r\nContent-Disposition: form-data${more}\r\n\r\nx\r\n--B--\r\n`);
      for (const more of ["", '; filename="a"'])
        expect(await nameless(more)).toMatchObject({ code: "invalid", message: "A part of the form has no name." });
      const deep = `name${"[a]".repeat(3_000)}=x`;
      expect(await send("application/x-www-form-urlencoded", deep)).toMatchObject({
        code: "too_large",
        message: expect.stringContaining("nested deeper than 64"),
      });
      expect(
        await send(
          "multipart/form-data; boundary=B",
          `--B\r\nContent-Disposition: form-data; name="a${"[]".repeat(300)}"\r\n\r\nx\r\n--B--\r\n`,
        ),
      ).toMatchObject({ code: "too_large" });
    });

    test("no file is taken from a stranger", async () => {
      const response = await http.app.inject({ method: "POST", url: "/upload", ...multipart(file("a", "x")) });
      expect(response.json()).toMatchObject({ status: "signin" });
    });

    test("names of prototypes are no fields", async () => {
      const answer = await http.call(admin, { method: "POST", url: "/upload", ...multipart(field("__proto__", "x")) });
      expect(answer).toMatchObject({ code: "invalid" });
    });
  });

  describe("answers", () => {
    test("only declared members are sent", async () => {
      expect(await http.call(admin, { url: "/thing/a" })).toEqual({ status: "ok", message: { name: "a" } });
    });

    test.each([0, 1, 250, 20_000])("%i rows are one array, with meta", async (count) => {
      const answer = await http.call(admin, { url: `/rows?count=${String(count)}` });
      expect(answer.meta).toEqual({ type: "select" });
      expect(answer.message).toEqual(Array.from({ length: count }, (_, n) => ({ n })));
    });

    test("a failure before the first bytes gets its envelope", async () => {
      expect(await http.call(admin, { url: "/rows?count=500&failAt=200" })).toMatchObject({
        status: "error",
        code: "unavailable",
      });
      expect(seen.rowsEnded).toBe(true);
    });

    test("bare content with a safe name", async () => {
      const response = await http.app.inject({ url: `/file?sessionid=${admin}` });
      expect(response.body).toBe("bytes");
      expect(response.headers["content-type"]).toBe("application/zip");
      expect(response.headers["content-disposition"]).toBe(
        `attachment; filename="a__.zip"; filename*=UTF-8''a%22%C3%A4.zip`,
      );
    });

    test("every answer carries the caller's trace, with a span of our own", async () => {
      const sent = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;
      const kept = await http.app.inject({ url: "/healthz", headers: { traceparent: sent } });
      expect(kept.headers.traceparent).toMatch(
        new RegExp(`^00-${"1".repeat(32)}-(?!${"2".repeat(16)})[0-9a-f]{16}-01$`),
      );
      const made = await http.app.inject({ url: "/healthz", headers: { traceparent: "00-bad" } });
      expect(made.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    });
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
    expect(
      document.paths["/upload"].post.requestBody.content["multipart/form-data"].schema.additionalProperties
        .contentMediaType,
    ).toBe("application/octet-stream");
    expect(document).toHaveProperty("x-websockets");
    expect(document.info.description).toContain("application/problem+json");
  });
});

describe("bounds", () => {
  test("a call that hangs ends by its deadline and keeps its place; what does not fit is turned away", async () => {
    const clock = new TestClock();
    await using http = await openTestHttp({
      endpoints: things,
      runtime: testRuntime(clock),
      settings: { callsInFlightMax: 1, callsWaitingMax: 1 },
    });
    const [admin, other] = [await http.signIn("admin"), await http.signIn("admin", "second")];
    const hanging = http.call(admin, { url: "/hang" });
    await expect
      .poll(async () => (await http.app.inject({ url: "/metrics" })).body)
      .toContain(`odp_http_calls_in_flight{tenant="matrix"} 1`);
    const waiting = http.call(admin, { url: "/thing/a" });
    await expect.poll(async () => (await http.call(admin, { url: "/thing/b" })).code).toBe("limited");
    expect(await http.call(other, { url: "/thing/a" })).toMatchObject({ status: "ok" });
    clock.advance(HTTP_CALL_DEADLINE_MS);
    expect(await hanging).toMatchObject({ status: "error", code: "deadline" });
    expect(await waiting).toMatchObject({ status: "error", code: "deadline" });
  });

  test("while the audit trail cannot be written no change is made, but all can be read", async () => {
    const clock = new TestClock();
    await using http = await openTestHttp({ endpoints: things, runtime: testRuntime(clock) });
    const admin = await http.signIn("admin");
    http.trail.broken = true;
    const lost = await http.call(admin, { method: "POST", url: "/thing", payload: { name: "a" } });
    expect(lost).toMatchObject({ status: "ok" });
    const refused = await http.call(admin, { method: "POST", url: "/thing", payload: { name: "a" } });
    expect(refused).toMatchObject({
      status: "error",
      code: "unavailable",
      message: expect.stringMatching(/audit trail/),
    });
    expect(await http.call(admin, { url: "/thing/a" })).toMatchObject({ status: "ok" });
    http.trail.broken = false;
    clock.advance(10_000);
    expect(await http.call(admin, { method: "POST", url: "/thing", payload: { name: "a" } })).toMatchObject({
      status: "ok",
    });
    expect(http.trail.records.map(({ action }) => action)).toContain("audit resumed; 1 entries may be missing");
    expect(await http.audit.verifyChain(testPrincipal())).toMatchObject({ problems: [], runs: 2 });
  });
});

test("what a look at the stores found holds for a second, a failure too, and for all who ask at once", async () => {
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
  expect(looks).toBe(2);
  // The other tenants are still served.
  lost = [{ tenant: "matrix", keyspace: "odp_matrix" }];
  clock.advance(READY_KEPT_MS);
  expect(await ask()).toEqual([200, { status: "ok", lost }]);
  await app.close();
});

describe("behind a proxy", () => {
  const signIn = (http: TestHttp, client: string, password: string) =>
    http.app.inject({
      method: "POST",
      url: "/user/signin",
      remoteAddress: "10.0.0.1",
      payload: { company: "matrix", username: "admin", password },
      headers: { "x-forwarded-for": client, "x-forwarded-proto": "https" },
    });

  const guess = async (http: TestHttp): Promise<string> => {
    for (let failures = 0; failures <= SIGN_IN_FREE_FAILURES_PER_USER; failures++)
      await signIn(http, "192.0.2.1", "wrong");
    return (await signIn(http, "192.0.2.1", "wrong")).json<{ code: string }>().code;
  };

  test("that is trusted, a client who guesses passwords locks nobody else out, and cookies are for HTTPS only", async () => {
    await using http = await openTestHttp({
      runtime: testRuntime(new TestClock()),
      settings: { trustedProxies: ["10.0.0.0/8"] },
    });
    expect(await guess(http)).toBe("limited");
    const other = await signIn(http, "192.0.2.2", PASSWORD);
    expect(other.json()).toMatchObject({ status: "ok" });
    expect(other.headers["set-cookie"]).toMatch(/; Secure/);
    expect(http.trail.records.map(({ remote }) => remote)).toContain("192.0.2.2");
  });

  test("that nobody trusts, what it says counts for nothing", async () => {
    await using http = await openTestHttp({ runtime: testRuntime(new TestClock()) });
    expect(await guess(http)).toBe("limited");
    expect((await signIn(http, "192.0.2.2", PASSWORD)).json()).toMatchObject({ code: "limited" });
    expect(http.trail.records.map(({ remote }) => remote)).not.toContain("192.0.2.1");
  });
});

describe("metrics", () => {
  test("are for the machine itself, unless a setting names others", async () => {
    const read = async (http: TestHttp, remoteAddress: string, headers = {}) =>
      (await http.app.inject({ url: "/metrics", remoteAddress, headers })).body;
    await using http = await openTestHttp();
    for (const address of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
      expect(await read(http, address)).toContain("odp_http_calls_total");
    expect(await read(http, "192.0.2.1")).toMatch(/"code":"denied"/);
    for (const host of ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
      expect(await read(http, "127.0.0.1", { host }), host).toContain("odp_http_calls_total");
    for (const host of ["evil.example:8080", "127.0.0.1.evil.example"])
      expect(await read(http, "127.0.0.1", { host }), "by DNS rebinding").toMatch(/"code":"denied"/);
    expect(await read(http, "127.0.0.1", { "x-forwarded-for": "127.0.0.1" }), "through a proxy nobody trusts").toMatch(
      /"code":"denied"/,
    );
    await using open = await openTestHttp({
      settings: { metricsReaders: ["192.0.2.0/24"], trustedProxies: ["127.0.0.1"] },
    });
    expect(await read(open, "192.0.2.1")).toContain("odp_http_calls_total");
    expect(await read(open, "127.0.0.1", { "x-forwarded-for": "192.0.2.1" })).toContain("odp_http_calls_total");
    expect(await read(open, "127.0.0.1")).toMatch(/"code":"denied"/);
  });
});

describe("an interface with gaps is refused at the start", () => {
  const good = {
    method: "GET",
    path: "/a/:x",
    permission: "a:read",
    summary: "",
    input: Type.Object({ x: Type.String() }),
    output: Free,
    handler: async () => ({ message: {} }),
  } as const;
  const build = (...endpoints: unknown[]) =>
    buildHttp({
      runtime: testRuntime(),
      endpoints: endpoints as Endpoint[],
      sockets: [],
      services: {
        signIn: {
          bySession: async () => undefined,
          byPassword: async () => undefined,
          byToken: async () => undefined,
          onChange: () => {},
        },
        audit: { ready: async () => {}, write: async () => {}, record: async () => {} },
        ready: async () => ({ lost: [] }),
      },
      settings: { dataDir: "/nonexistent", version: "0" },
    });

  test("no permission, no object, a clash, an unnamed path parameter", async () => {
    await expect(build({ ...good, permission: undefined })).rejects.toThrow("GET /a/:x declares no permission");
    await expect(build({ ...good, permission: "everything" })).rejects.toThrow("declares no permission");
    await expect(build({ ...good, input: Type.String() })).rejects.toThrow("input schema that is no object");
    await expect(build(good, { ...good, path: "/a/:y/", input: Type.Object({ y: Type.String() }) })).rejects.toThrow(
      "Two endpoints answer GET /a/:",
    );
    await expect(build({ ...good, input: Type.Object({}) })).rejects.toThrow("does not name x");
  });
});
