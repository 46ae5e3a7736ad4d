import type { InjectOptions } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Type } from "typebox";
import { TOKENS_PER_USER_MAX } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { endpoint } from "../../../http/interface/endpoint.ts";
import { UserService } from "../service.ts";
import type { SessionView, TokenView } from "../types.ts";

const payload = { password: PASSWORD };
const DAY_MS = 86_400_000;
const admin = testPrincipal();
const me = (permission: "hosts:read" | "hosts:write") =>
  endpoint({
    method: permission === "hosts:read" ? "GET" : "POST",
    path: "/me",
    permission,
    summary: "",
    input: Type.Object({}),
    output: Type.Unknown(),
    handler: ({ principal: { tenant, user, grants, data } }) =>
      Promise.resolve({ message: { tenant, user, grants, data } }),
  });

let http: TestHttp;
let clock: TestClock;
let session: string;
beforeEach(async () => {
  // On the cluster entries expire by the real clock.
  clock = new TestClock(realClock.nowMs());
  http = await openTestHttp({ runtime: testRuntime(clock), endpoints: [me("hosts:read"), me("hosts:write")] });
  session = await http.signIn("admin");
});
afterEach(() => http[Symbol.asyncDispose]());

const call = (options: InjectOptions & { readonly url: string }, as = session) => http.call(as, options);
const make = async (scopes: readonly string[], days = 1, as = session) =>
  call({ method: "POST", url: "/user/tokens", payload: { name: "backup", scopes, days } }, as);
const tokenOf = async (scopes: readonly string[], days = 1) => (await make(scopes, days)).message as string;
const bearer = async (token: string, options: InjectOptions = { url: "/me" }) =>
  (await http.app.inject({ ...options, headers: { authorization: `Bearer ${token}` } })).json<{
    status: string;
    code?: string;
    message: { user: string; grants: string[]; data: unknown };
  }>();
const list = async <T>(url: string) => (await call({ url })).message as readonly T[];

