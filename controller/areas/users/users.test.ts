import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  BASIC_CACHE_MS,
  SESSION_IDLE_MS,
  SESSION_MAX_MS,
  SESSION_REMEMBERED_MS,
  SESSION_SWEEP_MS,
  SIGN_IN_CACHE_MS,
  SIGN_IN_FREE_FAILURES_PER_ADDRESS,
  USER_CHANGE_ATTEMPTS_MAX,
} from "../../../common/limits.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/areas/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { UserService } from "./service.ts";

let http: TestHttp;
let clock: TestClock;

beforeEach(async () => {
  clock = new TestClock();
  http = await openTestHttp({ runtime: testRuntime(clock) });
});
afterEach(() => http[Symbol.asyncDispose]());

const signIn = (members: Record<string, unknown>) =>
  http.users.signIn({ username: "admin", password: PASSWORD, remote: "r", traceparent: "", ...members });
const basic = (login: string, password = PASSWORD) => http.users.byPassword({ login, password, remote: "r" }, "");
const user = async (session: string) => (await http.users.bySession(session, ""))?.user;

describe("signing in", () => {
  test("gives a session of just that user and tenant", async () => {
    const { session } = await signIn({ company: "second", username: "viewer" });
    expect(await http.users.bySession(session, "trace")).toMatchObject({
      tenant: "second",
      ospace: "/second",
      user: "viewer",
      groups: ["/everyone"],
      grants: ["*:read", "files:read", "scripts:read"],
      data: [{ class: "/", access: "read" }],
      traceparent: "trace",
    });
  });

  test("anew ends the session that the browser had, and no other", async () => {
    const [replaced, other] = [await signIn({ company: "matrix" }), await signIn({ company: "matrix" })];
    const { session } = await signIn({ company: "matrix", replaced: replaced.session });
    expect(await user(replaced.session)).toBeUndefined();
    for (const stays of [other.session, session]) expect(await user(stays)).toBe("admin");
    await signIn({ company: "matrix", password: "wrong", replaced: session }).catch(() => {});
    expect(await user(session)).toBe("admin");
  });

  test("says the same for every kind of wrong", async () => {
    const wrong = [
      { company: "matrix", password: "wrong" },
      { company: "matrix", username: "nobody" },
      { company: "nowhere" },
      { company: "second", username: "no/such" },
    ];
    for (const members of wrong)
      await expect(signIn(members)).rejects.toMatchObject({
        code: "denied",
        message: "Company, user name or password are wrong.",
      });
  });

  test("is on record, with the tenant when there is one", async () => {
    const before = http.trail.records.length;
    await signIn({ company: "matrix" });
    await signIn({ company: "matrix", password: "wrong" }).catch(() => {});
    await signIn({ company: "nowhere" }).catch(() => {});
    expect(
      http.trail.records
        .slice(before)
        .map(({ tenant, user, permission, outcome }) => ({ tenant, user, permission, outcome })),
    ).toEqual([
      { tenant: "matrix", user: "admin", permission: "signin", outcome: "ok" },
      { tenant: "matrix", user: "admin", permission: "signin", outcome: "denied" },
      { tenant: "", user: "admin", permission: "signin", outcome: "denied" },
    ]);
  });

  test("needs a company where there are several", async () => {
    await expect(signIn({})).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("company") });
  });

  test("gets slow for who guesses, not for others, and is forgiven", async () => {
    const guess = (remote: string, password = "wrong") =>
      signIn({ company: "matrix", password, remote }).then(
        () => "in",
        (error: { code: string }) => error.code,
      );
    const answers: string[] = [];
    for (let attempt = 0; attempt < 7; attempt++) answers.push(await guess("attacker"));
    expect(answers).toEqual(["denied", "denied", "denied", "denied", "denied", "denied", "limited"]);
    expect(await guess("attacker", PASSWORD)).toBe("limited");
    expect(await guess("colleague", PASSWORD)).toBe("in");
    clock.advance(1_000);
    expect(await guess("attacker")).toBe("denied");
    clock.advance(1_000);
    expect(await guess("attacker", PASSWORD)).toBe("limited");
    clock.advance(1_000);
    expect(await guess("attacker", PASSWORD)).toBe("in");
    expect(await guess("attacker")).toBe("denied");
  });

  test("a network full of wrong passwords keeps nobody out who signed in from there before", async () => {
    const from = (at: number) => `2001:db8::${at.toString(16)}`;
    const program = { username: "program", password: PASSWORD, rights: { grants: [], data: [] } };
    await http.users.create(testPrincipal(), program);
    const byBasic = (at: number) =>
      http.users.byPassword({ login: "matrix.program", password: PASSWORD, remote: from(at) }, "");
    await byBasic(0);
    clock.advance(BASIC_CACHE_MS);
    await signIn({ company: "matrix", remote: from(0) });
    const codes: string[] = [];
    for (let at = 1; at <= SIGN_IN_FREE_FAILURES_PER_ADDRESS + 2; at++) {
      codes.push(
        await signIn({ company: "matrix", username: `guess${String(at)}`, remote: from(at) }).then(
          () => "in",
          (error: { code: string }) => error.code,
        ),
      );
    }
    expect(codes.at(-1), "an address of IPv6 more is no client more").toBe("limited");
    await expect(signIn({ company: "matrix", username: "viewer", remote: from(1) })).rejects.toMatchObject({
      code: "limited",
    });
    await expect(signIn({ company: "matrix", remote: from(2) })).resolves.toHaveProperty("session");
    await expect(byBasic(2), "without a session").resolves.toMatchObject({ user: "program" });
    await expect(signIn({ company: "matrix", username: "viewer", remote: "2001:db8:0:1::1" })).resolves.toHaveProperty(
      "session",
    );
  });

  test("many guesses at once count as many", async () => {
    const guesses = Array.from({ length: 12 }, (_, at) =>
      signIn({ company: "matrix", password: `guess ${String(at)}` }).catch((error: { code: string }) => error.code),
    );
    const codes = await Promise.all(guesses);
    expect(codes.filter((code) => code === "denied")).toHaveLength(6);
    expect(codes.filter((code) => code === "limited")).toHaveLength(6);
  });
});

