import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../helpers/http/http-app.ts";

/**
 * A page of another site could send the password of its author; the victim would then work, and write, as that author.
 * Therefore only pages of this site sign in a browser. Any call signs in a program.
 */

const HOST = "odp.example:8080";
const AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const browser = (headers: Readonly<Record<string, string>>) => ({ "user-agent": AGENT, ...headers });

const FOREIGN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "a form of another site": browser({ "sec-fetch-site": "cross-site", origin: "https://evil.example" }),
  "a form of a sibling site": browser({ "sec-fetch-site": "same-site", origin: "https://wiki.example" }),
  "a link on another site": browser({ "sec-fetch-site": "cross-site" }),
  "a link in a mail": browser({ "sec-fetch-site": "none" }),
  "a form of another site in an older browser": browser({ origin: "https://evil.example" }),
  "a link on another site in an older browser": browser({ referer: "https://evil.example/?odp.example:8080" }),
  "a sandboxed frame": browser({ origin: "null" }),
  "the same host on another port": browser({ origin: "http://odp.example:9090" }),
};

const OWN: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "our own form": browser({ "sec-fetch-site": "same-origin", origin: `http://${HOST}` }),
  "our own form in an older browser": browser({ origin: `http://${HOST}` }),
  "our own page in an older browser": browser({ referer: `http://${HOST}/user/login` }),
  "our own script": browser({ "x-requested-with": "XMLHttpRequest" }),
  "a program": { "user-agent": "curl/8" },
  "a program without a name": {},
  "a program with the name of a browser": browser({}),
};

const LOGIN = { company: "matrix", username: "admin", password: PASSWORD };
const FORM = {
  headers: { "content-type": "application/x-www-form-urlencoded" },
  payload: new URLSearchParams(LOGIN).toString(),
};
const GOAUTH = { username: "matrix.admin", password: PASSWORD };
const WAYS: readonly (InjectOptions & { readonly method: "GET" | "POST"; readonly url: string })[] = [
  { method: "POST", url: "/user/login", ...FORM },
  { method: "POST", url: "/user/signin", ...FORM },
  { method: "POST", url: "/user/signin", headers: { "content-type": "text/plain" }, payload: JSON.stringify(LOGIN) },
  { method: "GET", url: `/user/signin?${FORM.payload}` },
  { method: "POST", url: "/user/goauth", ...FORM, payload: new URLSearchParams(GOAUTH).toString() },
];

let http: TestHttp;
beforeAll(async () => {
  http = await openTestHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

const send = (way: InjectOptions, headers: Readonly<Record<string, string>>) =>
  http.app.inject({ ...way, headers: { host: HOST, ...way.headers, ...headers } });

describe.each(WAYS.map((way) => [`${way.method} ${way.url.slice(0, 24)}`, way] as const))("%s", (_name, way) => {
  test.each(Object.entries(FOREIGN))("%s signs nobody in", async (_sender, headers) => {
    const before = http.trail.records.length;
    const answer = await send(way, headers);
    expect(answer.headers["set-cookie"]).toBeUndefined();
    expect(answer.json()).toMatchObject({ status: "error", code: "denied" });
    expect(http.trail.records.length, "the password is not looked at").toBe(before);
  });

  test.each(Object.entries(OWN))("%s signs in", async (_sender, headers) => {
    expect((await send(way, headers)).headers["set-cookie"]).toMatch(/^matrixSession=/);
  });
});

test("a person whose form came from elsewhere is shown ours, which says so", async () => {
  const headers = { accept: "text/html", ...FOREIGN["a form of another site"] };
  const [way] = WAYS;
  const { location } = (await send(way ?? {}, headers)).headers;
  expect(location).toBe("/user/login?error=foreign");
  expect((await http.app.inject({ url: String(location), headers })).body).toContain("Please sign in on this page.");
});
