import type { InjectOptions } from "fastify";
import { Secret, TOTP } from "otpauth";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FIRST_PASSWORD_MS, SIGN_IN_CACHE_MS } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { UserService } from "../service.ts";
import type { UserRecord } from "../store.ts";
import { PendingRequirements } from "./pending-requirements.ts";

const SECOND = "another long enough one";
const principal = testPrincipal();
const OWES_FACTOR = { code: "denied", message: expect.stringContaining("must set up a second factor") as string };
const PROGRAM_OWES_FACTOR = { ...OWES_FACTOR, code: "action_required" };
const OWES_PASSWORD = { code: "denied", message: expect.stringContaining("must change the first password") as string };

let http: TestHttp;
let clock: TestClock;
let admin: string;
beforeAll(async () => {
  // On the cluster entries expire by the real clock.
  clock = new TestClock(realClock.nowMs());
  http = await openTestHttp({ runtime: testRuntime(clock) });
  admin = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

const PROGRAM_OWES_PASSWORD = { ...OWES_PASSWORD, code: "action_required" };
const call = (session: string, method: "GET" | "POST", url: string, payload?: object) =>
  http.call(session, { method, url, ...(payload && { payload }) } as InjectOptions & { url: string });
const setPolicy = (change: object) => http.users.signInPolicy.set(principal, change);
const signIn = async (username: string, password = PASSWORD, users = http.users) =>
  users.signIn({ company: "matrix", username, password, remote: "r", traceparent: "" });
const basic = (username: string, password = PASSWORD) =>
  http.app.inject({
    url: "/user/tokens",
    headers: { authorization: `Basic ${Buffer.from(`matrix.${username}:${password}`).toString("base64")}` },
  });
const byToken = async (token: unknown, options: Partial<InjectOptions> = {}) =>
  (
    await http.app.inject({ url: "/admin/users", ...options, headers: { authorization: `Bearer ${String(token)}` } })
  ).json<object>();
const newUser = (username: string) =>
  http.users.create(principal, { username, password: PASSWORD, rights: { role: "viewer" } });

async function enrol(session: string): Promise<void> {
  const { message } = await call(session, "POST", "/user/secondfactor", { password: PASSWORD });
  const { secret } = message as { secret: string };
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.nowMs() });
  expect(await call(session, "POST", "/user/secondfactor/confirm", { code })).toMatchObject({ status: "ok" });
}

test("a required second factor leaves a user nothing but setting it up, by open sessions too, until it is on", async () => {
  await newUser("required");
  const { session } = await signIn("required");
  const { message: token } = await call(session, "POST", "/user/tokens", { name: "before", scopes: ["users:read"] });
  expect(await call(session, "GET", "/admin/users")).toMatchObject({ status: "ok" });
  await setPolicy({ secondFactor: "everybody" });
  expect(await call(session, "GET", "/admin/users")).toMatchObject(OWES_FACTOR);
  expect(await call(session, "POST", "/user/tokens", { name: "t", scopes: ["users:read"] })).toMatchObject(OWES_FACTOR);
  expect(await call(session, "POST", "/user/settings/home", { home: "/static" })).toMatchObject(OWES_FACTOR);
  expect((await signIn("required")).home).toBe("/user/account");
  const page = await http.app.inject({ url: `/user/account?sessionid=${session}`, headers: { accept: "text/html" } });
  expect(page.body).toContain("Your company requires a second factor");
  const start = await http.app.inject({ url: `/?sessionid=${session}`, headers: { accept: "text/html" } });
  expect(start.headers.location).toBe("/user/account");
  expect((await basic("required")).json()).toMatchObject(PROGRAM_OWES_FACTOR);
  expect(await byToken(token)).toMatchObject(PROGRAM_OWES_FACTOR);
  expect((await basic("required", token as string)).json()).toMatchObject(PROGRAM_OWES_FACTOR);
  const owing = (await http.users.bySession(session, "")) ?? principal;
  await expect(http.users.providers.beginLink(owing, PASSWORD)).rejects.toMatchObject(OWES_FACTOR);
  await expect(http.users.providers.unlinkOwn(owing, PASSWORD)).rejects.toMatchObject(OWES_FACTOR);
  await enrol(session);
  expect(await call(session, "GET", "/admin/users")).toMatchObject({ status: "ok" });
  expect(await byToken(token)).toMatchObject({ status: "ok" });
  await setPolicy({ secondFactor: "optional" });
});