describe("Basic credentials", () => {
  test("name company and user; a user name may have dots", async () => {
    await http.users.create(testPrincipal("administrator", "second"), {
      username: "ann.b",
      password: PASSWORD,
      rights: { role: "viewer" },
    });
    expect(await basic("second.ann.b")).toMatchObject({ tenant: "second", user: "ann.b" });
    expect(await basic("matrix.ann.b")).toBeUndefined();
    expect(await basic("admin")).toBeUndefined();
  });

  test("are checked once a minute, however many calls carry them", async () => {
    const before = http.trail.records.length;
    await Promise.all(Array.from({ length: 20 }, () => basic("matrix.admin")));
    await basic("matrix.admin");
    expect(http.trail.records.length - before).toBe(1);
    clock.advance(BASIC_CACHE_MS);
    await basic("matrix.admin");
    expect(http.trail.records.length - before).toBe(2);
  });

  test("that were good are refused from the moment the user changes", async () => {
    expect(await basic("matrix.viewer")).toBeDefined();
    await http.users.setPassword(testPrincipal(), "viewer", "another password");
    expect(await basic("matrix.viewer")).toBeUndefined();
    expect(await basic("matrix.viewer", "another password")).toBeDefined();
    await http.users.update(testPrincipal(), "viewer", { active: false });
    expect(await basic("matrix.viewer", "another password")).toBeUndefined();
  });
});

