import { Type } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HTTP_WARNING_MAX_CHARACTERS, HTTP_WARNINGS_MAX } from "../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../test/helpers/http-app.ts";
import { endpoint } from "./endpoint.ts";

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

let http: TestHttp;

beforeAll(async () => {
  http = await openTestHttp({
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
        handler: async () => ({ content: "bare", contentType: "text/plain" }),
      }),
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

test("an answer of rows tells it behind its rows, a bare one not at all", async () => {
  expect(await get("/rows?nmae=1")).toEqual({
    status: "ok",
    message: [1, 2],
    warnings: ["nmae is not known here and was ignored; did you mean name?"],
  });
  expect((await http.app.inject({ url: "/bare?nmae=1" })).body).toBe("bare");
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
