import { expect, test } from "vitest";
import { openedGifts, parseParameters } from "./parameters.ts";

test.each([
  ["__proto__", '"x"'],
  [String.raw`\u005f_proto__`, "null"],
  ["__proto__", "9007199254740993"],
  ["constructor", '{"prototype":{}}'],
])("a parameter called %s of the value %s, which would be lost, is refused by its name", (name, value) => {
  const told = `param has a member ${JSON.parse(`"${name}"`)}, which would be lost. Choose another name.`;
  const refused = expect.objectContaining({ code: "invalid", message: told }) as Error;
  expect(() => parseParameters(`{"a":"1","${name}":${value}}`)).toThrow(refused);
  expect(() => parseParameters(`{"a":{"b":[{"${name}":${value}}]}}`), "within a value").toThrow(refused);
});

test("parameters called like members of every object, and values that say such names, are passed on", () => {
  const { names, environment } = parseParameters('{"constructor":"a","toString":"b","c":"__proto__"}');
  expect(names).toEqual(["constructor", "toString", "c"]);
  expect(environment).toMatchObject({ constructor: "a", toString: "b", ODP_PARAM_C: "__proto__" });
});

test.each([
  ['"a\\nb"', "a\nb"],
  ['{"base64":"AP8="}', "\x00\xff"],
  ['""', ""],
])("STDIN! of %s is the standard input, and is named among what was given", (given, bytes) => {
  const { environment, names } = parseParameters(`{"a":"1","STDIN!":${given}}`);
  expect(names).toEqual(["a", "STDIN!"]);
  const { input, ...gifts } = openedGifts(
    { open: (text) => text },
    { tenant: "t", runId: "r" },
    JSON.stringify(environment),
  );
  expect(Buffer.from(input ?? "none").toString("latin1")).toBe(bytes);
  expect(gifts).toEqual({ environment: { a: "1", ODP_PARAM_A: "1" } });
});

test.each(["1", "null", "[]", "{}", '{"base64":"A"}', '{"base64":"ÄÄÄÄ"}', '"\\ud800"'])(
  "a STDIN! of %s is refused",
  (given) => {
    expect(() => parseParameters(`{"STDIN!":${given}}`)).toThrow(expect.objectContaining({ code: "invalid" }) as Error);
  },
);
