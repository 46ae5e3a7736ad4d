import { Type } from "typebox";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { SESSION_COOKIE } from "../answer/answer.ts";
import { endpoint } from "../interface/endpoint.ts";

let http: TestHttp;

beforeAll(async () => {
  const common = { method: "POST", permission: "objects:read", summary: "", output: Type.Unknown() } as const;
  const input = Type.Object({ mql: Type.Optional(Type.String()) });
  http = await openTestHttp({
    endpoints: (["text", "json"] as const).map((body) =>
      endpoint({ ...common, path: `/${body}`, body, input, handler: async ({ text }) => ({ message: text ?? "" }) }),
    ),
  });
});

afterAll(() => http[Symbol.asyncDispose]());

/** A browser that has a cookie and no proof of its origin: the body is looked at before the permission, for a session. */
async function post(path: string, payload: string): Promise<Record<string, unknown>> {
  const cookie = `${SESSION_COOKIE}=${await http.signIn("admin")}`;
  const headers = { cookie, "user-agent": "Mozilla/5.0", "content-type": "application/json" };
  return (await http.app.inject({ method: "POST", url: path, payload, headers })).json();
}

test.each(["/text", "/json"])("a browser is answered where a body is no JSON, small or large, at %s", async (path) => {
  for (const text of ["x", "x".repeat(3_000_000)])
    expect(await post(path, `{"mql":\n"${text}" 1`)).toMatchObject({
      status: "error",
      code: "syntax",
      details: { line: 2, column: text.length + 4 },
    });
});
