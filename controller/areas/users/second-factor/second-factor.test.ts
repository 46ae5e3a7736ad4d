import { Secret, TOTP } from "otpauth";
import type { InjectOptions } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  RECOVERY_CODES,
  SECOND_FACTOR_DELAY_MIN_MS,
  SECOND_FACTOR_FREE_FAILURES,
  SECOND_FACTOR_PENDING_MS,
  SIGN_IN_DELAY_MIN_MS,
  SIGN_IN_FREE_FAILURES_PER_USER,
  SIGN_IN_TICKET_MS,
} from "../../../../common/limits.ts";
import { AppError } from "../../../../common/errors.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { TEST_SECRETS, testPrincipal, TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { UserService } from "../service.ts";

const STEP_MS = 30_000;
const BROWSER = { accept: "text/html" };

let http: TestHttp;
let clock: TestClock;
let session: string;
beforeEach(async () => {
  // On the cluster entries expire by the real clock.
  clock = new TestClock(realClock.nowMs());
  http = await openTestHttp({ runtime: testRuntime(clock) });
  session = await http.signIn("viewer");
});
afterEach(() => http[Symbol.asyncDispose]());

const call = (options: InjectOptions & { readonly url: string }, as = session) => http.call(as, options);
const post = (url: string, payload: object, as = session) => call({ method: "POST", url, payload }, as);
const begin = async (password = PASSWORD) =>
  (await post("/user/secondfactor", { password })).message as { uri: string; secret: string };
const codeOf = (secret: string, offMs = 0) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.nowMs() + offMs });

/** Enrols; answers the device's secret and the recovery codes. The code of the present time step is used up. */
async function enrolled(): Promise<{ readonly secret: string; readonly recovery: readonly string[] }> {
  const { secret } = await begin();
  const { message } = await post("/user/secondfactor/confirm", { code: codeOf(secret) });
  return { secret, recovery: message as readonly string[] };
}

const signIn = (members: object = {}, users = http.users) =>
  users
    .signIn({ company: "matrix", username: "viewer", password: PASSWORD, remote: "r", traceparent: "", ...members })
    .then(
      () => "in",
      (error: AppError) => error.message,
    );
const form = (payload: object, headers: Record<string, string> = BROWSER, url = "/user/login") =>
  http.app.inject({ method: "POST", url, payload, headers });
const credentials = { company: "matrix", username: "viewer", password: PASSWORD };
const ticketIn = (page: string) => /name="ticket" value="([^"]+)"/.exec(page)?.[1] ?? "";

const NEEDED = /second factor: send the one-time password/;
const WRONG = /wrong, or was used before/;
const another = () => {
  const { engine: stores, tenants, audit } = http;
  return new UserService({ runtime: testRuntime(clock), stores, tenants, audit, secrets: TEST_SECRETS });
};

