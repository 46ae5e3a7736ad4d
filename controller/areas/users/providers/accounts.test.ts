import { Secret, TOTP } from "otpauth";
import { describe, expect, test, vi } from "vitest";
import { USERS_PER_TENANT_MAX } from "../../../../common/limits.ts";
import { PASSWORD } from "../../../../test/helpers/http/http-app.ts";
import { OpenIdBrowser } from "../../../../test/helpers/users/openid-browser.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import {
  OWN,
  account,
  accountOf,
  browser,
  clock,
  groupsOf,
  http,
  principalOf,
  provider,
  useOpenId,
  who,
} from "../../../../test/helpers/users/openid-world.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";

useOpenId();

describe("whose account it is", () => {
  test("is not settled by a name that both have", async () => {
    for (const name of ["admin", "viewer"]) {
      const own = new OpenIdBrowser(http.app, OWN);
      const answer = await own.signIn(account(`not-${name}`, { preferred_username: name }));
      expect(answer.headers.location).toBe("/user/login?error=openid-account");
    }
    expect(http.trail.records.at(-1)).toMatchObject({ outcome: "denied", user: "" });
    expect(http.trail.records.at(-1)?.action).toBe('sign in by OpenID Connect: "not-viewer"');
  });

  test("nor by a name that groups have for a user who is still to come", async () => {
    const admin = await http.signIn("admin");
    const payload = { name: "prepared", member: ["U/awaited"], writable: ["/"] };
    expect(await http.call(admin, { method: "POST", url: "/admin/perms/group", payload })).toMatchObject({
      status: "ok",
    });
    const answer = await browser.signIn(account("sneaky", { preferred_username: "awaited" }));
    expect(answer.headers.location).toBe("/user/login?error=openid-account");
    expect(await http.users.find(testPrincipal(), "awaited")).toBeUndefined();
  });

  test("no name, and one that is none, make no user", async () => {
    for (const preferred_username of ["", "a/b", "a:b", "x".repeat(129)]) {
      const answer = await browser.signIn(account("nameless", { preferred_username }));
      expect(answer.headers.location).toBe("/user/login?error=openid-account");
    }
  });

  test("a user who is inactive or gone is not signed in, and a new one of the name is another", async () => {
    await browser.signIn(account("kim"));
    await http.users.update(testPrincipal(), "kim", { active: false });
    expect((await browser.signIn("kim")).headers.location).toBe("/user/login?error=openid-account");
    const before = await http.users.find(testPrincipal(), "kim");
    await http.users.directory.remove(testPrincipal(), before?.id ?? "");
    const { kv } = await http.engine.tenant("matrix");
    const { entries } = await kv.list("openidlinks/");
    expect(entries.map(({ value }) => Buffer.from(value).toString("latin1")).join()).not.toContain("kim");
    await http.users.create(testPrincipal(), { username: "kim", password: PASSWORD, rights: { role: "viewer" } });
    expect((await browser.signIn("kim")).headers.location).toBe("/user/login?error=openid-account");
  });

  test("is no question when no user can be made: that is an error", async () => {
    const { kv } = await http.engine.tenant("matrix");
    const before = (await kv.get("usertree"))?.value ?? new Uint8Array();
    await kv.put("usertree", encodeJson({ ...decodeStored<object>(before), users: USERS_PER_TENANT_MAX }));
    const profile = { username: "tess", firstname: "Tess", lastname: undefined, email: "tess@example.org" };
    const request = {
      ...{ tenant: "matrix", account: accountOf("tess"), profile, groups: [], governed: [], creates: true },
      ...{ remember: false, replaced: undefined, redirect: "", remote: "r", traceparent: "" },
    };
    await expect(http.users.providers.signIn(request)).rejects.toMatchObject({ code: "too_large" });
    await kv.put("usertree", before);
    await expect(http.users.providers.signIn(request)).resolves.toHaveProperty("session");
    const { details } = (await http.users.find(testPrincipal(), "tess")) ?? {};
    const given = { firstname: "Tess", lastname: "", email: ["tess@example.org"], auth: "openid" };
    expect(details).toMatchObject(given);
  });

  test("of a user who became inactive while groups were set is not signed in", async () => {
    await browser.signIn(account("rex", { groups: ["ops"] }));
    const { directory } = http.users;
    const govern = directory.govern.bind(directory);
    vi.spyOn(directory, "govern").mockImplementationOnce(async (...given) => {
      const user = await govern(...given);
      await http.users.update(testPrincipal(), "rex", { active: false });
      return user;
    });
    account("rex", { groups: ["dev"] });
    expect((await browser.signIn("rex")).headers.location).toBe("/user/login?error=openid-account");
    expect(await groupsOf("rex")).toEqual(["/authors"]);
  });

  test("stays with its tenant, whatever is asked", async () => {
    await browser.signIn(account("lena"), "/user/openid?company=second&tenant=second");
    expect(await who()).toBe("matrix.lena");
    expect(await http.users.find(testPrincipal("administrator", "second"), "lena")).toBeUndefined();
  });
});