test("a factor that only administrators need leaves others alone, and is theirs by whatever right", async () => {
  await newUser("plain");
  await http.users.create(principal, {
    username: "granted",
    password: PASSWORD,
    rights: { grants: ["perms:write", "users:read"], data: [] },
  });
  await setPolicy({ secondFactor: "administrators" });
  const [plain, granted] = [await signIn("plain"), await signIn("granted")];
  expect(await call(plain.session, "GET", "/admin/users")).toMatchObject({ status: "ok" });
  expect(await call(granted.session, "GET", "/admin/users")).toMatchObject(OWES_FACTOR);
  // The administrator who required it must have it, too, and is not locked out: the password still leads to the page
  // that sets it up.
  expect(await call(admin, "POST", "/admin/signinpolicy", { secondfactor: "optional" })).toMatchObject(OWES_FACTOR);
  await enrol(admin);
  expect(await call(admin, "POST", "/admin/signinpolicy", { secondfactor: "optional" })).toMatchObject({
    message: { secondfactor: "optional", firstpasswords: "lasting" },
  });
});

test("no token switches off what its user owes, and a problem says so with a status of its own", async () => {
  const scopes = ["*:read", "*:write", "*:run"];
  await http.users.create(principal, { username: "boss", password: PASSWORD, rights: { role: "administrator" } });
  const { session } = await signIn("boss");
  const { message: token } = await call(session, "POST", "/user/tokens", { name: "all", scopes });
  await setPolicy({ secondFactor: "administrators" });
  const change = { method: "POST", url: "/admin/signinpolicy", payload: { secondfactor: "optional" } } as const;
  expect(await byToken(token, change)).toMatchObject(PROGRAM_OWES_FACTOR);
  expect(await http.users.signInPolicy.get(principal)).toMatchObject({ secondFactor: "administrators" });
  const headers = { authorization: `Bearer ${String(token)}`, accept: "application/problem+json" };
  const problem = await http.app.inject({ url: "/admin/users", headers });
  expect([problem.statusCode, problem.json<{ code: string }>().code]).toEqual([403, "action_required"]);
  await setPolicy({ secondFactor: "optional" });
  expect(await byToken(token)).toMatchObject({ status: "ok" });
});

test("before the switch it is told which tokens and Basic users stop, and nothing is changed by asking", async () => {
  const before = await http.users.create(principal, {
    username: "robot",
    password: PASSWORD,
    rights: { grants: ["perms:write"], data: [] },
  });
  const { session } = await signIn("robot");
  await call(session, "POST", "/user/tokens", { name: "backup", scopes: ["perms:write"] });
  await http.users.create(principal, {
    username: "idle",
    password: PASSWORD,
    rights: { role: "viewer" },
    active: false,
  });
  const second = await http.signIn("admin", "second");
  await call(second, "POST", "/user/tokens", { name: "theirs", scopes: ["*:read"] });
  await newUser("factored");
  await enrol((await signIn("factored")).session);
  const asked = (query: string) => call(viewer, "GET", `/admin/signinpolicy/preview?${query}`);
  const viewer = await http.signIn("viewer");
  const few = await asked("secondfactor=administrators");
  expect(few).toMatchObject({ message: { secondfactor: "administrators", firstpasswords: "lasting" } });
  const { stops } = few.message as { stops: { users: string[]; tokens: { user: string; name: string }[] } };
  expect(stops.users).toContain("robot");
  expect(stops.users).not.toContain("viewer");
  expect(stops.tokens).toContainEqual({ user: "robot", name: "backup" });
  expect(stops).toMatchObject({ usercount: stops.users.length, tokencount: stops.tokens.length });
  const all = (await asked("secondfactor=everybody")).message as { stops: { users: string[]; tokens: object[] } };
  expect(all.stops.users).toEqual(expect.arrayContaining(["robot", "viewer"]));
  for (const name of ["idle", "factored"]) expect(all.stops.users).not.toContain(name);
  expect(JSON.stringify(all.stops.tokens)).not.toContain("theirs");
  expect((await asked("firstpasswords=once")).message).toMatchObject({ stops: { users: [], tokens: [] } });
  expect(await http.users.signInPolicy.get(principal)).toMatchObject({ secondFactor: "optional" });
  expect(await setPolicy({ secondFactor: "administrators" })).toMatchObject({ stops: { users: stops.users } });
  // Users who were stopped before are not reported again.
  expect((await http.users.signInPolicy.preview(principal, { secondFactor: "everybody" })).stops.users).not.toContain(
    before.username,
  );
  await setPolicy({ secondFactor: "optional" });
});

test("another controller holds its users to it within what it keeps of a sign-in", async () => {
  await newUser("elsewhere");
  const { engine: stores, tenants, audit, groups } = http;
  const other = new UserService({ runtime: testRuntime(clock), stores, tenants, audit, groups, secrets: TEST_SECRETS });
  const { session } = await signIn("elsewhere", PASSWORD, other);
  expect((await other.bySession(session, ""))?.owes).toBeUndefined();
  await setPolicy({ secondFactor: "everybody" });
  clock.advance(SIGN_IN_CACHE_MS);
  expect(await other.bySession(session, "")).toMatchObject({ owes: "second factor", grants: [], data: [], paths: [] });
  await setPolicy({ secondFactor: "optional" });
});