describe("a token", () => {
  test("signs in as Bearer and as the password of its own user, confined to its scopes", async () => {
    const token = await tokenOf(["hosts:*", "jobs:read"]);
    expect(token).toMatch(/^odp_[\w-]{43}$/);
    expect((await bearer(token)).message).toEqual({
      tenant: "matrix",
      user: "admin",
      grants: expect.arrayContaining(["hosts:read", "hosts:write", "hosts:run", "jobs:read"]),
      data: [{ class: "/", access: "read" }],
    });
    const basic = (login: string) => http.users.byPassword({ login, password: token, remote: "r" }, "");
    expect(await basic("matrix.admin")).toMatchObject({ user: "admin" });
    expect(await basic("matrix.viewer")).toBeUndefined();
    expect(await basic("second.admin")).toBeUndefined();
    expect(await bearer(token, { method: "POST", url: "/me" })).toMatchObject({ status: "ok" });
    const reading = await tokenOf(["*:read"]);
    expect(await bearer(reading, { method: "POST", url: "/me" })).toMatchObject({ code: "denied" });
    expect(await bearer(`${reading}x`)).toMatchObject({ status: "signin" });
    expect((await bearer(await tokenOf(["*:read", "objects:write"]))).message.data).toEqual([
      { class: "/", access: "write" },
    ]);
  });

  test("has all grants of its user, or a part of them", async () => {
    const all = await http.users.byToken(await tokenOf(["*:read", "*:write", "*:run"]), "");
    const part = await http.users.byToken(await tokenOf(["*:read", "*:write"]), "");
    expect([all?.byToken, part?.byToken]).toEqual(["whole", "part"]);
  });

  test("goes before the cookie that a browser adds", async () => {
    const token = await tokenOf(["hosts:read"]);
    const headers = { authorization: `Bearer ${token}`, cookie: `matrixSession=${session}` };
    const { message } = (await http.app.inject({ url: "/me", headers })).json<{ message: { grants: string[] } }>();
    expect(new Set(message.grants)).toEqual(new Set(["hosts:read"]));
  });

  test("never gives more than its maker has, then and later", async () => {
    const viewer = await http.signIn("viewer");
    expect(await make(["hosts:write"], 1, viewer)).toMatchObject({ code: "denied" });
    expect(await make(["*:write"], 1, viewer)).toMatchObject({ code: "denied" });
    expect(await make(["hosts:*"], 1, viewer)).toMatchObject({ code: "denied" });
    for (const scope of ["*:*", "hosts", "hosts:delete", "", "*", "objcts:read", "objects:run"])
      expect(await make([scope]), scope).toMatchObject({ code: "invalid" });
    const { message } = await make(["hosts:read", "jobs:read"], 1, viewer);
    await http.users.update(admin, "viewer", { rights: { grants: ["jobs:read"], data: [] } });
    expect(await bearer(message as string)).toMatchObject({ code: "denied" });
    await http.users.update(admin, "viewer", { rights: { role: "administrator" } });
    expect(new Set((await bearer(message as string)).message.grants)).toEqual(new Set(["hosts:read", "jobs:read"]));
  });

  test("manages no sessions and tokens", async () => {
    const token = await tokenOf(["*:read", "*:write", "*:run"]);
    const [{ id } = { id: "" }] = await list<TokenView>("/user/tokens");
    const [{ id: own } = { id: "" }] = await list<SessionView>("/user/sessions");
    for (const options of [
      { method: "POST", url: "/user/tokens", payload: { name: "more", scopes: ["hosts:read"] } },
      { method: "DELETE", url: `/user/tokens/${id}` },
      { method: "DELETE", url: `/user/sessions/${own}`, payload },
      { method: "POST", url: "/user/password", payload: { password: PASSWORD, newpassword: "four-yellow-tables-9" } },
    ] as const)
      expect(await bearer(token, options), options.url).toMatchObject({ code: "denied" });
  });

  test("is told once, listed without what signs in, and kept under a digest", async () => {
    const token = await tokenOf(["hosts:read"]);
    const { entries } = await (await http.engine.system()).kv.list("");
    const kept = entries.map(({ key, value }) => key + Buffer.from(value).toString("latin1")).join();
    expect(kept).not.toContain(token.slice(4));
    const tokens = await list<TokenView>("/user/tokens");
    expect(tokens).toMatchObject([{ name: "backup", scopes: ["hosts:read"], remote: "127.0.0.1" }]);
    expect(JSON.stringify([tokens, http.trail.records])).not.toContain(token.slice(4));
    expect(http.trail.records.at(-1)).toMatchObject({ user: "admin", action: "make the token backup", outcome: "ok" });
  });

  test("ends when it is revoked, expires, or its user is inactive or deleted; a new user of the name has no part in it", async () => {
    const token = await tokenOf(["hosts:read"]);
    const [{ id } = { id: "" }] = await list<TokenView>("/user/tokens");
    const viewer = await http.signIn("viewer");
    expect(await call({ method: "DELETE", url: `/user/tokens/${id}` }, viewer)).toMatchObject({ code: "not_found" });
    expect(await bearer(token)).toMatchObject({ status: "ok" });
    expect(await call({ method: "DELETE", url: `/user/tokens/${id}` })).toMatchObject({ status: "ok" });
    expect(await bearer(token)).toMatchObject({ status: "signin" });

    const short = await tokenOf(["hosts:read"], 2);
    clock.advance(2 * DAY_MS - 1);
    expect(await bearer(short)).toMatchObject({ status: "ok" });
    clock.advance(1);
    expect(await bearer(short)).toMatchObject({ status: "signin" });

    const person = { username: "ann", password: PASSWORD, rights: { role: "viewer" } } as const;
    const { id: userid } = await http.users.create(admin, person);
    const wanted = { name: "n", scopes: ["hosts:read"], days: 1, remote: "" };
    const hers = await http.users.signIns.makeToken({ ...testPrincipal("viewer"), user: "ann" }, wanted);
    expect(await bearer(hers)).toMatchObject({ status: "ok" });
    await http.users.setPassword(admin, "ann", "another password");
    expect(await bearer(hers)).toMatchObject({ status: "ok" });
    await http.users.update(admin, "ann", { active: false });
    expect(await bearer(hers)).toMatchObject({ status: "signin" });
    await http.users.update(admin, "ann", { active: true });
    expect(await bearer(hers)).toMatchObject({ status: "ok" });
    await http.users.directory.remove(admin, userid);
    await http.users.create(admin, person);
    expect(await bearer(hers)).toMatchObject({ status: "signin" });
  });

  test("ends when its maker changes the own password, by either call, and no token of another does", async () => {
    const next = "four-yellow-tables-9";
    const viewer = await http.signIn("viewer");
    const theirs = (await make(["hosts:read"], 1, viewer)).message as string;
    const own = await tokenOf(["hosts:read"]);
    const change = { method: "POST", url: "/user/password", payload: { ...payload, newpassword: next } } as const;
    expect(await call(change, viewer)).toMatchObject({ status: "ok" });
    expect(await bearer(theirs)).toMatchObject({ status: "signin" });
    expect(await list("/user/tokens")).toHaveLength(1);
    expect(await bearer(own)).toMatchObject({ status: "ok" });
    const { id } = await http.users.directory.reader.subtree(admin, "/admin");
    const direct = { method: "POST", url: `/admin/users/${id}`, payload: { ...payload, passwd: next } } as const;
    expect(await call(direct)).toMatchObject({ status: "ok" });
    expect(await bearer(own)).toMatchObject({ status: "signin" });
  });

  test("revoked at another controller ends here by the watch", async () => {
    http.users.start();
    const token = await tokenOf(["hosts:read"]);
    const [{ id } = { id: "" }] = await list<TokenView>("/user/tokens");
    expect(await bearer(token)).toMatchObject({ status: "ok" });
    const { engine: stores, tenants, audit } = http;
    const other = new UserService({ runtime: testRuntime(clock), stores, tenants, audit });
    await other.signIns.removeToken({ ...admin, user: "admin" }, id);
    await expect.poll(async () => (await bearer(token)).status).toBe("signin");
    await http.users.stop();
  });

  test("has a greatest number for each user", async () => {
    for (let count = 0; count < TOKENS_PER_USER_MAX; count++) await tokenOf(["hosts:read"]);
    expect(await make(["hosts:read"])).toMatchObject({ code: "too_large" });
  });
});

