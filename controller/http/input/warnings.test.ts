import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { LightMyRequestResponse } from "fastify";
import { Type } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import {
  HTTP_WARNING_MAX_CHARACTERS,
  HTTP_WARNINGS_HEADER_MAX_CHARACTERS,
  HTTP_WARNINGS_MAX,
} from "../../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { endpoint, type Answer, type Endpoint, type ServerEvent } from "../interface/endpoint.ts";
import { socketEndpoint } from "../sockets/socket.ts";

const Column = Type.Object({
  name: Type.Optional(Type.String()),
  type: Type.Optional(Type.String()),
  hints: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
const deep = Type.Object({
  columns: Type.Optional(Type.Array(Type.Union([Column, Type.String()]))),
  data: Type.Optional(
    Type.Object({
      column: Type.Optional(Column),
      any: Type.Optional(Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Array(Type.String())])),
    }),
  ),
});
const input = Type.Object({
  name: Type.Optional(Type.String()),
  hosts: Type.Optional(Type.Array(Type.String())),
  id: Type.Optional(Type.String()),
});
const common = { permission: "public", summary: "", output: Type.Unknown(), bodyMaxBytes: 1_000_000 } as const;

const PLAIN = { content: { "text/plain": { summary: "" } } } as const;

type Bare = readonly [path: string, answer: () => Answer<unknown>, more?: Partial<Endpoint>];

const bareAnswers: readonly Bare[] = [
  ["/stream", () => ({ content: Readable.from(["a", "b"]), contentType: "text/plain" }), { bare: PLAIN }],
  ["/page", () => ({ page: "<p>page", policy: "default-src 'none'" }), { bare: { page: "" } }],
  ["/unchanged", () => ({ empty: 304 }), { statuses: { 304: { summary: "" } } }],
  ["/elsewhere", () => ({ redirect: "/bare" }), { bare: { redirect: "" } }],
  ["/events", () => ({ events: events() }), { permission: "objects:read", events: true }],
];

let http: TestHttp;

beforeAll(async () => {
  http = await openTestHttp({
    sockets: [
      socketEndpoint({
        path: "/listen",
        permission: "objects:read",
        summary: "",
        input,
        frames: Type.Unknown(),
        open: () => {},
      }),
    ],
    endpoints: [
      endpoint({
        ...common,
        method: "POST",
        path: "/thing",
        input,
        handler: async ({ input }) => ({ message: input }),
      }),
      endpoint({
        ...common,
        method: "POST",
        path: "/deep",
        input: deep,
        handler: async ({ input }) => ({ message: input }),
      }),
      endpoint({
        ...common,
        method: "GET",
        path: "/rows",
        input,
        output: Type.Array(Type.Unknown()),
        handler: async () => ({ rows: pages() }),
      }),
      endpoint({
        ...common,
        method: "GET",
        path: "/bare",
        input,
        bare: PLAIN,
        handler: async ({ input: { hosts } }) => ({
          content: "bare",
          contentType: "text/plain",
          ...(hosts && { warnings: ["Something was left out."] }),
        }),
      }),
      ...bareAnswers.map(([path, answer, more]) =>
        endpoint({ ...common, ...more, method: "GET", path, input, handler: async () => answer() }),
      ),
      endpoint({
        ...common,
        method: "GET",
        path: "/own",
        input,
        handler: async () => ({
          message: "",
          warnings: ["The column b is not there.", "x".repeat(2 * HTTP_WARNING_MAX_CHARACTERS)],
        }),
      }),
    ],
  });
});

afterAll(() => http[Symbol.asyncDispose]());

async function* events(): AsyncGenerator<ServerEvent> {
  yield await Promise.resolve({ data: 1 });
}

async function* pages(): AsyncGenerator<readonly unknown[]> {
  yield await Promise.resolve([1, 2]);
}

async function post(
  payload: object | string,
  url = "/thing",
  type = "application/json",
): Promise<Record<string, unknown>> {
  const reply = await http.app.inject({ method: "POST", url, payload, headers: { "content-type": type } });
  return reply.json();
}

function told(reply: LightMyRequestResponse): readonly unknown[] {
  return JSON.parse(String(reply.headers["x-odp-warnings"])) as readonly unknown[];
}

async function get(url: string): Promise<Record<string, unknown>> {
  return (await http.app.inject({ url })).json();
}

test("a name that is not known is ignored and told, with the one it was probably meant to be", async () => {
  const answer = { status: "ok", message: { name: "a" } };
  const host = "host is not known here and was ignored; did you mean hosts?";
  expect(await post({ name: "a", host: "b" })).toEqual({ ...answer, warnings: [host] });
  expect(await post("name=a&host[]=b&host[]=c", "/thing", "application/x-www-form-urlencoded")).toEqual({
    ...answer,
    warnings: [host],
  });
  expect(await post({ name: "a" }, "/thing?colour=red")).toEqual({
    ...answer,
    warnings: ["colour is not known here and was ignored."],
  });
  expect(await post({ name: "a", NAME: "b", __proto: 1 })).toMatchObject({
    warnings: [expect.stringContaining("did you mean name?"), expect.stringMatching(/^__proto is/)],
  });
});

