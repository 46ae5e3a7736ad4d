import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { OpenIdBrowser } from "../../../test/helpers/users/openid-browser.ts";
import { foreignKey, type Claims } from "../../../test/helpers/users/openid-provider.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { OPENID_TICKET_MS } from "../../../common/limits.ts";
import {
  OWN,
  REFUSED,
  CALLBACK,
  account,
  browser,
  clock,
  http,
  provider,
  settings,
  useOpenId,
  who,
} from "../../../test/helpers/users/openid-world.ts";

useOpenId();

describe("signing in by the provider", () => {
  test("the sign-in page leads there and back to the start page, with a user made for the account", async () => {
    expect((await browser.open("/user/login")).body).toContain('href="/user/openid">Sign in with single sign-on<');
    const named = { given_name: "Alice", family_name: "Ames", email: "alice@example.com" };
    const answer = await browser.signIn(account("alice", { ...named, groups: ["ops", "elsewhere"] }));
    expect(answer.headers.location).toBe("/");
    expect(await who()).toBe("matrix.alice");
    expect(await http.users.find(testPrincipal(), "alice")).toMatchObject({
      details: { firstname: "Alice", lastname: "Ames", email: ["alice@example.com"], auth: "openid" },
      groups: ["/operators"],
      rights: { grants: [] },
    });
    expect(http.trail.records.slice(-2)).toMatchObject([
      { user: "alice", permission: "users:write", outcome: "ok" },
      { user: "alice", action: "sign in by OpenID Connect", outcome: "ok" },
    ]);
  });

  test("the cookie of the way is for this browser alone, and gone at its end", async () => {
    const { headers } = await browser.open("/user/openid");
    const cookie = String(headers["set-cookie"]);
    expect(cookie).toMatch(/^odpTicket=[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
    const sent = new URL(String(headers.location)).searchParams;
    expect(sent.get("code_challenge_method")).toBe("S256");
    expect(sent.get("redirect_uri")).toBe(CALLBACK);
    expect(cookie).not.toContain(sent.get("state"));
    const end = await browser.open(await browser.atProvider(String(headers.location), account("carol")));
    expect([end.headers["set-cookie"]].flat()).toEqual([
      expect.stringMatching(/^matrixSession=[\w-]{43};/),
      expect.stringMatching(/^odpTicket=;/),
    ]);
  });

  test("tokens of the provider stay here: neither a page, an address nor a cookie has one", async () => {
    const begun = await browser.open("/user/openid");
    const back = await browser.atProvider(String(begun.headers.location), account("tessa"));
    const end = await browser.open(back);
    expect(await who()).toBe("matrix.tessa");
    const told = [begun, end].map(({ headers, body }) => JSON.stringify(headers) + body).join("");
    const shown = told + JSON.stringify([...browser.cookies]);
    expect(shown).not.toMatch(/(id|access|refresh)_token/);
    const tokens = provider.tokens.slice(-2);
    expect(tokens).toEqual([expect.stringMatching(/^eyJ/), expect.stringMatching(/^[\w-]{20,}$/)]);
    // The header and the claims of an ID token are secrets here as well, without its signature.
    for (const part of tokens.flatMap((token) => token.split("."))) expect(shown).not.toContain(part);
  });

  test("a session here outlives the account there, and ends by signing out here", async () => {
    await browser.signIn(account("dora"));
    provider.accounts.delete("dora");
    expect(await who()).toBe("matrix.dora");
    const session = browser.cookies.get("matrixSession") ?? "";
    await http.app.inject({ url: "/user/logout", query: { sessionid: session } });
    expect(await http.users.bySession(session, "")).toBeUndefined();
  });

  test("by HTTPS no neighbour of the same domain can plant that cookie", async () => {
    await using proxied = await openTestHttp({ openId: settings(), settings: { trustedProxies: ["127.0.0.1"] } });
    const answer = await proxied.app.inject({ url: "/user/openid", headers: { "x-forwarded-proto": "https" } });
    expect(answer.headers["set-cookie"]).toMatch(/^__Host-odpTicket=.*; Path=\/; HttpOnly; Secure; SameSite=Lax$/);
  });

  test("a session the browser had is not taken over, is over, and ends up as another", async () => {
    const planted = "A".repeat(43);
    browser.cookies.set("matrixSession", planted);
    await browser.signIn(account("dora"));
    expect(browser.cookies.get("matrixSession")).not.toBe(planted);
    expect(await http.users.bySession(planted, "")).toBeUndefined();
    expect(await who()).toBe("matrix.dora");

    const had = browser.cookies.get("matrixSession") ?? "";
    await browser.signIn("dora");
    expect(await http.users.bySession(had, "")).toBeUndefined();
    expect(await who()).toBe("matrix.dora");
  });

  test("a link of another site leads to the form alone, where the person clicks or does not", async () => {
    for (const [name, value] of [
      ["sec-fetch-site", "cross-site"],
      ["referer", "https://evil.example/"],
    ] as const) {
      const answer = await browser.open("/user/openid", { [name]: value });
      expect([answer.headers.location, answer.headers["set-cookie"]]).toEqual(["/user/login", undefined]);
    }
  });

  test("the second time finds the user by the subject, whatever the account is called by then", async () => {
    await browser.signIn(account("erin"));
    provider.accounts.set("erin", { preferred_username: "admin" });
    await browser.signIn("erin");
    expect(await who()).toBe("matrix.erin");
  });

  test("leads on to a page of this site, and to no other", async () => {
    const to = await browser.signIn(account("frank"), "/user/openid?redirect=/static/app.html");
    expect(to.headers.location).toBe("/static/app.html");
    for (const away of [
      "//evil.example",
      "https://evil.example/",
      "/\\evil.example",
      "/%0d%0aset-cookie:a=b/\r\n",
      `/${"x".repeat(1_000)}`,
    ]) {
      const answer = await browser.open(`/user/openid?redirect=${encodeURIComponent(away)}`);
      expect(answer.headers.location, away).toBe(REFUSED);
    }
  });
});

describe("nobody is signed in", () => {
  const refusedWith = async (url: string, location = REFUSED) => {
    const answer = await browser.open(url, { "sec-fetch-site": "cross-site" });
    expect(answer.headers.location).toBe(location);
    expect(await who()).toBeUndefined();
  };

  test("by another state, and the provider is asked nothing", async () => {
    const back = new URL(await browser.cameBack(account("gina")));
    back.searchParams.set("state", "another");
    const before = provider.requests.length;
    await refusedWith(back.href);
    back.searchParams.delete("state");
    await refusedWith(back.href, "/user/login?error=deadline");
    expect(provider.requests.length).toBe(before);
  });

  test("without the cookie, or with that of another browser", async () => {
    const back = await browser.cameBack(account("gina"));
    const other = new OpenIdBrowser(http.app, OWN);
    await other.open("/user/openid");
    const own = browser.cookies.get("odpTicket");
    browser.cookies.delete("odpTicket");
    await refusedWith(back, "/user/login?error=deadline");
    browser.cookies.set("odpTicket", other.cookies.get("odpTicket") ?? "");
    await refusedWith(back);
    browser.cookies.set("odpTicket", `${own?.slice(0, -2) ?? ""}AA`);
    await refusedWith(back, "/user/login?error=deadline");
  });

  test("a second time by the same answer", async () => {
    const back = await browser.cameBack(account("hans"));
    const ticket = browser.cookies.get("odpTicket") ?? "";
    await browser.open(back);
    expect(await who()).toBe("matrix.hans");
    browser.cookies.delete("matrixSession");
    await refusedWith(back, "/user/login?error=deadline");
    // With the cookie kept as well, the code is refused: the provider accepts each code once.
    browser.cookies.set("odpTicket", ticket);
    await refusedWith(back);
  });

  test("by a code of another sign-in", async () => {
    const stolen = new URL(await new OpenIdBrowser(http.app, OWN).cameBack(account("victim")));
    const back = new URL(await browser.cameBack(account("mallory")));
    back.searchParams.set("code", stolen.searchParams.get("code") ?? "");
    await refusedWith(back.href);
  });

  test("when the way took too long", async () => {
    const back = await browser.cameBack(account("gina"));
    clock.advance(OPENID_TICKET_MS + 1);
    await refusedWith(back, "/user/login?error=deadline");
  });

  test("when the user said no at the provider, or the answer is another's", async () => {
    const long = "x".repeat(9_000);
    for (const forged of [
      { error: "access_denied" },
      { error: long },
      { state: long },
      { iss: "https://evil.example" },
      { code: "made-up" },
    ]) {
      const back = new URL(await browser.cameBack(account("gina")));
      for (const [name, value] of Object.entries(forged)) back.searchParams.set(name, value);
      await refusedWith(back.href);
    }
  });

  test.each<readonly [string, (claims: Claims) => Claims]>([
    ["for another nonce", (claims) => ({ ...claims, nonce: "another" })],
    ["without a nonce", ({ nonce: _nonce, ...claims }) => claims],
    ["for another client", (claims) => ({ ...claims, aud: "another" })],
    ["of another issuer", (claims) => ({ ...claims, iss: "https://evil.example" })],
    ["that is over", (claims) => ({ ...claims, exp: Math.floor(Date.now() / 1_000) - 60 })],
    ["of an empty subject", (claims) => ({ ...claims, sub: "" })],
    ["of a subject that is too long", (claims) => ({ ...claims, sub: "x".repeat(256) })],
  ])("by a token %s", async (_name, change) => {
    provider.forge = (claims) => provider.sign(change(claims));
    await refusedWith(await browser.cameBack(account("gina")));
  });

  test("where what is said of the provider names another issuer", async () => {
    let issuer = provider.issuer;
    const at = (path: string): string => `${provider.issuer}/${path}`;
    const server = createServer((_request, response) => {
      const metadata = {
        issuer,
        authorization_endpoint: at("auth"),
        token_endpoint: at("token"),
        jwks_uri: at("jwks"),
      };
      response.setHeader("content-type", "application/json").end(JSON.stringify(metadata));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const own = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const openId = settings({ openid_issuer: own });
    const begun = async (): Promise<string | undefined> => {
      await using other = await openTestHttp({ openId });
      return (await other.app.inject({ url: "/user/openid" })).headers.location;
    };
    try {
      expect(await begun()).toBeUndefined();
      issuer = own;
      expect(await begun()).toContain(at("auth"));
    } finally {
      server.close();
    }
  });

  test("by a token of another key, or of none", async () => {
    const none = (claims: Claims) =>
      `${[{ alg: "none" }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")}.`;
    for (const forge of [(claims: Claims) => provider.sign(claims, foreignKey()), none]) {
      provider.forge = forge;
      await refusedWith(await browser.cameBack(account("gina")));
    }
  });

  test("by what is sent to become a header or a tag", async () => {
    const evil = encodeURIComponent(`x\r\nSet-Cookie: a=b\r\n\r\n<script>alert(1)</script>`);
    await browser.open("/user/openid");
    for (const name of ["code", "state", "error", "error_description", "iss"]) {
      const answer = await browser.open(`/user/openid/callback?${name}=${evil}`);
      expect(JSON.stringify(answer.headers)).not.toMatch(/a=b|<script>/);
      expect(answer.body).not.toContain("<script>");
    }
  });
});

test("a token whose clock is a little ahead is taken", async () => {
  provider.forge = (claims) => provider.sign({ ...claims, iat: Math.floor(Date.now() / 1_000) + 20 });
  await browser.signIn(account("ines"));
  expect(await who()).toBe("matrix.ines");
});

test("the provider changes its keys, and nothing here has to be started again", async () => {
  await browser.signIn(account("jane"));
  provider.rotate();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
  const other = new OpenIdBrowser(http.app, OWN);
  await other.signIn("jane");
  expect(other.cookies.has("matrixSession")).toBe(true);
});

describe("while the provider is away", () => {
  test("the page says so, and the password signs in", async () => {
    await using later = await openTestHttp({ openId: settings() });
    provider.isAway = true;
    const own = new OpenIdBrowser(later.app, OWN);
    const { location } = (await own.open("/user/openid")).headers;
    expect(location).toBe("/user/login?error=openid-away");
    expect((await own.open(String(location))).body).toContain("The provider does not answer. Sign in by password");
    expect(await later.signIn("admin")).toMatch(/^[\w-]{43}$/);
    const { body } = await later.app.inject({ url: "/user/openid" });
    expect(JSON.parse(body)).toMatchObject({ code: "unavailable", message: "The OpenID provider does not answer." });
    // One request only: a failed request is not repeated for each caller.
    expect(provider.requests.filter((one) => one.endsWith("/openid-configuration")).length).toBeLessThanOrEqual(3);
  });

  test("who comes back from it reads it, and may try again", async () => {
    const back = await browser.cameBack(account("gina"));
    provider.isAway = true;
    expect((await browser.open(back)).headers.location).toBe("/user/login?error=openid-away");
  });
});