describe("sessions", () => {
  test("last while they are used, up to their last end", async () => {
    const { session } = await signIn({ company: "matrix" });
    const steps = Math.ceil(SESSION_MAX_MS / (SESSION_IDLE_MS / 2));
    for (let step = 1; step < steps; step++) {
      clock.advance(SESSION_IDLE_MS / 2);
      expect(await user(session)).toBe("admin");
    }
    clock.advance(SESSION_IDLE_MS / 2);
    expect(await user(session)).toBeUndefined();
  });

  test("end when they are not used; remembered ones later", async () => {
    const short = await signIn({ company: "matrix" });
    const long = await signIn({ company: "matrix", remember: true });
    expect([short.lastingMs, long.lastingMs]).toEqual([undefined, SESSION_REMEMBERED_MS]);
    clock.advance(SESSION_IDLE_MS);
    expect([await user(short.session), await user(long.session)]).toEqual([undefined, "admin"]);
  });

  test("end when the user's password, rights or activity change, and only that user's", async () => {
    const changes = [
      () => http.users.setPassword(testPrincipal(), "viewer", PASSWORD),
      () => http.users.update(testPrincipal(), "viewer", { rights: { role: "administrator" } }),
      () => http.users.update(testPrincipal(), "viewer", { active: false }),
    ];
    const { session: admin } = await signIn({ company: "matrix" });
    const { session: namesake } = await signIn({ company: "second", username: "viewer" });
    for (const change of changes) {
      const { session } = await signIn({ company: "matrix", username: "viewer" });
      expect(await user(session)).toBe("viewer");
      await change();
      expect(await user(session)).toBeUndefined();
    }
    expect([await user(admin), await user(namesake)]).toEqual(["admin", "viewer"]);
  });

  test("end at another controller, too, as soon as it reads again", async () => {
    const other = new UserService({
      runtime: testRuntime(clock),
      stores: http.engine,
      tenants: http.tenants,
      audit: http.audit,
    });
    const there = async (session: string) => (await other.bySession(session, ""))?.user;
    const ends = [
      (session: string) => http.users.signOut(testPrincipal(), session),
      () => http.users.setPassword(testPrincipal(), "viewer", PASSWORD),
    ];
    for (const end of ends) {
      const { session } = await signIn({ company: "matrix", username: "viewer" });
      expect(await there(session)).toBe("viewer");
      await end(session);
      expect(await user(session)).toBeUndefined();
      clock.advance(SIGN_IN_CACHE_MS);
      expect(await there(session)).toBeUndefined();
    }
  });

  test("cannot be used by who reads the store, and are swept away when they are over", async () => {
    const { session } = await signIn({ company: "matrix" });
    const { kv } = await http.engine.system();
    const sessions = async () => [...(await kv.list("usersessions/")).entries, ...(await kv.list("signins/")).entries];
    expect(JSON.stringify(await sessions())).not.toContain(session);
    http.users.start();
    clock.advance(SESSION_IDLE_MS + SESSION_SWEEP_MS);
    await expect.poll(async () => (await sessions()).length).toBe(0);
    await http.users.stop();
  });
});

