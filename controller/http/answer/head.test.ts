import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { storedStatuses } from "./stored.ts";
import { checkInterface } from "../interface/check.ts";
import { endpoint, type Answer, type Endpoint } from "../interface/endpoint.ts";
import { openApiDocument } from "../interface/openapi.ts";

/** Answers with a status and headers of their own. */

const VERSION = `"v1, the first"`;
const input = Type.Object({});
const read = { method: "GET", permission: "objects:read", summary: "", input, output: Type.Unknown() } as const;
const created = { 201: { summary: "", headers: { location: "" } } };
const wrong = (path: string, answer: Answer<unknown>): Endpoint =>
  endpoint({ ...read, path, statuses: created, handler: async () => answer });

const THING = {
  size: 4,
  etag: VERSION,
  modifiedMs: 0,
  async *read() {
    yield await Promise.resolve(Buffer.from("body"));
  },
};

const endpoints: readonly Endpoint[] = [
  endpoint({
    ...read,
    method: "POST",
    path: "/thing",
    permission: "objects:write",
    output: Type.Object({ id: Type.String() }),
    statuses: { 201: { summary: "It is there", headers: { Location: "Where it is" } } },
    handler: async () => ({ message: { id: "5" }, status: 201, headers: { Location: "/thing/5" } }),
  }),
  endpoint({
    ...read,
    path: "/versioned",
    statuses: storedStatuses({ "cache-control": "" }),
    bare: { content: { "text/plain": { summary: "The thing" } }, only: true },
    handler: async () => ({ stored: THING, contentType: "text/plain", headers: { "cache-control": "no-cache" } }),
  }),
  endpoint({
    ...read,
    method: "DELETE",
    path: "/thing",
    permission: "objects:write",
    statuses: { 204: { summary: "It is gone" } },
    handler: async () => ({ empty: 204 }),
  }),
  endpoint({
    ...read,
    path: "/later",
    statuses: { 202: { summary: "Under way", headers: { "Retry-After": "Seconds" } } },
    handler: async () => ({ rows: rows(), status: 202, headers: { "Retry-After": "7" } }),
  }),
  endpoint({
    ...read,
    path: "/busy",
    handler: () => Promise.reject(new AppError("limited", "full", { details: { retryAfterSeconds: 1.2 } })),
  }),
  endpoint({
    ...read,
    path: "/content",
    bare: { content: { "text/plain": { summary: "" } } },
    handler: async () => ({ content: "rows", contentType: "text/plain" }),
  }),
  endpoint({ ...read, path: "/plain", handler: async () => ({ message: "as ever" }) }),
  wrong("/wrong/status", { message: "", status: 202, session: { id: "stolen" } }),
  wrong("/wrong/header", { message: "", status: 201, headers: { "x-other": "1" } }),
  wrong("/wrong/value", { message: "", status: 201, headers: { location: "/a\r\nset-cookie: x=1" } }),
];

async function* rows(): AsyncGenerator<readonly unknown[]> {
  yield await Promise.resolve([1, 2]);
}