test("so is a member of an object inside, in whatever form it comes; what takes any member has none that are not known", async () => {
  const { warnings } = await post(
    {
      columns: [{ name: "a", typ: "int" }, "b", { hints: { any: 1 } }],
      data: { colum: {}, column: { nmae: 1 }, any: { thing: 1 } },
    },
    "/deep",
  );
  expect(warnings).toEqual([
    "columns[0].typ is not known here and was ignored; did you mean type?",
    "data.colum is not known here and was ignored; did you mean column?",
    "data.column.nmae is not known here and was ignored; did you mean name?",
  ]);
  expect((await post("data[column][typ]=x", "/deep", "application/x-www-form-urlencoded")).warnings).toEqual([
    expect.stringMatching(/^data\.column\.typ is/),
  ]);
  const many = { columns: Array.from({ length: 500 }, () => ({ ["x".repeat(300)]: 1 })) };
  expect((await post(many, "/deep")).warnings).toHaveLength(HTTP_WARNINGS_MAX + 1);
});

test("there is no such member when there is nothing to tell, nor for what every client sends", async () => {
  expect(await post({ name: "a", hosts: ["b"] }, "/thing?sessionid=1&_=2&_csrf=3&issys=true&$issys=true")).toEqual({
    status: "ok",
    message: { name: "a", hosts: ["b"] },
  });
});

test("an answer of rows tells it behind its rows", async () => {
  expect(await get("/rows?nmae=1")).toEqual({
    status: "ok",
    message: [1, 2],
    warnings: ["nmae is not known here and was ignored; did you mean name?"],
  });
});

const NAME = "nmae is not known here and was ignored; did you mean name?";

test.each([
  ["a text", "/bare", 200],
  ["a stream", "/stream", 200],
  ["a page", "/page", 200],
  ["an answer without a body", "/unchanged", 304],
  ["a redirect", "/elsewhere", 302],
  ["an event stream", "/events", 200],
])("%s, which is no envelope, tells it in a header", async (_what, path, status) => {
  const session = await http.signIn("admin");
  const reply = await http.app.inject({ url: `${path}?nmae=1&sessionid=${session}` });
  expect(reply.statusCode).toBe(status);
  expect(told(reply)).toEqual([NAME]);
  const quiet = await http.app.inject({ url: `${path}?name=a&sessionid=${session}` });
  expect(quiet.headers).not.toHaveProperty("x-odp-warnings");
});

test("a WebSocket tells it in the header of its answer", async () => {
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = http.app.server.address() as AddressInfo;
  const session = await http.signIn("admin");
  const opened = async (query: string): Promise<unknown> => {
    const socket = new WebSocket(`ws://127.0.0.1:${String(port)}/listen?sessionid=${session}&${query}`);
    const [answer] = (await once(socket, "upgrade")) as unknown as readonly [IncomingMessage];
    socket.terminate();
    return answer.headers["x-odp-warnings"];
  };
  expect(await opened("nmae=1")).toBe(JSON.stringify([NAME]));
  expect(await opened("name=a")).toBeUndefined();
});

test("the body of an answer without an envelope stays as it is, and the endpoint's own warnings are in the header too", async () => {
  const reply = await http.app.inject({ url: "/bare?nmae=1&own=1&hosts=a" });
  expect(reply.body).toBe("bare");
  expect(told(reply)).toEqual([NAME, expect.stringMatching(/^own is/), "Something was left out."]);
});

test("the header holds any name, in ASCII and within its bound", async () => {
  const odd = "n\u{1F600}ä\r\nSet-Cookie: a=b\u007f";
  const one = await http.app.inject({ url: `/bare?${encodeURIComponent(odd)}=1` });
  expect(one.headers["x-odp-warnings"]).toMatch(/^[\x20-\x7e]+$/);
  expect(one.headers).not.toHaveProperty("set-cookie");
  expect(told(one)).toEqual([`${odd} is not known here and was ignored.`]);
  const names = Array.from({ length: 500 }, (_, at) => `${String(at)}${encodeURIComponent("ä".repeat(500))}=1`);
  const many = await http.app.inject({ url: `/bare?${names.join("&")}` });
  expect(String(many.headers["x-odp-warnings"]).length).toBeLessThanOrEqual(HTTP_WARNINGS_HEADER_MAX_CHARACTERS);
  expect(told(many).length).toBeGreaterThan(5);
  expect(told(many).at(-1)).toBe("There are more warnings, which are not told.");
});

test("what the endpoint itself tells comes behind, and no text is longer than its bound", async () => {
  const { warnings } = await get("/own?nmae=1");
  expect(warnings).toEqual([
    expect.stringMatching(/^nmae/),
    "The column b is not there.",
    "x".repeat(HTTP_WARNING_MAX_CHARACTERS),
  ]);
});

test("however many and long the names, what is told is bounded", async () => {
  const names = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`${String(at)}${"n".repeat(500)}`, 1]));
  const { warnings } = (await post(names)) as { warnings: readonly string[] };
  expect(warnings).toHaveLength(HTTP_WARNINGS_MAX + 1);
  expect(warnings.at(-1)).toBe("There are more warnings, which are not told.");
  expect(JSON.stringify(warnings).length).toBeLessThan(HTTP_WARNINGS_MAX * 200);
});