describe("a second factor", () => {
  test("is begun with the password, holds once confirmed, and is told once", async () => {
    expect(await post("/user/secondfactor", { password: "wrong" })).toMatchObject({ code: "denied" });
    const { uri, secret } = await begin();
    expect(uri).toMatch(/^otpauth:\/\/totp\/odp:matrix\.viewer\?.*secret=[A-Z2-7]{32}/);
    expect(uri).toContain(secret);
    expect(await signIn()).toBe("in");
    expect(await post("/user/secondfactor/confirm", { code: "000000" })).toMatchObject({ code: "invalid" });
    expect(await signIn()).toBe("in");
    const { message } = await post("/user/secondfactor/confirm", { code: codeOf(secret) });
    expect(new Set(message as string[]).size).toBe(RECOVERY_CODES);
    // 128 bits, 5 per character.
    for (const one of message as string[]) expect(one).toMatch(/^([a-z2-7]{4}-){6}[a-z2-7]{2}$/);
    expect((await call({ url: "/user/secondfactor" })).message).toEqual({
      active: true,
      recoverycodes: RECOVERY_CODES,
    });
    expect(await signIn()).toMatch(NEEDED);
    expect(await post("/user/secondfactor", { password: PASSWORD })).toMatchObject({ code: "conflict" });
    expect(await post("/user/secondfactor/confirm", { code: codeOf(secret, STEP_MS) })).toMatchObject({
      code: "conflict",
    });
  });

  test("that nobody confirmed is forgotten", async () => {
    const { secret } = await begin();
    clock.advance(SECOND_FACTOR_PENDING_MS + 1);
    expect(await post("/user/secondfactor/confirm", { code: codeOf(secret) })).toMatchObject({ code: "conflict" });
  });

  test("is in no store, no answer and no record as plain text", async () => {
    const { secret, recovery } = await enrolled();
    const { entries } = await (await http.engine.tenant("matrix")).kv.list("");
    const kept = entries.map(({ key, value }) => key + Buffer.from(value).toString("latin1")).join();
    const told = JSON.stringify([await call({ url: "/admin/users?fullname=/" }), http.trail.records]);
    for (const text of [secret, ...recovery]) expect(kept + told).not.toContain(text);
    expect(http.trail.records.at(-1)).toMatchObject({ action: "confirm a second factor", outcome: "ok" });
  });

  test("is asked of programs in every way to sign in, and the code goes with the password", async () => {
    const { secret } = await enrolled();
    for (const url of ["/user/signin", "/user/login", "/user/goauth"]) {
      const answer = await form(credentials, {}, url);
      expect(answer.json(), url).toMatchObject({ code: "denied", message: expect.stringMatching(NEEDED) });
      expect(answer.headers["set-cookie"], url).toBeUndefined();
      clock.advance(STEP_MS);
      const cookie = (await form({ ...credentials, code: codeOf(secret) }, {}, url)).headers["set-cookie"];
      expect(String(cookie), url).toMatch(/^matrixSession=/);
    }
  });

  test("is a second page for persons, which keeps what they asked for and not the password", async () => {
    const { secret } = await enrolled();
    clock.advance(STEP_MS);
    const first = await form({ ...credentials, remember: "true", redirect: "/static/x.html" }, BROWSER, "/user/goauth");
    expect([first.statusCode, first.headers["set-cookie"]]).toEqual([200, undefined]);
    expect(first.body).not.toContain(PASSWORD);
    const ticket = ticketIn(first.body);
    const wrong = await form({ ticket, code: "000000" });
    expect(wrong.body).toMatch(/role="alert"/);
    const right = await form({ ticket: ticketIn(wrong.body), code: codeOf(secret) });
    expect([right.statusCode, right.headers.location]).toEqual([302, "/static/x.html"]);
    expect(String(right.headers["set-cookie"])).toMatch(/^matrixSession=.*Max-Age=/);
  });

  test("takes no ticket that is made up, too old, of before a change, or without a code", async () => {
    const { secret } = await enrolled();
    const ticket = ticketIn((await form(credentials)).body);
    clock.advance(STEP_MS);
    const late = { ticket: `${ticket.slice(0, -3)}AAA`, code: codeOf(secret) };
    expect((await form(late)).headers.location).toBe("/user/login?error=deadline");
    expect((await form({ ticket: "x", code: codeOf(secret) }, {})).json()).toMatchObject({ code: "deadline" });
    expect(ticketIn((await form({ ticket })).body)).not.toBe("");
    await http.users.setPassword(testPrincipal(), "viewer", "another password");
    expect((await form({ ticket, code: codeOf(secret) })).headers.location).toBe("/user/login?error=deadline");
    const next = ticketIn((await form({ ...credentials, password: "another password" })).body);
    clock.advance(SIGN_IN_TICKET_MS);
    expect((await form({ ticket: next, code: codeOf(secret) })).headers.location).toBe("/user/login?error=deadline");
  });

  test("its code is good once, on all controllers together, and for a clock that is a little off", async () => {
    const { secret } = await enrolled();
    expect(await signIn({ code: codeOf(secret) }), "confirming spent it").toMatch(WRONG);
    const early = codeOf(secret, STEP_MS);
    const other = another();
    const [here, there] = await Promise.all([signIn({ code: early }), signIn({ code: early }, other)]);
    expect([here, there].filter((answer) => answer === "in")).toHaveLength(1);
    expect(await signIn({ code: early })).toMatch(WRONG);
    clock.advance(3 * STEP_MS);
    const both = await Promise.all([signIn({ code: codeOf(secret) }), signIn({ code: codeOf(secret) })]);
    expect(
      both.filter((answer) => answer === "in"),
      "two equal attempts at once",
    ).toHaveLength(1);
    clock.advance(3 * STEP_MS);
    expect(await signIn({ code: codeOf(secret, -2 * STEP_MS) })).toMatch(WRONG);
    expect(await signIn({ code: codeOf(secret, -STEP_MS) })).toBe("in");
    expect(await signIn({ code: codeOf(secret) })).toBe("in");
    expect(await signIn({ code: codeOf(secret, -STEP_MS) }), "one of before").toMatch(WRONG);
  });

  test("its recovery codes are good once each, however they are written", async () => {
    const { recovery } = await enrolled();
    const [first = "", second = ""] = recovery;
    expect(await signIn({ code: first })).toBe("in");
    expect(await signIn({ code: first }, another())).toMatch(WRONG);
    expect(await signIn({ code: ` ${second.replaceAll("-", " ").toUpperCase()}` })).toBe("in");
    expect((await call({ url: "/user/secondfactor" })).message).toMatchObject({ recoverycodes: RECOVERY_CODES - 2 });
  });

  test("an answer that was lost leaves the code good for one sign-in", async () => {
    const { secret } = await enrolled();
    let lost = 1;
    const { kv } = await http.engine.tenant("matrix");
    const lossy = wrappedKv(kv, {
      put: async (...write) => {
        const answer = await kv.put(...write);
        if (write[0].startsWith("secondfactors/") && lost-- > 0) throw new AppError("unknown_outcome", "lost");
        return answer;
      },
    });
    const stores = {
      system: () => http.engine.system(),
      tenant: async (tenant: string) => ({ ...(await http.engine.tenant(tenant)), kv: lossy }),
    };
    const { tenants, audit } = http;
    const users = new UserService({ runtime: testRuntime(clock), stores, tenants, audit, secrets: TEST_SECRETS });
    clock.advance(STEP_MS);
    const code = codeOf(secret);
    expect(await signIn({ code }, users)).toBe("in");
    expect(await signIn({ code }, users)).toMatch(WRONG);
  });

  test("wrong codes cost waiting time, from one address and from many, on every controller", async () => {
    const { secret } = await enrolled();
    clock.advance(STEP_MS);
    const limited = /^Too many failed sign-ins/;
    for (let count = 0; count <= SIGN_IN_FREE_FAILURES_PER_USER; count++)
      expect(await signIn({ code: "000000" })).toMatch(WRONG);
    expect(await signIn({ code: codeOf(secret) })).toMatch(limited);
    clock.advance(SIGN_IN_DELAY_MIN_MS);
    for (let count = SIGN_IN_FREE_FAILURES_PER_USER + 1; count <= SECOND_FACTOR_FREE_FAILURES; count++)
      expect(await signIn({ code: "000000", remote: `10.0.${String(count)}.1` })).toMatch(WRONG);
    expect(await signIn({ code: codeOf(secret), remote: "10.9.9.9" }, another())).toMatch(/wrong one-time passwords/);
    clock.advance(SECOND_FACTOR_DELAY_MIN_MS);
    expect(await signIn({ code: codeOf(secret), remote: "10.9.9.9" })).toBe("in");
  });

  test("a password without its code neither counts as wrong nor forgives wrong ones", async () => {
    await enrolled();
    for (let count = 0; count <= SIGN_IN_FREE_FAILURES_PER_USER + 1; count++) expect(await signIn()).toMatch(NEEDED);
    for (let count = 0; count <= SIGN_IN_FREE_FAILURES_PER_USER; count++) {
      await signIn({ password: "wrong" });
      if (count < SIGN_IN_FREE_FAILURES_PER_USER) expect(await signIn()).toMatch(NEEDED);
    }
    expect(await signIn()).toMatch(/^Too many failed sign-ins/);
  });

  test("refuses the password alone as Basic, also one that was known before; tokens and open sessions go on", async () => {
    const basic = (password: string) => http.users.byPassword({ login: "matrix.viewer", password, remote: "r" }, "");
    const { message } = await post("/user/tokens", { name: "script", scopes: ["hosts:read"] });
    expect(await basic(PASSWORD)).toBeDefined();
    await enrolled();
    for (let again = 0; again < 2; again++)
      await expect(basic(PASSWORD)).rejects.toMatchObject({
        code: "denied",
        message: expect.stringContaining("token"),
      });
    expect(await basic(message as string)).toMatchObject({ user: "viewer" });
    expect(await http.users.byToken(message as string, "")).toMatchObject({ user: "viewer" });
    expect(await http.users.bySession(session, "")).toMatchObject({ user: "viewer" });
  });
});

