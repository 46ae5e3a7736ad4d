import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestHttp, type TestHttp } from "../helpers/http/http-app.ts";

/** Headers that a browser receives with every answer, for every request and every result. */

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

const UPGRADE = "GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

test.each(CALLS)(
  "%s %s says what it is, and that browsers are not to guess, to keep it or to tell other sites",
  async (method, url) => {
    for (const credentials of [{}, { cookie: `matrixSession=${session}` }]) {
      const { headers, body } = await http.app.inject({ method, url, headers: credentials });
      expect(headers).toMatchObject({ "x-content-type-options": "nosniff", "referrer-policy": "same-origin" });
      expect(headers["cache-control"]).toBe("no-store");
      if (body !== "")
        expect(headers["content-type"]).toMatch(/^(application\/json|text\/html|text\/plain);.*charset=utf-8/);
    }
  },
);

test.each(CALLS)("%s %s says what may be loaded, and that no page of another site takes it in", async (method, url) => {
  for (const credentials of [{}, { cookie: `matrixSession=${session}`, accept: "text/html" }]) {
    const { headers } = await http.app.inject({ method, url, headers: credentials });
    const policy = String(headers["content-security-policy"]);
    expect(policy).toMatch(/^default-src 'none';.*; frame-ancestors 'none'$/);
    expect(policy).not.toContain("unsafe");
    expect(headers["cross-origin-resource-policy"]).toBe("same-origin");
  }
});

test("a page of ours has no script, and no style but the one its policy names by its hash; nothing keeps it", async () => {
  const browser = { cookie: `matrixSession=${await http.signIn("viewer")}`, accept: "text/html" };
  for (const url of ["/", "/user/login", "/user/account"]) {
    const { headers, body } = await http.app.inject({ url, headers: browser });
    expect(headers, url).toMatchObject({ "cache-control": "no-store", "permissions-policy": expect.any(String) });
    const [, style = ""] = /<style>([^]*)<\/style>/.exec(body) ?? [];
    const hash = createHash("sha256").update(style).digest("base64");
    expect(headers["content-security-policy"]).toContain(`; style-src 'sha256-${hash}';`);
    expect(body).not.toMatch(/<script|\s(on\w+|style)=/i);
  }
});

test("what is answered to no call at all says the same", async () => {
  const { port } = await listening();
  for (const request of ["nonsense\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", UPGRADE]) {
    const answer = await answerTo(port, request);
    expect(answer).toMatch(/\r\nx-content-type-options: nosniff\r\n/);
    expect(answer).toMatch(/\r\ncontent-security-policy: default-src 'none';/);
  }
});

test("by HTTPS, which a trusted proxy says, browsers are told to come back by it for a year; strangers say nothing", async () => {
  const url = "/user/login";
  const byHttps = { "x-forwarded-proto": "https" };
  const hstsOf = async ({ app }: TestHttp, headers: Record<string, string>) =>
    (await app.inject({ url, headers })).headers["strict-transport-security"];
  expect(await hstsOf(http, byHttps)).toBeUndefined();
  const trustedProxies = ["127.0.0.1"];
  await using proxied = await openTestHttp({ settings: { trustedProxies } });
  expect(await hstsOf(proxied, byHttps)).toBe("max-age=31536000; includeSubDomains");
  expect(await hstsOf(proxied, { "x-forwarded-proto": "http" })).toBeUndefined();
  await using narrow = await openTestHttp({ settings: { trustedProxies, hsts: "host" } });
  expect(await hstsOf(narrow, byHttps)).toBe("max-age=31536000");
  await using without = await openTestHttp({ settings: { trustedProxies, hsts: "off" } });
  expect(await hstsOf(without, byHttps)).toBeUndefined();
});

test("no folder of the machine is served: neither a repository nor a file beside the program", async () => {
  const cookie = { cookie: `matrixSession=${session}` };
  const urls = [".git/config", ".git/HEAD", "package.json", "odp.toml", "../package.json", "..%2fpackage.json"];
  for (const url of ["", "/static", "/fs", "/user"].flatMap((folder) => urls.map((one) => `${folder}/${one}`))) {
    const { body } = await http.app.inject({ url, headers: cookie });
    expect(JSON.parse(body), url).toMatchObject({ status: "error", code: "not_found" });
  }
});

test("signing out takes the cookie, and leaves nothing that a browser kept", async () => {
  const cookie = `matrixSession=${await http.signIn("viewer")}`;
  const page = await http.app.inject({ url: "/user/account", headers: { cookie, accept: "text/html" } });
  expect(page.headers["cache-control"]).toBe("no-store");
  const out = await http.app.inject({ url: "/user/logout", headers: { cookie } });
  expect(out.headers["set-cookie"]).toMatch(/^matrixSession=; .*Expires=Thu, 01 Jan 1970/);
  const after = await http.app.inject({ url: "/user/sessions", headers: { cookie } });
  expect(after.json()).toMatchObject({ status: "signin" });
});

test("TRACE is answered as any method that is not there, and repeats nothing", async () => {
  const { port } = await listening();
  const answer = await answerTo(
    port,
    "TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nCookie: matrixSession=told\r\n\r\n",
  );
  expect(answer).toContain(`"code":"method_not_allowed"`);
  expect(answer).not.toContain("told");
});

test("the field of a password hides it, takes what a password manager fills in, and no script watches it", async () => {
  const { body } = await http.app.inject({ url: "/user/login" });
  const [field = ""] = /<input [^>]*name="password"[^>]*>/.exec(body) ?? [];
  expect(field).toMatch(/ type="password"/);
  expect(field).toMatch(/ autocomplete="current-password"/);
  expect(body).not.toMatch(/<script|\son\w+=|maxlength|readonly/i);
});

async function listening(): Promise<AddressInfo> {
  if (!http.app.server.listening) await http.app.listen({ host: "127.0.0.1", port: 0 });
  return http.app.server.address() as AddressInfo;
}

/** Everything that the server sends until it closes the connection. */
async function answerTo(port: number, request: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.write(request);
  let answer = "";
  for await (const chunk of socket.setEncoding("utf8")) answer += String(chunk);
  return answer;
}
