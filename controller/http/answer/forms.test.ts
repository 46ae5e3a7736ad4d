import { Readable } from "node:stream";
import { Type } from "typebox";
import { expect, test } from "vitest";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { endpoint, type Answer, type BareAnswers } from "../interface/endpoint.ts";
import { ANY_TYPE, formCheck } from "./forms.ts";

const FORMS: readonly (readonly [form: string, answer: Answer<unknown>, declared: BareAnswers])[] = [
  ["content", { content: "a", contentType: "text/csv; charset=utf-8" }, { content: { "text/csv": { summary: "" } } }],
  ["json", { json: 1 }, { json: Type.Unknown() }],
  ["page", { page: "<p>", policy: "" }, { page: "A page" }],
  ["redirect", { redirect: "/" }, { redirect: "Elsewhere" }],
];

test.each(FORMS)("an answer has only a form that its endpoint declares: %s", (_form, answer, bare) => {
  expect(() => formCheck({ bare })(answer)).not.toThrow();
  expect(() => formCheck({})(answer)).toThrow("does not declare");
  const others = FORMS.filter(([, other]) => other !== answer).map(([, , declared]) => declared);
  for (const other of others) expect(() => formCheck({ bare: other })(answer)).toThrow("does not declare");
});

test("content has a type that is declared, and any type where the file decides", () => {
  const check = (...types: readonly string[]) =>
    formCheck({ bare: { content: Object.fromEntries(types.map((type) => [type, { summary: "" }])) } });
  const csv = { content: Readable.from([]), contentType: "Text/CSV; charset=gbk" };
  expect(() => check("text/plain", "text/csv")(csv)).not.toThrow();
  expect(() => check(ANY_TYPE)(csv)).not.toThrow();
  expect(() => check("text/plain")(csv)).toThrow("content of the type text/csv");
});

test("events and the envelope are declared, too, and an empty answer is declared by its status", () => {
  const events = (async function* () {})();
  expect(() => formCheck({ events: true })({ events })).not.toThrow();
  expect(() => formCheck({})({ events })).toThrow("events");
  expect(() => formCheck({ bare: { only: true } })({ message: "" })).toThrow("envelope");
  expect(() => formCheck({ bare: { json: Type.Unknown() } })({ message: "" })).not.toThrow();
  expect(() => formCheck({ bare: { only: true } })({ empty: 304 })).not.toThrow();
});

test("an answer in an undeclared form is a fault, and nothing of it is sent", async () => {
  const undeclared = endpoint({
    method: "GET",
    path: "/undeclared",
    permission: "public",
    summary: "",
    input: Type.Object({}),
    output: Type.Unknown(),
    handler: async () => ({ json: "a secret" }),
  });
  await using http = await openTestHttp({ endpoints: [undeclared] });
  const { statusCode, body } = await http.app.inject({ url: "/undeclared" });
  expect([statusCode, JSON.parse(body)]).toEqual([500, expect.objectContaining({ code: "internal" })]);
  expect(body).not.toContain("a secret");
});