describe("sessions", () => {
  test("are listed and ended, one's own by oneself, another user's by who may change users", async () => {
    const viewer = await http.signIn("viewer");
    const second = await http.signIn("viewer");
    const seen = (await call({ url: "/user/sessions" }, viewer)).message as readonly SessionView[];
    expect(seen).toHaveLength(2);
    expect(JSON.stringify(seen)).not.toContain(second);
    for (const { id } of seen)
      expect(await call({ method: "DELETE", url: `/user/sessions/${id}`, payload })).toMatchObject({
        code: "not_found",
      });
    const { id: userid } = await http.users.directory.reader.subtree(admin, "/viewer");
    const url = `/admin/users/${userid}/sessions`;
    expect((await call({ url })).message).toEqual(seen.map((one) => ({ ...one, current: false })));
    expect(await call({ method: "DELETE", url }, viewer)).toMatchObject({ code: "denied" });
    expect(await call({ method: "DELETE", url })).toMatchObject({ status: "ok", message: 2 });
    expect(await http.users.bySession(second, "")).toBeUndefined();
    const [{ id } = { id: "" }] = await list<SessionView>("/user/sessions");
    const own = { method: "DELETE", url: `/user/sessions/${id}` } as const;
    expect(await call(own)).toMatchObject({ code: "invalid" });
    expect(await call({ ...own, payload: { password: "wrong" } })).toMatchObject({ code: "denied" });
    const failed = { action: "end a session", outcome: "failed", code: "denied" };
    expect(http.trail.records.at(-1)).toMatchObject(failed);
    expect(await call({ ...own, payload })).toMatchObject({ status: "ok" });
    expect(await http.users.bySession(session, "")).toBeUndefined();
  });

  test("of strangers there are none, and no page of another site ends one", async () => {
    const id64 = "0".repeat(64);
    for (const [method, url, body] of [
      ["GET", "/user/sessions"],
      ["DELETE", `/user/sessions/${id64}`, payload],
      ["GET", "/user/tokens"],
      ["POST", "/user/tokens", { name: "x", scopes: ["hosts:read"] }],
      ["DELETE", `/user/tokens/${id64}`],
      ["GET", "/user/secondfactor"],
      ["POST", "/user/secondfactor", payload],
      ["POST", "/user/secondfactor/confirm", { code: "000000" }],
      ["POST", "/user/secondfactor/remove", payload],
      ["POST", "/user/password", { ...payload, newpassword: "four-yellow-tables-9" }],
      ["POST", "/user/settings/home", { home: "/static" }],
    ] as const)
      expect(
        (await http.app.inject({ method, url, ...(body && { payload: body }) })).json(),
        `${method} ${url}`,
      ).toEqual(expect.objectContaining({ status: "signin" }));
    const [{ id } = { id: "" }] = await list<SessionView>("/user/sessions");
    const headers = { cookie: `matrixSession=${session}`, "sec-fetch-site": "cross-site" };
    for (const options of [
      { method: "DELETE", url: `/user/sessions/${id}`, payload },
      { method: "POST", url: "/user/tokens", payload: { name: "x", scopes: ["hosts:read"] } },
    ] as const)
      expect((await http.app.inject({ ...options, headers })).json(), options.url).toMatchObject({ code: "denied" });
    expect(await http.users.bySession(session, "")).toBeDefined();
  });
});
