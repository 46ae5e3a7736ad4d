import { Type } from "typebox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HTTP_PUBLIC_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { endpoint, type Endpoint } from "../interface/endpoint.ts";

const FORM = "application/x-www-form-urlencoded";
const LARGE = "x".repeat(300_000);

const input = Type.Object({
  name: Type.Optional(Type.String()),
  hosts: Type.Optional(Type.Array(Type.String(), { maxItems: 2_000 })),
  config: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  rows: Type.Optional(Type.Array(Type.Object({ id: Type.Unknown(), in: Type.Optional(Type.Array(Type.Unknown())) }))),
});
const told = { summary: "", input, output: Type.Unknown() } as const;
const handler: Endpoint["handler"] = ({ input: given, principal }) =>
  Promise.resolve({ message: { user: principal.user, ...(given as object) } });

let http: TestHttp;
let session: string;

beforeAll(async () => {
  http = await openTestHttp({
    endpoints: [
      endpoint({ ...told, method: "POST", path: "/large", permission: "objects:write", handler }),
      endpoint({ ...told, method: "POST", path: "/open", permission: "public", handler }),
      endpoint({ ...told, method: "POST", path: "/some", permission: "public", bodyMaxBytes: 100_000, handler }),
    ],
  });
  session = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

async function send(url: string, { type = "application/json", payload = "" } = {}) {
  const headers = { "content-type": type };
  const answer = await http.app.inject({ method: "POST", url, headers, payload });
  return answer.json() as { status: string; code?: string; message: unknown; details?: unknown };
}

const multipart = (...fields: readonly (readonly [name: string, value: string])[]): string =>
  `${fields.map(([name, value]) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`).join("")}--B--\r\n`;

describe("a caller whose session is in the body", () => {
  const bodies = {
    form: [FORM, (of: string) => `sessionid=${of}&name=${LARGE}`, `name=${LARGE}`],
    JSON: ["application/json", (of: string) => `{"sessionid": "${of}", "name": "${LARGE}"}`, `{"name":"${LARGE}"}`],
    multipart: [
      "multipart/form-data; boundary=B",
      (of: string) => multipart(["sessionid", of], ["name", LARGE]),
      multipart(["name", LARGE]),
    ],
  } as const;

  test.each(Object.entries(bodies))("is known by its beginning: %s", async (_kind, [type, payload]) => {
    const { message } = await send("/large", { type, payload: payload(session) });
    expect(message).toEqual({ user: "admin", name: LARGE });
  });

  test.each(Object.entries(bodies))(
    "is nobody by a session that does not hold, or none: %s",
    async (_kind, [type, payload, without]) => {
      expect(await send("/large", { type, payload: payload("none") })).toMatchObject({ status: "signin" });
      expect((await send("/large", { type, payload: without })).status).not.toBe("ok");
    },
  );
});

describe("a body beyond the bound of its endpoint is refused by the bound's name and value", () => {
  const refusal = (limit: string, maxBytes: number): object => ({
    code: "too_large",
    message: `The body is larger than ${maxBytes} bytes (${limit}).`,
  });
  const ofSize = (bytes: number): string => `{"name":"${"x".repeat(bytes - 11)}"}`;

  test("of a public one", async () => {
    const max = HTTP_PUBLIC_BODY_MAX_BYTES;
    expect(await send("/open", { payload: ofSize(max) })).toMatchObject({ status: "ok" });
    expect(await send("/open", { payload: ofSize(max + 1) })).toMatchObject(refusal("HTTP_PUBLIC_BODY_MAX_BYTES", max));
    const large = { payload: ofSize(max + 1) };
    expect(await send(`/open?sessionid=${session}`, large), "also who is signed in").toMatchObject({
      code: "too_large",
    });
  });

  test("of a public one that says more", async () => {
    expect(await send("/some", { payload: ofSize(100_000) })).toMatchObject({ status: "ok" });
    expect(await send("/some", { payload: ofSize(100_001) })).toMatchObject(refusal("bodyMaxBytes", 100_000));
  });
});

describe("values that are decoded in slices are those of small texts", () => {
  const rows = Array.from({ length: 5_000 }, (_, at) => ({ id: at, in: [`${at}`, null, at / 2] }));
  const message = { user: "admin", rows };

  test("a large JSON body", async () => {
    expect((await send(`/large?sessionid=${session}`, { payload: JSON.stringify({ rows }) })).message).toEqual(message);
  });

  test("a field of a large form or multipart body that is JSON, and texts within it that are JSON", async () => {
    const text = JSON.stringify(rows.map(({ id, in: inner }) => ({ id, in: JSON.stringify(inner) })));
    const payload = new URLSearchParams({ sessionid: session, rows: text }).toString();
    expect((await send("/large", { type: FORM, payload })).message).toEqual(message);
    const parts = multipart(["sessionid", session], ["rows", text]);
    expect((await send("/large", { type: "multipart/form-data; boundary=B", payload: parts })).message).toEqual(
      message,
    );
  });

  test("of a long list that does not fit the first fault is told, with its place, also where only its length is one", async () => {
    const url = `/large?sessionid=${session}`;
    const wrong = rows.map((row, at) => (at === 4_000 ? 5 : row));
    const payload = JSON.stringify({ rows: wrong });
    expect(await send(url, { payload })).toMatchObject({ code: "invalid", message: "rows[4000] must be object." });
    const hosts = JSON.stringify({ hosts: Array.from({ length: 2_001 }, (_, at) => `h${at}`) });
    expect(await send(url, { payload: hosts })).toMatchObject({
      code: "invalid",
      message: "hosts must not have more than 2000 items.",
    });
  });

  test("one that is broken is refused as a small one is", async () => {
    const url = `/large?sessionid=${session}`;
    const broken = JSON.stringify({ rows }).slice(0, -2);
    expect(await send(url, { payload: broken })).toMatchObject({ code: "syntax" });
    const payload = new URLSearchParams({ rows: broken }).toString();
    expect(await send(url, { type: FORM, payload })).toMatchObject({ code: "invalid" });
  });

  test("whole numbers beyond 2^53 are exact, however small the text", async () => {
    const url = `/large?sessionid=${session}`;
    const payload = '{"rows":[{"id":9007199254740993},{"id":-9223372036854775808},{"id":9007199254740991}]}';
    expect((await send(url, { payload })).message).toMatchObject({
      rows: [{ id: "9007199254740993" }, { id: "-9223372036854775808" }, { id: 9007199254740991 }],
    });
    const form = new URLSearchParams({ rows: '[{"id":9007199254740993}]' }).toString();
    expect((await send(url, { type: FORM, payload: form })).message).toMatchObject({
      rows: [{ id: "9007199254740993" }],
    });
  });
});
