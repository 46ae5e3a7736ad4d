import type { TOTP } from "otpauth";
import { Secret, URI } from "otpauth";
import decodeQR from "qr/decode.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RECOVERY_CODES } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { accountPage } from "./account-pages.ts";

const OWN = { host: "odp.example", accept: "text/html", "user-agent": "Mozilla/5.0", "sec-fetch-site": "same-origin" };
const FACTOR = "/user/account/secondfactor";

let http: TestHttp;
let clock: TestClock;
let cookie: string;
beforeAll(async () => {
  clock = new TestClock(realClock.nowMs());
  http = await openTestHttp({ runtime: testRuntime(clock) });
  cookie = `matrixSession=${await http.signIn("viewer")}`;
});
afterAll(() => http[Symbol.asyncDispose]());

const open = (url: string, headers: Readonly<Record<string, string>> = { ...OWN, cookie }) =>
  http.app.inject({ url, headers });
const post = (url: string, payload: object, others: Readonly<Record<string, string>> = {}) =>
  http.app.inject({ method: "POST", url, payload, headers: { ...OWN, cookie, ...others } });

/** The text of the QR code on a page, as a camera reads it. */
function pictured(page: string): string {
  const [, side = "", path = ""] = /<svg viewBox="0 0 (\d+) \d+"[^>]*><path d="([^"]+)"/.exec(page) ?? [];
  const fieldPixels = 4;
  const width = Number(side) * fieldPixels;
  const data = new Uint8Array(width * width * 4).fill(255);
  let [x, y] = [0, 0];
  for (const [, move, dx, dy] of path.matchAll(/([Mm])(-?\d+)[ ,]?(-?\d+)/g)) {
    [x, y] = move === "M" ? [Number(dx), Number(dy)] : [x + Number(dx), y + Number(dy)];
    for (let pixel = 0; pixel < fieldPixels * fieldPixels; pixel++) {
      const row = y * fieldPixels + Math.floor(pixel / fieldPixels);
      const at = (row * width + x * fieldPixels + (pixel % fieldPixels)) * 4;
      data.fill(0, at, at + 3);
    }
  }
  return decodeQR({ width, height: width, data });
}

test("a person turns a second factor on by its picture, reads the recovery codes once, and turns it off", async () => {
  expect((await open("/")).body).toContain('href="/user/account"');
  expect((await open("/user/account")).body).toContain(`action="${FACTOR}"`);
  expect((await post(FACTOR, { password: "wrong" })).headers.location).toBe("/user/account?error=denied");
  expect((await open("/user/account?error=denied")).body).toContain("The password is wrong.");

  const enrol = await post(FACTOR, { password: PASSWORD });
  expect(enrol.headers["cache-control"]).toBe("no-store");
  const device = URI.parse(pictured(enrol.body)) as TOTP;
  expect([device.issuer, device.label]).toEqual(["odp", "matrix.viewer"]);
  const typed = /id="secret">([A-Z2-7 ]+)</.exec(enrol.body)?.[1]?.replaceAll(" ", "") ?? "";
  expect(Secret.fromBase32(typed).base32).toBe(device.secret.base32);

  const again = await post(`${FACTOR}/confirm`, { code: "000000" });
  expect(again.body).toContain("This code is wrong.");
  expect(again.body).not.toContain(typed);
  const codes = await post(`${FACTOR}/confirm`, { code: device.generate({ timestamp: clock.nowMs() }) });
  expect(codes.headers["cache-control"]).toBe("no-store");
  expect(codes.body.match(/<li>[a-z2-7-]{16,}<\/li>/g)).toHaveLength(RECOVERY_CODES);

  const on = (await open("/user/account")).body;
  expect(on).toContain(`${RECOVERY_CODES} recovery codes are left`);
  expect(on).not.toMatch(/[a-z2-7]{4}-[a-z2-7]{4}-/);
  expect((await post(FACTOR, { password: PASSWORD })).headers.location).toBe("/user/account?error=conflict");
  expect((await post(`${FACTOR}/remove`, { password: "wrong" })).headers.location).toBe("/user/account?error=denied");
  expect((await post(`${FACTOR}/remove`, { password: PASSWORD })).headers.location).toBe("/user/account");
  expect((await open("/user/account")).body).toContain(`action="${FACTOR}"`);
});

test("who is not signed in is led to the form, and a page of another site changes nothing", async () => {
  expect((await open("/user/account", OWN)).headers.location).toBe("/user/login");
  for (const url of [FACTOR, `${FACTOR}/remove`, `${FACTOR}/confirm`]) {
    const payload = { password: PASSWORD, code: "000000" };
    const foreign = await post(url, payload, { "sec-fetch-site": "cross-site", origin: "https://evil.example" });
    expect(foreign.headers.location, url).toBe("/user/account?error=denied");
  }
});

