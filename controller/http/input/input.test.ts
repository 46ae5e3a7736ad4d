import { Type, type TObject } from "typebox";
import { describe, expect, test } from "vitest";
import { isAppError } from "../../../common/errors.ts";
import { JSON_LEADING_BLANKS_MAX } from "../../../common/limits.ts";
import { interpret } from "../body/body.ts";
import type { Endpoint } from "../interface/endpoint.ts";
import { parseUrlEncoded } from "../body/form-decoder.ts";
import { outputFilter } from "../answer/filter.ts";
import { readInput } from "./input.ts";
import { parseJson } from "../../../common/json.ts";

interface Sent {
  readonly query?: string;
  readonly body?: string;
  readonly type?: string;
  readonly as?: Endpoint["body"];
  readonly path?: Readonly<Record<string, string>>;
}

function read(input: TObject, { query = "", body = "", type = "", as, path = {} }: Sent): unknown {
  const endpoint = {
    path: Object.keys(path)
      .map((name) => `/:${name}`)
      .join(""),
    input,
    ...(as !== undefined && { body: as }),
  };
  const read = interpret(endpoint, body, type);
  const params = new Map(Object.entries(path).map(([name, value]) => [name, [value]]));
  return readInput(endpoint, {
    path: params,
    query: parseUrlEncoded(query),
    body: read.fields,
    bodyIsJson: read.isJson,
  });
}

const FORM = "application/x-www-form-urlencoded; charset=UTF-8";
const Job = Type.Object({
  name: Type.String(),
  host: Type.Optional(Type.Array(Type.String())),
  timeout: Type.Optional(Type.Integer()),
  enable: Type.Optional(Type.Boolean()),
  config: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});

test.each([
  ["name", '{"name":"a\\ud800b"}'],
  ["host", '{"name":"a","host":["x","\\udc00"]}'],
])("half of a character, which no store keeps, is refused with the name of its member: %s", (name, body) => {
  expect(() => read(Job, { body })).toThrow(`${name} has a lone surrogate, half of a character: "`);
  expect(read(Job, { body: '{"name":"\\ud83d\\ude00","config":{"a":"\\ud800"}}' })).toMatchObject({ name: "😀" });
});

