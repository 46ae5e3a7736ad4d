import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, type TestHttp } from "../helpers/http-app.ts";

/** What a browser is told with every answer, whatever was asked and however it ended. */

let http: TestHttp;
let session: string;
beforeAll(async () => {
  http = await openTestHttp();
  session = await http.signIn("viewer");
});
afterAll(() => http[Symbol.asyncDispose]());

const CALLS = [
  ["GET", "/"],
  ["GET", "/user/login"],
  ["POST", "/user/login"],
  ["GET", "/user/account"],
  ["GET", "/user/logout"],
  ["GET", "/user/sessions"],
  ["DELETE", "/user/sessions/none"],
  ["GET", "/admin/users"],
  ["GET", "/openapi.json"],
  ["GET", "/metrics"],
  ["GET", "/healthz"],
  ["GET", "/nowhere"],
  ["GET", "/user/%zz"],
  ["PATCH", "/user/sessions"],
  ["OPTIONS", "/user/sessions"],
] as const;

test.each(CALLS)(
  "%s %s says what it is, and that browsers are not to guess or to tell other sites",
  async (method, url) => {
    for (const credentials of [{}, { cookie: `matrixSession=${session}` }]) {
      const { headers, body } = await http.app.inject({ method, url, headers: credentials });
      expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "same-origin" });
      if (body !== "")
        expect(headers["content-type"]).toMatch(/^(application\/json|text\/html|text\/plain);.*charset=utf-8/);
    }
  },
);

test("TRACE is answered as any method that is not there, and repeats nothing", async () => {
  await http.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = http.app.server.address() as AddressInfo;
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write("TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: matrixSession=told\r\n\r\n");
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
  expect(answer).toContain(`"code":"not_found"`);
  expect(answer).not.toContain("told");
});

test("the field of a password hides it, takes what a password manager fills in, and no script watches it", async () => {
  const { body } = await http.app.inject({ url: "/user/login" });
  const [field = ""] = /<input [^>]*name="password"[^>]*>/.exec(body) ?? [];
  expect(field).toMatch(/ type="password"/);
  expect(field).toMatch(/ autocomplete="current-password"/);
  expect(body).not.toMatch(/<script|\son\w+=|maxlength|readonly/i);
});