describe("the end of a second factor", () => {
  test("takes the password, or who may change the user", async () => {
    await enrolled();
    expect(await post("/user/secondfactor/remove", { password: "wrong" })).toMatchObject({ code: "denied" });
    expect(await signIn()).toMatch(NEEDED);
    expect(await post("/user/secondfactor/remove", { password: PASSWORD })).toMatchObject({ status: "ok" });
    expect(await signIn()).toBe("in");

    await enrolled();
    const admin = await http.signIn("admin");
    const { id } = await http.users.directory.reader.subtree(testPrincipal(), "/viewer");
    const drop = { method: "DELETE", url: `/admin/users/${id}/secondfactor` } as const;
    expect(await call(drop)).toMatchObject({ code: "denied" });
    const foreign = await http.signIn("admin", "second");
    expect(await call(drop, foreign)).toMatchObject({ code: "not_found" });
    expect(await signIn()).toMatch(NEEDED);
    expect(await call(drop, admin)).toMatchObject({ status: "ok" });
    expect(await signIn()).toBe("in");
    await enrolled();
    await http.users.operator.resetSecondFactor("matrix", "viewer");
    expect(await signIn()).toBe("in");
    expect(http.trail.records.at(-2)).toMatchObject({ action: "remove the second factor of viewer", outcome: "ok" });
    for (const user of ["viewer", "nobody"])
      await expect(http.users.operator.resetSecondFactor("matrix", user)).rejects.toMatchObject({ code: "not_found" });
  });

  test("of one who has more is not taken by who may change users", async () => {
    await enrolled();
    const id = (await http.users.find(testPrincipal(), "viewer"))?.id ?? "";
    const few = { ...testPrincipal(), user: "few", grants: ["users:*"], data: [] };
    const reader = { ...testPrincipal(), user: "reader", grants: ["*:read", "files:read", "scripts:read"] };
    for (const one of [few, reader])
      await expect(http.users.secondFactors.removeOf(one, id)).rejects.toMatchObject({ code: "denied" });
    expect(await signIn()).toMatch(NEEDED);
    await http.users.secondFactors.removeOf(testPrincipal(), id);
    expect(await signIn()).toBe("in");
  });

  test("stays when an operator replaces a lost password", async () => {
    await enrolled();
    const password = await http.users.operator.resetPassword("matrix", "viewer");
    expect(await signIn({ password })).toMatch(NEEDED);
    await http.users.operator.resetSecondFactor("matrix", "viewer");
    expect(await signIn({ password })).toBe("in");
  });

  test("comes with the user's own: a new user of the name has none, and nothing is left", async () => {
    await enrolled();
    const admin = testPrincipal();
    const { id } = await http.users.directory.reader.subtree(admin, "/viewer");
    await http.users.directory.remove(admin, id);
    const { kv } = await http.engine.tenant("matrix");
    expect((await kv.list("secondfactors/")).entries).toEqual([]);
    await http.users.create(admin, { username: "viewer", password: PASSWORD, rights: { role: "viewer" } });
    expect(await signIn()).toBe("in");
  });

  test("is not brought about by a token, a page of another site, or a member of another call", async () => {
    const { message } = await post("/user/tokens", { name: "all", scopes: ["*:read"] });
    await enrolled();
    const payload = { password: PASSWORD };
    for (const headers of [
      { authorization: `Bearer ${String(message)}` },
      { cookie: `matrixSession=${session}`, "sec-fetch-site": "cross-site" },
    ])
      for (const url of ["/user/secondfactor", "/user/secondfactor/remove", "/user/secondfactor/confirm"]) {
        const answer = await http.app.inject({ method: "POST", url, payload: { ...payload, code: "000000" }, headers });
        expect(answer.json(), url).toMatchObject({ code: "denied" });
      }
    const admin = await http.signIn("admin");
    const { id } = await http.users.directory.reader.subtree(testPrincipal(), "/viewer");
    await post(`/admin/users/${id}`, { secondFactor: false, remark: "x", epoch: "", hash: "", id: "1" }, admin);
    expect(await signIn()).toMatch(NEEDED);
    for (const url of ["/user/secondfactor", "/user/secondfactor/remove"])
      expect((await http.app.inject({ method: "POST", url, payload })).json(), url).toMatchObject({ status: "signin" });
  });
});
