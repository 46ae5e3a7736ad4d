import { Type } from "typebox";
import { expect, test } from "vitest";
import { contentIn } from "../../../../common/api/documented.ts";
import { conforms } from "../../input/coerce.ts";
import { endpoint, type Endpoint } from "../endpoint.ts";
import { openApiDocument } from "../openapi.ts";
import { socketEndpoint } from "../../sockets/socket.ts";
import { operationId } from "./names.ts";
import { documented } from "./schemas.ts";

const base = { permission: "objects:write", summary: "", output: Type.String() } as const;
const handler = async () => ({ message: "" });

type Documented = Record<string, Record<string, Record<string, unknown>>>;

function operation(given: Partial<Endpoint> & Pick<Endpoint, "method" | "path" | "input">) {
  const document = openApiDocument([endpoint({ ...base, handler, ...given })], { version: "0" });
  const [item] = Object.values(document["paths"] as Documented);
  return Object.values(item ?? {})[0] as Record<string, unknown>;
}

test("an operation is named by its method and path", () => {
  for (const [method, path, name] of [
    ["GET", "/", "getRoot"],
    ["GET", "/fs", "getFs"],
    ["GET", "/fs/*", "getFsByPath"],
    ["DELETE", "/appcontext/collection/:name/:id", "deleteAppcontextCollectionByNameById"],
    ["PUT", "/:domain/addtags", "putByDomainAddtags"],
    ["POST", "/user/vali_password", "postUserValiPassword"],
    ["GET", "/openapi.json", "getOpenapiJson"],
  ] as const)
    expect(operationId(method, path)).toBe(name);
});

test("a body is required if a member of it, a file or its text is", () => {
  const needed = Type.Object({ name: Type.String(), more: Type.Optional(Type.String()) });
  const open = Type.Object({ more: Type.Optional(Type.String()), all: Type.Boolean({ default: true }) });
  const text = { summary: "", example: "a" };
  for (const [given, required] of [
    [{ path: "/a", input: needed, body: "json" }, true],
    [{ path: "/a", input: open, body: "json" }, false],
    [{ path: "/a/:name", input: needed, body: "form" }, false],
    [{ path: "/a", input: open, body: "multipart", uploads: "one" }, true],
    [{ path: "/a", input: open, body: "multipart", uploads: "optional" }, false],
    [{ path: "/a", input: open, body: "raw" }, true],
    [{ path: "/a", input: open, body: "text", text: { ...text, optional: true } }, false],
  ] as const)
    expect(operation({ method: "POST", ...given }), JSON.stringify(given)).toMatchObject({ requestBody: { required } });
});

test("a member that the query sends as JSON text is described so", () => {
  const input = Type.Object({
    list: Type.Array(Type.String()),
    any: Type.Unknown(),
    rows: Type.Optional(Type.Array(Type.Object({}))),
  });
  expect(operation({ method: "GET", path: "/a", input })).toMatchObject({
    parameters: [
      { name: "list", required: true, schema: { type: "array" } },
      { name: "any", content: { "application/json": { schema: {} } } },
      { name: "rows", required: false, content: { "application/json": { schema: { type: "array" } } } },
    ],
  });
});

test("every form of an answer is described, with its headers", () => {
  const input = Type.Object({});
  const bare = {
    content: {
      "text/csv": { summary: "A table" },
      "application/x-ndjson": { summary: "Rows", schema: Type.Integer() },
    },
    page: "A page",
    redirect: "Elsewhere",
    only: true,
  } as const;
  const { responses } = operation({ method: "GET", path: "/a", input, bare }) as {
    responses: Record<string, Record<string, unknown>>;
  };
  expect(responses["200"]).toMatchObject({
    content: {
      "application/json": { schema: { $ref: "#/components/schemas/SignIn" } },
      "text/csv": { schema: { type: "string" } },
      "application/x-ndjson": { schema: { type: "string", "x-item-schema": { type: "integer" } } },
      "text/html": { schema: { description: "A page" } },
    },
    headers: { "X-Odp-Warnings": {} },
  });
  expect(responses["302"]).toMatchObject({ headers: { Location: {} } });
});

test("a schema keeps its meaning in the words that generators know", () => {
  const choice = Type.Union([Type.Literal("a"), Type.Literal("b")], { description: "One" });
  expect(documented(choice)).toEqual({ type: "string", enum: ["a", "b"], description: "One" });
  const record = Type.Record(Type.String(), Type.Array(choice), { examples: [{ patternProperties: 1 }] });
  expect(documented(record)).toEqual({
    type: "object",
    additionalProperties: { type: "array", items: { type: "string", enum: ["a", "b"], description: "One" } },
    examples: [{ patternProperties: 1 }],
  });
  const mixed = Type.Union([Type.Literal("a"), Type.Integer()]);
  expect(documented(mixed)).toEqual({ anyOf: [{ type: "string", const: "a" }, { type: "integer" }] });
});