test("a first password signs in to its change only, not by Basic, and to nothing once it is changed", async () => {
  await setPolicy({ firstPasswords: "once" });
  await newUser("fresh");
  const { session, home } = await signIn("fresh");
  expect(home).toBe("/user/account");
  expect(await call(session, "GET", "/admin/users")).toMatchObject(OWES_PASSWORD);
  expect((await basic("fresh")).json()).toMatchObject(PROGRAM_OWES_PASSWORD);
  const change = { password: PASSWORD, newpassword: PASSWORD };
  expect(await call(session, "POST", "/user/password", change)).toMatchObject({ code: "invalid" });
  expect(await call(session, "POST", "/user/password", { ...change, newpassword: SECOND })).toMatchObject({
    status: "ok",
  });
  expect(await call((await signIn("fresh", SECOND)).session, "GET", "/admin/users")).toMatchObject({ status: "ok" });
  expect((await basic("fresh", SECOND)).json()).toMatchObject({ status: "ok" });
  await http.users.setPassword(principal, "fresh", PASSWORD);
  expect(await call((await signIn("fresh")).session, "GET", "/admin/users")).toMatchObject(OWES_PASSWORD);
  await setPolicy({ firstPasswords: "lasting" });
});

test("a first password binds a user with a second factor as any other, also tokens of before, and no policy stops it again", async () => {
  await newUser("doubly");
  const { session } = await signIn("doubly");
  await enrol(session);
  const { message: token } = await call(session, "POST", "/user/tokens", { name: "before", scopes: ["users:read"] });
  await setPolicy({ firstPasswords: "once" });
  await http.users.setPassword(principal, "doubly", SECOND);
  expect(await byToken(token)).toMatchObject(PROGRAM_OWES_PASSWORD);
  await newUser("first");
  const { stops } = await http.users.signInPolicy.preview(principal, { secondFactor: "everybody" });
  expect(stops.users).not.toContain("first");
  await setPolicy({ firstPasswords: "lasting" });
});

test("a first password ends, and an operator gives the only administrator another one", async () => {
  await setPolicy({ firstPasswords: "once" });
  await http.users.create(principal, { username: "late", password: PASSWORD, rights: { role: "administrator" } });
  const { session } = await signIn("late");
  clock.advance(FIRST_PASSWORD_MS);
  await expect(signIn("late")).rejects.toThrow("This first password ended");
  await expect(signIn("late", SECOND)).rejects.toThrow("are wrong");
  expect((await basic("late")).json()).toMatchObject({ code: "denied" });
  const change = { password: PASSWORD, newpassword: SECOND };
  expect(await call(session, "POST", "/user/password", change)).not.toMatchObject({ status: "ok" });
  const password = await http.users.operator.resetPassword("matrix", "late");
  const { session: again } = await signIn("late", password);
  expect(await call(again, "GET", "/admin/users")).toMatchObject(OWES_PASSWORD);
  expect(await call(again, "POST", "/user/password", { password, newpassword: SECOND })).toMatchObject({
    status: "ok",
  });
  expect((await signIn("late", SECOND)).home).toBe("/");
  await setPolicy({ firstPasswords: "lasting" });
});

test("a change of the policy is reported at once, also where no watch runs", async () => {
  const reported: unknown[] = [];
  http.users.onChange((change) => reported.push(change));
  await setPolicy({ firstPasswords: "once" });
  expect(reported).toContainEqual({ tenant: "matrix" });
  await setPolicy({ firstPasswords: "lasting" });
});

test("no policy asks for a second factor where none can be sealed", () => {
  const user = { secondFactor: false } as UserRecord;
  const under = (mayEnrol: boolean) =>
    new PendingRequirements(http.engine, clock, mayEnrol).under(
      { secondFactor: "everybody", firstPasswords: "lasting" },
      user,
      { grants: [] },
    );
  expect([under(true), under(false)]).toEqual(["second factor", undefined]);
});

test("the policy is an administrator's alone, and what no policy asks is not asked", async () => {
  const viewer = await http.signIn("viewer");
  expect(await call(viewer, "GET", "/admin/signinpolicy")).toMatchObject({
    message: { secondfactor: "optional", firstpasswords: "lasting" },
  });
  expect(await call(viewer, "POST", "/admin/signinpolicy", { secondfactor: "everybody" })).toMatchObject({
    code: "denied",
  });
  const second = await http.signIn("admin", "second");
  await setPolicy({ firstPasswords: "once" });
  expect(await call(second, "GET", "/admin/signinpolicy")).toMatchObject({ message: { firstpasswords: "lasting" } });
  await setPolicy({ firstPasswords: "lasting" });
});