let http: TestHttp;
let session: string;
beforeAll(async () => {
  http = await openTestHttp({ endpoints });
  session = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

const ask = (method: "GET" | "POST" | "DELETE", path: string, headers: Record<string, string> = {}) =>
  http.app.inject({ method, url: `${path}?sessionid=${session}`, headers });

describe("an answer names", () => {
  test("its status and headers beside the envelope", async () => {
    const { statusCode, headers, body } = await ask("POST", "/thing");
    expect([statusCode, headers.location, body]).toEqual([201, "/thing/5", `{"status":"ok","message":{"id":"5"}}`]);
  });

  test("them beside rows", async () => {
    const { statusCode, headers, body } = await ask("GET", "/later");
    expect([statusCode, headers["retry-after"], body]).toEqual([202, "7", `{"status":"ok","message":[1,2]}`]);
  });

  test("a status without a body", async () => {
    const { statusCode, headers, body } = await ask("DELETE", "/thing");
    expect([statusCode, headers["content-type"], body]).toEqual([204, undefined, ""]);
  });

  test("nothing, and is what it always was", async () => {
    const { statusCode, headers, body } = await ask("GET", "/plain");
    expect([statusCode, headers["cache-control"]]).toEqual([200, "no-store"]);
    expect(body).toBe(`{"status":"ok","message":"as ever"}`);
  });
});

test("nothing keeps an answer unless its endpoint says how, whatever it is made of", async () => {
  for (const path of ["/plain", "/later", "/content", "/busy", "/wrong/header", "/none"])
    expect((await ask("GET", path)).headers["cache-control"], path).toBe("no-store");
  expect((await ask("DELETE", "/thing")).headers["cache-control"]).toBe("no-store");
  expect((await ask("GET", "/versioned")).headers["cache-control"]).toBe("no-cache");
});

describe("a version that the client", () => {
  test("does not have comes with its tag, and may be kept as the endpoint says", async () => {
    for (const ifNoneMatch of ["", `"v2"`, "v1", `""`, `"the first"`]) {
      const { statusCode, headers, body } = await ask("GET", "/versioned", { "if-none-match": ifNoneMatch });
      expect([statusCode, headers.etag, headers["cache-control"]], ifNoneMatch).toEqual([200, VERSION, "no-cache"]);
      expect(body).toContain("body");
    }
  });

  test("has is not sent again", async () => {
    for (const ifNoneMatch of [VERSION, `W/${VERSION}`, `"a", W/"b",${VERSION}`, " * "]) {
      const { statusCode, headers, body } = await ask("GET", "/versioned", { "if-none-match": ifNoneMatch });
      expect([statusCode, headers.etag, body], ifNoneMatch).toEqual([304, VERSION, ""]);
    }
  });
});

test("a failure that says when to come again has Retry-After in both forms", async () => {
  const old = await ask("GET", "/busy");
  expect([old.statusCode, old.headers["retry-after"]]).toEqual([500, "2"]);
  const problem = await ask("GET", "/busy", { accept: "application/problem+json" });
  expect([problem.statusCode, problem.headers["retry-after"]]).toEqual([429, "2"]);
});

test("what the endpoint does not declare, and what is no header text, is not sent", async () => {
  for (const path of ["/wrong/status", "/wrong/header", "/wrong/value"]) {
    const { statusCode, headers, body } = await ask("GET", path);
    const named = [headers.location, headers["x-other"], headers["set-cookie"]];
    expect([statusCode, ...named], path).toEqual([500, undefined, undefined, undefined]);
    expect(JSON.parse(body)).toMatchObject({ status: "error", code: "internal" });
  }
});

test("an interface that declares a failure, or a header that is not its own, is refused", () => {
  const declaring = (statuses: NonNullable<Endpoint["statuses"]>) => () =>
    checkInterface([endpoint({ ...read, path: "/x", statuses, handler: async () => ({ message: "" }) })], []);
  expect(declaring({ 201: { summary: "", headers: { Location: "" } } })).not.toThrow();
  expect(declaring({ 404: { summary: "" } })).toThrow("404");
  for (const header of ["Content-Length", "set-cookie", "Transfer-Encoding", "a b", ""]) {
    expect(declaring({ 201: { summary: "", headers: { [header]: "" } } }), header).toThrow("not its own");
  }
});

type Paths = Record<string, Record<string, { readonly responses: Record<string, Record<string, unknown>> }>>;

test("the document tells them, and the envelope where there is a body", () => {
  const { paths } = openApiDocument(endpoints, { version: "0" }) as { paths: Paths };
  const added = paths["/thing"]?.post?.responses["201"];
  expect(added).toMatchObject({ description: "It is there", headers: { Location: { description: "Where it is" } } });
  expect(added?.content).toHaveProperty(["application/json", "schema", "properties", "message", "properties", "id"]);
  expect(paths["/thing"]?.delete?.responses["204"]).toEqual({ description: "It is gone" });
  expect(paths["/versioned"]?.get?.responses["304"]).not.toHaveProperty("content");
  const current = paths["/versioned"]?.get?.responses["200"];
  expect(current).toMatchObject({
    headers: { ETag: { description: expect.stringContaining("The version") as unknown } },
  });
  const successes = (path: string): readonly string[] =>
    Object.keys(paths[path]?.get?.responses ?? {}).filter((status) => !/^[45]/.test(status));
  expect(successes("/plain")).toEqual(["200"]);
});