describe("what clients send", () => {
  test.each(["text/plain;charset=UTF-8", "json", "application/text", "application/json;charset=utf-8", FORM, ""])(
    "JSON is JSON under the type %j",
    (type) => {
      expect(read(Job, { type, body: ` {"name":"a","host":["x","y"],"timeout":5}` })).toEqual({
        name: "a",
        host: ["x", "y"],
        timeout: 5,
      });
    },
  );

  test("bracket lists, plain repeats and a single value are lists", () => {
    for (const body of ["name=a&host[]=x&host[]=y", "name=a&host=x&host=y", "name=a&host%5B%5D=x&host%5B%5D=y"]) {
      expect(read(Job, { type: FORM, body })).toEqual({ name: "a", host: ["x", "y"] });
    }
    expect(read(Job, { type: FORM, body: "name=a&host=x" })).toEqual({ name: "a", host: ["x"] });
    expect(read(Job, { type: FORM, body: "name=a&host=" })).toEqual({ name: "a", host: [] });
  });

  test("nested brackets are objects", () => {
    expect(read(Job, { type: FORM, body: "name=a&config[user]=u&config[list][]=1&config[list][]=2" })).toEqual({
      name: "a",
      config: { user: "u", list: ["1", "2"] },
    });
  });

  test("words for nothing are nothing in forms and queries, and words in JSON and paths", () => {
    expect(read(Job, { query: "name=a&timeout=undefined&host=null&enable=" })).toEqual({ name: "a" });
    expect(read(Job, { body: `{"name":"null","timeout":null}`, as: "json" })).toEqual({ name: "null" });
    expect(read(Job, { path: { name: "null" } })).toEqual({ name: "null" });
  });

  test("text becomes what the schema wants, and JSON values as well", () => {
    expect(read(Job, { query: "name=5&timeout=60&enable=1" })).toEqual({ name: "5", timeout: 60, enable: true });
    expect(read(Job, { body: `{"name":5,"timeout":"60","enable":"false"}`, as: "json" })).toEqual({
      name: "5",
      timeout: 60,
      enable: false,
    });
    expect(read(Job, { type: FORM, body: `name=a&config=${encodeURIComponent(`{"a":{"b":1}}`)}` })).toEqual({
      name: "a",
      config: { a: { b: 1 } },
    });
    expect(read(Job, { type: FORM, body: "name=a&config=[object Object]" })).toEqual({ name: "a" });
  });

  test("body goes over query over path, and a missing word does not hide what comes later", () => {
    expect(read(Job, { path: { name: "path" }, query: "name=query", type: FORM, body: "name=body" })).toEqual({
      name: "body",
    });
    expect(read(Job, { path: { name: "path" }, query: "name=query", type: FORM, body: "name=undefined" })).toEqual({
      name: "query",
    });
  });

  test("decoded exactly once", () => {
    expect(read(Job, { type: FORM, body: `name=${encodeURIComponent(encodeURIComponent("ä b&c"))}` })).toEqual({
      name: encodeURIComponent("ä b&c"),
    });
    expect(read(Job, { query: "name=100%+sure%zz" })).toEqual({ name: "100% sure%zz" });
  });

  test("free text stays text whatever it is called", () => {
    const bare = {
      path: "/mql",
      input: Type.Object({ mql: Type.Optional(Type.String()), meta: Type.Optional(Type.Boolean()) }),
    };
    const endpoint = { ...bare, body: "text" as const };
    const mql = "select * from /m/a where b='1'&c=2";
    for (const type of ["text/plain", "application/json", FORM, ""]) {
      expect(interpret(endpoint, mql, type).text).toBe(mql);
      expect(interpret({ ...bare, body: "form" }, mql, type).text).toBe(mql);
    }
    expect(interpret(endpoint, mql, FORM).fields.size).toBe(0);
    expect(interpret(endpoint, "mql=select+1&meta=true", FORM).fields.get("mql")).toEqual(["select 1"]);
    expect(interpret(endpoint, `{"mql":"select 1","values":[[1]]}`, "application/json").fields.get("mql")).toEqual([
      "select 1",
    ]);
    expect(interpret(endpoint, "key:a\tval:1\n", FORM).text).toBe("key:a\tval:1\n");
  });

  test("under application/json a text that begins like JSON is JSON, also where free texts are taken", () => {
    const input = Type.Object({ mql: Type.Optional(Type.String()) });
    const typed = ["application/json", "Application/JSON;charset=utf-8", "application/problem+json"];
    for (const body of ["text", "json", "form", "multipart", undefined] as const) {
      const endpoint = { path: "/mql", input, ...(body && { body }) };
      for (const broken of [`{"mql":"select 1"`, "[draft] a", " {}}"]) {
        for (const type of typed)
          expect(() => interpret(endpoint, broken, type), `${body} ${broken} ${type}`).toThrow(
            expect.objectContaining({ code: "syntax" }),
          );
      }
      for (const type of typed)
        expect([...interpret(endpoint, `{"mqll":"select 1"}`, type).fields]).toEqual([["mqll", ["select 1"]]]);
    }
  });

  test("where free texts are taken, lines of JSON and texts of other types stay what they are", () => {
    const endpoint = { path: "/mql", input: Type.Object({ mql: Type.Optional(Type.String()) }), body: "text" } as const;
    const lines = `{"a":1}\n{"a":2}`;
    for (const type of ["application/x-ndjson", "text/plain", "json", FORM, ""])
      expect(interpret(endpoint, lines, type)).toMatchObject({ text: lines, fields: new Map() });
    expect(interpret(endpoint, `{"mqll":1}`, "text/plain").fields.size).toBe(0);
  });

  test("JSON behind thousands of blanks is refused by the bound, and never left out of account", () => {
    const endpoint = { path: "/x", input: Type.Object({ name: Type.Optional(Type.String()) }) };
    const blanks = " ".repeat(JSON_LEADING_BLANKS_MAX);
    expect(interpret(endpoint, `${blanks}{"name":"a"}`, "application/json").fields.get("name")).toEqual(["a"]);
    const tooMany = `${blanks} {"name":"a"}`;
    const refused = expect.objectContaining({ code: "syntax", details: { limit: "JSON_LEADING_BLANKS_MAX" } });
    expect(() => interpret(endpoint, tooMany, "application/json")).toThrow(refused);
    expect(() => interpret({ ...endpoint, body: "json" }, tooMany, "")).toThrow(refused);
    expect(interpret({ ...endpoint, body: "text" }, tooMany, "application/json").text).toBe(tooMany);
  });

  test("a free text that is JSON cannot name another thing than its path", () => {
    const Variable = Type.Object({ key: Type.String(), ttl: Type.Optional(Type.Integer()) });
    expect(read(Variable, { path: { key: "mine" }, body: `{"key":"yours","ttl":1}`, as: "text" })).toMatchObject({
      key: "mine",
    });
  });

  test("of a raw body nothing is read, whatever it looks like", () => {
    const Variable = Type.Object({ key: Type.String(), ttl: Type.Optional(Type.Integer()) });
    for (const body of [`{"key":"yours","ttl":1,"sessionid":"x"}`, "key=yours&ttl=1", "[1]", "{broken"]) {
      for (const type of [FORM, "application/json", "text/plain", ""])
        expect(read(Variable, { path: { key: "mine" }, query: "ttl=5", body, type, as: "raw" })).toEqual({
          key: "mine",
          ttl: 5,
        });
    }
  });

  test("a bare list is the member items", () => {
    const Rows = Type.Object({ name: Type.String(), items: Type.Array(Type.Record(Type.String(), Type.Unknown())) });
    expect(read(Rows, { path: { name: "t" }, body: `[{"a":1}]`, as: "json" })).toEqual({
      name: "t",
      items: [{ a: 1 }],
    });
  });

  test("unknown members are ignored, at every depth", () => {
    const Outer = Type.Object({ inner: Type.Object({ a: Type.Integer() }) });
    expect(read(Outer, { body: `{"x":1,"inner":{"a":1,"b":2}}`, as: "json" })).toEqual({ inner: { a: 1 } });
  });
});