describe("users", () => {
  test("the administrator is made once, with the given or a generated password", async () => {
    const made = await http.users.ensureAdministrator({ tenant: "second", username: "boss" });
    expect(made).toMatchObject({ created: true, generatedPassword: expect.stringMatching(/^.{20}$/) });
    await signIn({ company: "second", username: "boss", password: made.generatedPassword });
    expect(
      await http.users.ensureAdministrator({ tenant: "second", username: "boss", password: "another password" }),
    ).toEqual({ username: "boss", created: false });
    await signIn({ company: "second", username: "boss", password: made.generatedPassword });
  });

  test("a lost password is replaced by a generated one: the old one and every session are over, and it is on record", async () => {
    const lost = await http.users.ensureAdministrator({ tenant: "second", username: "forgetful" });
    const { session } = await signIn({ company: "second", username: "forgetful", password: lost.generatedPassword });
    const before = http.trail.records.length;
    const password = await http.users.resetPassword("second", "forgetful");
    clock.advance(SIGN_IN_CACHE_MS + 1);
    expect(await http.users.bySession(session, "")).toBeUndefined();
    await expect(
      signIn({ company: "second", username: "forgetful", password: lost.generatedPassword }),
    ).rejects.toThrow();
    await signIn({ company: "second", username: "forgetful", password });
    const [entry] = http.trail.records.slice(before);
    expect(entry).toMatchObject({
      tenant: "second",
      permission: "users:write",
      action: "reset the password of forgetful",
      outcome: "ok",
    });
    expect(JSON.stringify(http.trail.records)).not.toContain(password);
    await expect(http.users.resetPassword("second", "nobody")).rejects.toMatchObject({ code: "not_found" });
    await expect(http.users.resetPassword("nowhere", "admin")).rejects.toMatchObject({ code: "not_found" });
  });

  test("bad names and passwords, and names that are taken, are refused", async () => {
    const create = (username: string, password = PASSWORD) =>
      http.users.create(testPrincipal(), { username, password, rights: { role: "viewer" } });
    for (const name of ["", "a/b", "a:b", " a", "a ", "a\u0000", "x".repeat(129)])
      await expect(create(name)).rejects.toMatchObject({ code: "invalid" });
    await expect(create("short", "seven77")).rejects.toMatchObject({ code: "invalid" });
    await expect(create("admin")).rejects.toMatchObject({ code: "conflict" });
    await expect(http.users.update(testPrincipal(), "nobody", {})).rejects.toMatchObject({ code: "not_found" });
  });

  test("changes made at the same time are all kept", async () => {
    await Promise.all([
      http.users.update(testPrincipal(), "viewer", { details: { firstname: "V." } }),
      http.users.update(testPrincipal(), "viewer", { groups: ["ops"] }),
      http.users.setPassword(testPrincipal(), "viewer", "another password"),
    ]);
    expect(await http.users.find(testPrincipal(), "viewer")).toMatchObject({
      details: { firstname: "V." },
      groups: ["ops"],
    });
    expect(await basic("matrix.viewer", "another password")).toBeDefined();
  });

  /** The users of a store in which others write the same user before each of the first `races` changes. */
  async function contested(races: number): Promise<{ readonly users: UserService; readonly lost: () => number }> {
    const inner = (await http.engine.tenant("matrix")).kv;
    let lost = 0;
    const kv = wrappedKv(inner, {
      async put(key, value, options) {
        const current = lost < races ? await inner.get(key) : undefined;
        if (current === undefined) return inner.put(key, value, options);
        lost++;
        const theirs = { ...decodeStored<object>(current.value), home: `/writer${lost}` };
        await inner.put(key, encodeJson(theirs), { ifRevision: current.revision });
        return inner.put(key, value, options);
      },
    });
    const tenant = async (name: string) => ({ ...(await http.engine.tenant(name)), kv });
    const stores = { system: () => http.engine.system(), tenant };
    const users = new UserService({ runtime: testRuntime(clock), stores, tenants: http.tenants, audit: http.audit });
    return { users, lost: () => lost };
  }

  test("a change is made again on what others wrote meanwhile, as often as its bound says", async () => {
    const { users, lost } = await contested(USER_CHANGE_ATTEMPTS_MAX - 1);
    expect(await users.update(testPrincipal(), "viewer", { groups: ["ops"] })).toMatchObject({ groups: ["ops"] });
    expect(lost()).toBe(USER_CHANGE_ATTEMPTS_MAX - 1);
    expect(await users.find(testPrincipal(), "viewer")).toMatchObject({
      groups: ["ops"],
      home: `/writer${lost()}`,
    });
  });

  test("a change that loses every race is refused, and nothing of it is kept", async () => {
    const { users, lost } = await contested(Infinity);
    await expect(users.update(testPrincipal(), "viewer", { groups: ["ops"] })).rejects.toMatchObject({
      code: "conflict",
    });
    expect(lost()).toBe(USER_CHANGE_ATTEMPTS_MAX);
    expect(await users.find(testPrincipal(), "viewer")).toMatchObject({ groups: [], home: `/writer${lost()}` });
  });

  test("a write whose answer got lost is no conflict", async () => {
    const inner = (await http.engine.tenant("matrix")).kv;
    let losses = 0;
    const kv = wrappedKv(inner, {
      async txn(request) {
        const written = await inner.txn(request);
        if (losses++ === 0) throw new AppError("unknown_outcome", "the answer got lost");
        return written;
      },
    });
    const stores = {
      system: () => http.engine.system(),
      tenant: async (name: string) => ({ ...(await http.engine.tenant(name)), kv }),
    };
    const users = new UserService({ runtime: testRuntime(clock), stores, tenants: http.tenants, audit: http.audit });
    await users.create(testPrincipal(), { username: "lost", password: PASSWORD, rights: { role: "viewer" } });
    expect([losses, (await users.find(testPrincipal(), "lost"))?.username]).toEqual([2, "lost"]);
  });

  test("what is answered of a user holds no hash", async () => {
    expect(JSON.stringify(await http.users.find(testPrincipal(), "admin"))).not.toContain("argon2");
  });
});