describe("an account is linked", () => {
  const idOf = async (username: string) => (await http.users.find(testPrincipal(), username))?.id ?? "";
  const adminCall = async (method: "GET" | "PUT" | "DELETE", username: string, payload?: object) =>
    http.call(await http.signIn("admin"), {
      method,
      url: `/admin/users/${await idOf(username)}/openid`,
      ...(payload && { payload }),
    });
  const signedInAs = async (username: "admin" | "viewer") =>
    browser.cookies.set("matrixSession", await http.signIn(username));

  test("by an administrator, and unlinked again, which ends what is signed in", async () => {
    const subject = account("nora", { preferred_username: "viewer" });
    expect(await adminCall("PUT", "viewer", { subject })).toMatchObject({ status: "ok" });
    await browser.signIn(subject);
    expect(await who()).toBe("matrix.viewer");
    expect((await adminCall("GET", "viewer")).message).toEqual({ issuer: `${provider.issuer}/`, subject });
    expect(await adminCall("PUT", "admin", { subject })).toMatchObject({ code: "conflict" });
    expect(await adminCall("DELETE", "viewer")).toMatchObject({ status: "ok" });
    expect(await who()).toBeUndefined();
    expect((await browser.signIn(subject)).headers.location).toBe("/user/login?error=openid-account");
  });

  test("by nobody who has less than the user, and not in another tenant", async () => {
    const clerk = { ...testPrincipal(), user: "clerk", grants: ["users:read", "users:write"], data: [], paths: [] };
    await expect(http.users.providers.link(clerk, await idOf("admin"), accountOf("x"))).rejects.toMatchObject({
      code: "denied",
    });
    await expect(http.users.providers.unlink(clerk, await idOf("admin"))).rejects.toMatchObject({ code: "denied" });
    const second = await http.signIn("admin", "second");
    const { id } = (await http.users.find(testPrincipal("administrator", "second"), "viewer")) ?? { id: "" };
    const request = { method: "PUT", url: `/admin/users/${id}/openid`, payload: { subject: "x" } } as const;
    expect(await http.call(second, request)).toMatchObject({ code: "denied" });
  });

  test("by the user who is signed in and gives the password, from a page of this site", async () => {
    await signedInAs("viewer");
    const wrong = await browser.post("/user/openid/link", { password: "wrong" });
    expect(wrong.headers.location).toBe("/user/account?error=denied");
    expect((await browser.open("/user/account")).body).toContain('action="/user/openid/link"');
    const page = await browser.post("/user/openid/link", { password: PASSWORD });
    const address = /class="button" href="([^"]+)"/.exec(page.body)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const before = browser.cookies.get("matrixSession");
    await browser.open(await browser.atProvider(address, account("olga")), { "sec-fetch-site": "cross-site" });
    expect(browser.cookies.get("matrixSession")).toBe(before);
    const other = new OpenIdBrowser(http.app, OWN);
    await other.signIn("olga");
    expect((await http.users.bySession(other.cookies.get("matrixSession") ?? "", ""))?.user).toBe("viewer");
    expect((await browser.post("/user/openid/unlink", { password: PASSWORD })).headers.location).toBe("/user/login");
    await other.signIn("olga");
    expect((await http.users.bySession(other.cookies.get("matrixSession") ?? "", ""))?.user).toBe("olga");
  });

  test("to nobody by a page of another site, nor when another is signed in at its end", async () => {
    await signedInAs("viewer");
    const cookie = `matrixSession=${browser.cookies.get("matrixSession") ?? ""}`;
    const foreign = await http.app.inject({
      method: "POST",
      url: "/user/openid/link",
      headers: { cookie, origin: "https://evil.example", "user-agent": "Mozilla/5.0" },
      payload: { password: PASSWORD },
    });
    expect(foreign.json()).toMatchObject({ code: "denied" });
    const page = await browser.post("/user/openid/link", { password: PASSWORD });
    const address = /class="button" href="([^"]+)"/.exec(page.body)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const back = await browser.atProvider(address, account("paul"));
    await signedInAs("admin");
    expect((await browser.open(back)).headers.location).toBe("/user/login?error=deadline");
    expect((await adminCall("GET", "admin")).message).toEqual({ issuer: "", subject: "" });
  });

  test("and a second factor is asked for all the same", async () => {
    const { secret } = await http.users.secondFactors.begin(await principalOf("viewer"), PASSWORD);
    const device = new TOTP({ secret: Secret.fromBase32(secret) });
    const code = device.generate({ timestamp: clock.nowMs() });
    await http.users.secondFactors.confirm(await principalOf("viewer"), code);
    const subject = account("quinn");
    await http.users.providers.link(testPrincipal(), await idOf("viewer"), accountOf(subject));
    const page = await browser.signIn(subject);
    expect(await who()).toBeUndefined();
    const ticket = /name="ticket" value="([^"]+)"/.exec(page.body)?.[1] ?? "";
    clock.advance(30_000);
    await browser.post("/user/login", { ticket, code: device.generate({ timestamp: clock.nowMs() }) });
    expect(await who()).toBe("matrix.viewer");
  });
});

test("groups of the provider are set at each sign-in: who left one loses its rights, and its open sessions", async () => {
  await browser.signIn(account("mia", { groups: ["ops", "CN=all,OU=staff"] }));
  expect(await groupsOf("mia")).toEqual(["/operators", "/viewers"]);
  const before = browser.cookies.get("matrixSession") ?? "";
  expect((await http.users.bySession(before, ""))?.grants).toContain("hosts:write");
  await http.users.update(testPrincipal(), "mia", { groups: ["/operators", "/viewers", "/own"] });
  account("mia", { groups: "dev" });
  await browser.signIn("mia");
  expect(await groupsOf("mia")).toEqual(["/own", "/authors"]);
  const after = await http.users.bySession(browser.cookies.get("matrixSession") ?? "", "");
  expect(after?.grants).not.toContain("hosts:write");
  expect(await http.users.bySession(before, "")).toBeUndefined();
  account("mia", {});
  await browser.signIn("mia");
  expect(await groupsOf("mia")).toEqual(["/own"]);
});
