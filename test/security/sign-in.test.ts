import { verify } from "@node-rs/argon2";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { decodeStored } from "../../controller/store/format.ts";
import { PASSWORD, type TestHttp } from "../helpers/http/http-app.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";

vi.mock("@node-rs/argon2", { spy: true });

let http: TestHttp;
beforeAll(async () => {
  // The controller that an earlier file loaded uses the module without the spy.
  vi.resetModules();
  const { openTestHttp } = await import("../helpers/http/http-app.ts");
  http = await openTestHttp();
});
afterAll(() => http[Symbol.asyncDispose]());

const post = (url: string, payload: object, headers: Record<string, string> = {}) =>
  http.app.inject({ method: "POST", url, payload, headers });
const LOGIN = { company: "matrix", username: "viewer", password: PASSWORD };

test("whoever is not there costs the same hash as a wrong password", async () => {
  const work = async (members: object): Promise<readonly string[]> => {
    vi.mocked(verify).mockClear();
    const answer = await post("/user/signin", { ...LOGIN, password: "wrong", ...members });
    expect(answer.json()).toMatchObject({ code: "denied", message: "Company, user name or password are wrong." });
    // The parameters of a hash determine its cost.
    return vi.mocked(verify).mock.calls.map(([hash]) => String(hash).split("$").slice(0, 4).join("$"));
  };
  const known = await work({});
  expect(known).toEqual(["$argon2id$v=19$m=19456,t=2,p=1"]);
  for (const members of [{ username: "nobody" }, { company: "nowhere" }, { username: "no/such" }])
    expect(await work(members), JSON.stringify(members)).toEqual(known);
});

test("no sign-in takes over a session id that came with it", async () => {
  const planted = "A".repeat(43);
  for (const url of ["/user/login", "/user/goauth", "/user/signin"]) {
    const payload = { ...LOGIN, sessionid: planted, session: planted, id: planted };
    const answer = await post(`${url}?sessionid=${planted}`, payload, { cookie: `matrixSession=${planted}` });
    expect(String(answer.headers["set-cookie"]), url).toMatch(/^matrixSession=(?!A{43})[\w-]{43};/);
  }
  expect(await http.users.bySession(planted, "")).toBeUndefined();
});

test("the session that a browser had is over when it signs in anew, and a program keeps its older one", async () => {
  const had = await http.signIn("viewer");
  const cookie = `matrixSession=${had}`;
  await post("/user/signin", LOGIN, { cookie });
  expect(await http.users.bySession(had, "")).toBeDefined();
  await post("/user/login", LOGIN, { cookie, accept: "text/html" });
  expect(await http.users.bySession(had, "")).toBeUndefined();
});

test("nothing that is sent becomes a header or a tag of the answer", async () => {
  const evil = `x\r\nSet-Cookie: a=b\r\n\r\n<script>alert(1)</script>"'`;
  const browser = { accept: "text/html" };
  const answers = [
    await post("/user/login", { company: evil, username: evil, password: evil }, browser),
    await post("/user/login", { ticket: evil, code: evil }, browser),
    await post("/user/goauth", { ...LOGIN, redirect: `/${evil}` }, browser),
    await http.app.inject({ url: `/user/login?error=${encodeURIComponent(evil)}`, headers: browser }),
    await http.app.inject({ url: `/user/logout/${encodeURIComponent(evil)}`, headers: browser }),
  ];
  for (const { headers, body } of answers) {
    expect(String(headers["set-cookie"] ?? "")).not.toContain("a=b");
    expect(JSON.stringify(headers)).not.toMatch(/Set-Cookie: a=b|<script>/);
    if (/html/.test(String(headers["content-type"]))) expect(body).not.toContain("<script>");
  }
});

test("a member that no form has changes nothing of a user", async () => {
  const session = await http.signIn("admin");
  const { id } = await http.users.directory.reader.subtree(testPrincipal(), "/viewer");
  const { kv } = await http.engine.tenant("matrix");
  const stored = async () =>
    decodeStored<Record<string, unknown>>((await kv.get("users/viewer"))?.value ?? new Uint8Array());
  const before = await stored();
  const foreign = {
    tenant: "second",
    username: "admin",
    id: "1000000000000000001",
    rights: { role: "administrator" },
    grants: ["*:write"],
    data: [{ class: "/", access: "write" }],
    active: false,
    hash: "x",
    epoch: "x",
    secondFactor: true,
    createdMs: 0,
    home: "/evil",
  };
  const url = `/admin/users/${id}`;
  expect(await http.call(session, { method: "POST", url, payload: foreign })).toMatchObject({ status: "ok" });
  expect(await stored()).toEqual({
    ...before,
    changedMs: expect.any(Number),
    stamp: expect.objectContaining({ by: "admin" }),
  });
  const viewer = await http.signIn("viewer");
  const own = { home: "/static/a.html", rights: { role: "administrator" }, isadmin: true, username: "admin" };
  await http.call(viewer, { method: "POST", url: "/user/settings/home", payload: own });
  expect(await stored()).toMatchObject({ rights: { role: "viewer" }, username: "viewer", home: "/static/a.html" });
});