describe("the pages", () => {
  const form = (body: string, headers: Record<string, string> = {}) =>
    http.app.inject({
      method: "POST",
      url: "/user/login",
      payload: body,
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });

  test("program sign-in answers the session id in every form and sets it as cookie", async () => {
    const query = `company=matrix&username=admin&password=${encodeURIComponent(PASSWORD)}`;
    const ways = [
      { method: "POST" as const, url: `/user/signin?${query}` },
      { method: "GET" as const, url: `/user/signin?${query}` },
      {
        method: "POST" as const,
        url: "/user/signin",
        payload: query,
        headers: { "content-type": "application/x-www-form-urlencoded" },
      },
      {
        method: "POST" as const,
        url: "/user/signin",
        payload: { company: "matrix", username: "admin", password: PASSWORD },
      },
    ];
    for (const way of ways) {
      const response = await http.app.inject(way);
      const { status, message } = response.json();
      expect(status).toBe("ok");
      expect(await user(message)).toBe("admin");
      expect(response.headers["set-cookie"]).toBe(`matrixSession=${message}; Path=/; HttpOnly; SameSite=Lax`);
    }
  });

  test("the form leads to the start page, remembered with a lasting cookie", async () => {
    const response = await form(
      `company=matrix&user_name=admin&password=${encodeURIComponent(PASSWORD)}&remember=true&_csrf=x`,
    );
    expect([response.statusCode, response.headers.location]).toEqual([302, "/"]);
    const cookie = String(response.headers["set-cookie"]);
    expect(cookie).toContain(`Max-Age=${String(SESSION_REMEMBERED_MS / 1_000)}`);
    const home = await http.app.inject({ url: "/", headers: { cookie: cookie.split(";")[0] ?? "" } });
    expect(home.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(home.body).toContain("<dd>admin</dd>");
    expect(home.body).toContain("/openapi.json");
  });

  test("a wrong form sends people back with the reason and programs away with an error", async () => {
    const wrong = "company=matrix&username=admin&password=wrong";
    const person = await form(wrong, { accept: "text/html,*/*" });
    expect([person.statusCode, person.headers.location]).toEqual([302, "/user/login?error=denied"]);
    const page = await http.app.inject({ url: "/user/login?error=denied" });
    expect(page.body).toContain(`role="alert"`);
    const program = await form(wrong, { accept: "*/*" });
    expect([program.statusCode, program.json().code]).toEqual([500, "denied"]);
  });

  test("nothing of the query is shown as it came", async () => {
    const page = await http.app.inject({ url: "/user/login?error=%3Cscript%3E" });
    expect(page.body).not.toContain("<script");
  });

  test("strangers are sent to the form; signing out ends the session", async () => {
    const stranger = await http.app.inject({ url: "/" });
    expect([stranger.statusCode, stranger.headers.location]).toEqual([302, "/user/login"]);
    for (const url of ["/user/logout/admin", "/user/logout"]) {
      const session = await http.signIn("admin");
      const out = await http.app.inject({ url, headers: { cookie: `matrixSession=${session}` } });
      expect([out.statusCode, out.headers.location]).toEqual([302, "/user/login"]);
      expect(String(out.headers["set-cookie"])).toMatch(/^matrixSession=;/);
      expect(await user(session)).toBeUndefined();
    }
  });
});