test("what services check besides is in the document alone: a value that does not fit it is taken as before", () => {
  const key = Type.String({ documented: { pattern: "^/" } });
  expect(documented(key)).toEqual({ type: "string", pattern: "^/" });
  expect(conforms(key, "relative")).toBe(true);
  const input = Type.Object(
    { id: Type.Optional(Type.String()), name: Type.Optional(key) },
    { documented: { anyOf: [{ required: ["id"] }, { required: ["name"] }] } },
  );
  expect(conforms(input, {})).toBe(true);
  expect(operation({ method: "PUT", path: "/a", input, body: "json" })).toMatchObject({
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: { allOf: [{ anyOf: [{ required: ["id"] }, { required: ["name"] }] }] } },
      },
    },
  });
  const whole = Type.Object({ id: Type.Optional(Type.String()) }, { documented: contentIn("id") });
  expect(operation({ method: "PUT", path: "/a", input: whole, body: "json" })).toMatchObject({
    requestBody: {
      required: false,
      content: { "application/json": { schema: { allOf: [{ anyOf: [{ required: ["id"] }, { maxProperties: 0 }] }] } } },
    },
  });
  const text = Type.Object({ mql: Type.Optional(Type.String()) }, { documented: { required: ["mql"] } });
  expect(operation({ method: "GET", path: "/a", input: text })).toMatchObject({ parameters: [{ required: true }] });
});

test("a number of a request is one that arrives as a number, within its own bounds", () => {
  const input = Type.Object({ from: Type.Integer({ minimum: 0 }), list: Type.Array(Type.Number()) });
  const { MIN_SAFE_INTEGER: minimum, MAX_SAFE_INTEGER: maximum } = Number;
  expect(operation({ method: "GET", path: "/a", input })).toMatchObject({
    parameters: [
      { name: "from", schema: { type: "integer", minimum: 0, maximum } },
      { name: "list", schema: { items: { type: "number", minimum, maximum } } },
    ],
  });
});

test("a text that is JSON is described as its value, and a text with members is not empty", () => {
  const text = { summary: "", example: '{"a":1}', json: Type.Object({ a: Type.Integer() }) };
  expect(operation({ method: "POST", path: "/a", input: Type.Object({}), body: "raw", text })).toMatchObject({
    requestBody: { content: { "application/json": { schema: { type: "object" }, example: { a: 1 } } } },
  });
  expect(operation({ method: "POST", path: "/a", input: Type.Object({}), body: "text" })).toMatchObject({
    requestBody: { content: { "text/plain": { schema: { type: "string", minLength: 1 } } } },
  });
});

test("the conditions of a change are those that can be read", () => {
  const { parameters = [] } = operation({ method: "PUT", path: "/a", input: Type.Object({}), revised: true }) as {
    parameters?: readonly { readonly schema: { readonly pattern?: string } }[];
  };
  const [match, none] = parameters.map(({ schema }) => schema);
  const texts = ["*", '"5f0c"', 'W/"5f0c", "6a"', "", "5f0c", '"a" "b"'];
  expect(texts.map((text) => new RegExp(match?.pattern ?? "^$").test(text))).toEqual([
    true,
    true,
    true,
    ...[0, 0, 0].map(() => false),
  ]);
  expect(texts.filter((text) => new RegExp(none?.pattern ?? "^$").test(text))).toEqual(["*"]);
});

test("the example call of an operation is in its parameters and its body", () => {
  const input = Type.Object({ key: Type.String(), value: Type.String() });
  expect(operation({ method: "POST", path: "/config/set", input, body: "form" })).toMatchObject({
    requestBody: {
      content: {
        "application/x-www-form-urlencoded": { example: { key: "/matrix/etc/mail", value: expect.any(String) } },
      },
    },
  });
  expect(operation({ method: "GET", path: "/config/get", input: Type.Object({ key: Type.String() }) })).toMatchObject({
    parameters: [{ name: "key", example: "/matrix/etc/mail" }],
  });
});

test("a socket is the extension of its path, with its frames and the ways in which it is closed", () => {
  const socket = socketEndpoint({
    path: "/follow/:name",
    permission: "objects:read",
    summary: "Follows",
    input: Type.Object({ name: Type.String(), from: Type.Optional(Type.Integer()) }),
    frames: Type.Object({ ready: Type.Literal(true) }),
    open: () => {},
  });
  const { paths } = openApiDocument([], { version: "0", sockets: [socket] }) as { paths: Documented };
  expect(paths["/follow/{name}"]).toEqual({
    "x-websocket": expect.objectContaining({
      "x-permission": "objects:read",
      parameters: [
        { name: "name", in: "path", required: true, schema: { type: "string" } },
        { name: "from", in: "query", required: false, schema: { type: "integer" } },
      ],
      frames: expect.objectContaining({ server: expect.objectContaining({ schema: expect.any(Object) }) }),
      closes: expect.arrayContaining([{ code: 1001, reason: "the controller stops" }]),
    }),
  });
});