describe("what is refused, and how", () => {
  const message = (action: () => unknown): string => {
    try {
      action();
    } catch (error) {
      if (isAppError(error, "invalid", "syntax", "too_large")) return error.message;
      throw error;
    }
    return "nothing was refused";
  };

  test("messages name the field", () => {
    expect(message(() => read(Job, {}))).toBe("name is missing.");
    expect(message(() => read(Job, { query: "name=a&timeout=soon" }))).toBe("timeout must be integer.");
    const Unit = Type.Object({ unit: Type.Union([Type.Literal("day"), Type.Literal("hour")]) });
    expect(message(() => read(Unit, { query: "unit=week" }))).toBe("unit must be one of day, hour.");
    const Hosts = Type.Object({ hosts: Type.Array(Type.Object({ port: Type.Integer() })) });
    expect(message(() => read(Hosts, { body: `{"hosts":[{"port":1},{"port":"x"}]}`, as: "json" }))).toBe(
      "hosts[1].port must be integer.",
    );
  });

  test("broken JSON where JSON was promised", () => {
    expect(message(() => read(Job, { body: `{"name":`, type: "application/json" }))).toMatch(/^Not valid JSON/);
  });

  test("too many fields, too deep JSON", () => {
    expect(message(() => parseUrlEncoded("a=1&".repeat(2_001)))).toMatch(/More than 2000/);
    expect(message(() => parseJson("[".repeat(65) + "]".repeat(65)))).toMatch(/nested deeper/);
    expect(parseJson(`"${"[".repeat(65)}"`)).toBe("[".repeat(65));
  });

  test("no member reaches a prototype", () => {
    const Free = Type.Object({ config: Type.Optional(Type.Record(Type.String(), Type.Unknown())) });
    const sent = [
      {
        body: `{"__proto__":{"polluted":1},"config":{"__proto__":{"polluted":1},"a":{"\\u005f_proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}}`,
        as: "json" as const,
      },
      { body: "__proto__[polluted]=1&config[__proto__][polluted]=1&config[a]=1", type: FORM },
    ];
    for (const each of sent) {
      const input = read(Free, each) as { config: Record<string, unknown> };
      expect(Object.getPrototypeOf(input.config)).toBe(Object.prototype);
      expect(JSON.stringify(input)).not.toContain("polluted");
    }
    expect("polluted" in {}).toBe(false);
  });
});

describe("what is sent", () => {
  test("members the schema does not name are left out, the value itself stays whole", () => {
    const Host = Type.Object({
      name: Type.String(),
      config: Type.Optional(Type.Record(Type.String(), Type.Object({ a: Type.Integer() }))),
    });
    const value = [{ name: "h", secret: "s", config: { x: { a: 1, b: 2 } } }];
    expect(outputFilter(Type.Array(Host))?.(value)).toEqual([{ name: "h", config: { x: { a: 1 } } }]);
    expect(value[0]?.secret).toBe("s");
  });

  test("of a union the variant that fits decides; what fits none is not sent", () => {
    const either = outputFilter(Type.Union([Type.Object({ a: Type.Integer() }), Type.String()]));
    expect(either?.({ a: 1, secret: 1 })).toEqual({ a: 1 });
    expect(either?.("text")).toBe("text");
    expect(either?.({ secret: 1 })).toBe(null);
  });

  test("a schema that leaves nothing out costs nothing", () => {
    expect(outputFilter(Type.Array(Type.Record(Type.String(), Type.Unknown())))).toBeUndefined();
  });
});