test("a person changes the own password with the present one, which ends the sessions", async () => {
  const next = "four-yellow-tables-9";
  await http.users.create(testPrincipal(), { username: "mover", password: PASSWORD, rights: { role: "viewer" } });
  const signIn = async (password: string) =>
    (await http.app.inject({ url: "/user/signin", query: { company: "matrix", username: "mover", password } })).json<{
      status: string;
      message: string;
    }>();
  const session = { cookie: `matrixSession=${(await signIn(PASSWORD)).message}` };
  const change = (password: string, newpassword: string) =>
    post("/user/account/password", { password, newpassword }, session);

  expect((await open("/user/account", { ...OWN, ...session })).body).toContain('action="/user/account/password"');
  expect((await change("wrong", next)).headers.location).toBe("/user/account?error=denied");
  expect((await change(PASSWORD, "12345678")).headers.location).toBe("/user/account?error=invalid");
  expect(await signIn(PASSWORD)).toMatchObject({ status: "ok" });
  expect((await change(PASSWORD, next)).headers.location).toBe("/user/login");
  expect((await open("/user/account", { ...OWN, ...session })).headers.location).toBe("/user/login");
  expect((await signIn(PASSWORD)).status).not.toBe("ok");
  expect(await signIn(next)).toMatchObject({ status: "ok" });
});

test("a person sees where else he is signed in, and ends that with the password", async () => {
  await http.users.create(testPrincipal(), { username: "walker", password: PASSWORD, rights: { role: "viewer" } });
  const signIn = async (remote: string) =>
    (await http.users.signIn({ company: "matrix", username: "walker", password: PASSWORD, remote, traceparent: "" }))
      .session;
  const isOpen = async (session: string) => (await http.users.bySession(session, "")) !== undefined;
  const [here, lost, other, third] = [
    await signIn("here"),
    await signIn("192.0.2.7"),
    await signIn("<b>"),
    await signIn("r"),
  ];
  const own = { ...OWN, cookie: `matrixSession=${here}` };
  const end = async (payload: object) => (await post("/user/account/sessions", payload, own)).headers.location;
  const { body } = await open("/user/account", own);
  const [, id = ""] = /value="([0-9a-f]{64})"> [\d: -]+ UTC, from 192\.0\.2\.7</.exec(body) ?? [];
  expect(body.match(/type="radio"/g)).toHaveLength(4);
  expect(body).toContain("from &lt;b&gt;<");

  expect(await end({ id, password: "wrong" })).toBe("/user/account?error=denied");
  expect(await isOpen(lost)).toBe(true);
  expect(await end({ id, password: PASSWORD })).toBe("/user/account");
  expect([await isOpen(lost), await isOpen(other)]).toEqual([false, true]);
  expect(await end({ id, password: PASSWORD })).toBe("/user/account?error=not_found");
  expect(await end({ id: "", password: "wrong" })).toBe("/user/account?error=denied");
  expect(await end({ id: "", password: PASSWORD })).toBe("/user/account");
  expect([await isOpen(here), await isOpen(other), await isOpen(third)]).toEqual([true, false, false]);
  expect((await open("/user/account", own)).body).toContain("and nowhere else");
});

test("the account says what its user owes, and whether the page is of one of the sessions", () => {
  type View = Parameters<typeof accountPage>[0];
  const at = (current: boolean) => ({ id: "ab", createdMs: 0, remote: "r", current });
  const shown = (sessions: View["sessions"], owes?: View["owes"]) =>
    accountPage({ user: "ann", owes, error: undefined, sessions, recoveryCodes: undefined }).page;
  for (const duty of ["password", "second factor"] as const)
    expect(shown([], duty).match(/role="alert"/g), duty).toHaveLength(1);
  expect(shown([])).not.toContain('role="alert"');
  expect(shown([at(true), at(false)])).toContain("You are signed in here, and by these sessions");
  expect(shown([at(false)]), "by Basic").toContain("You are signed in, and by these sessions");
  expect(shown([at(false)])).toMatch(/value="" checked> all of these/);
});

test("whoever is signed in can sign out on every page", async () => {
  const pages = [await open("/"), await open("/user/account"), await post(FACTOR, { password: PASSWORD })];
  const wrong = await post(`${FACTOR}/confirm`, { code: "000000" });
  for (const { body } of [...pages, wrong]) expect(body).toMatch(/<a [^>]*href="\/user\/logout/);
});

test("nothing of the query or of a name becomes a tag", async () => {
  const { body, headers } = await open(`/user/account?error=${encodeURIComponent("<script>")}`);
  expect(body).toContain("That did not work.");
  expect(body).not.toContain("<script>");
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
});
