import { afterAll, afterEach, beforeAll, beforeEach, vi } from "vitest";
import { realClock } from "../time/clock.ts";
import { openTestHttp, type TestHttp } from "../http/http-app.ts";
import { OpenIdBrowser } from "./openid-browser.ts";
import { openTestProvider, type Claims, type TestProvider } from "./openid-provider.ts";
import { testPrincipal, TestClock, testRuntime } from "../time/runtime.ts";
import { openIdSettings } from "../../../controller/settings/openid.ts";

/** Sign-ins against a real provider, through all redirects and forms. */

export const OWN = "http://odp.example:8080";
export const CALLBACK = `${OWN}/user/openid/callback`;

export let provider: TestProvider;
export let http: TestHttp;
export let clock: TestClock;
export let browser: OpenIdBrowser;

/** Opens the provider and a controller for all tests of the calling file, and a new browser for each. */
export function useOpenId(): void {
  beforeAll(async () => {
    provider = await openTestProvider(CALLBACK);
    clock = new TestClock(realClock.nowMs());
    http = await openTestHttp({ runtime: testRuntime(clock), openId: settings({ openid_create_users: "1" }) });
  });
  beforeEach(() => {
    browser = new OpenIdBrowser(http.app, OWN);
  });
  afterEach(() => {
    provider.forge = undefined;
    provider.isAway = false;
    vi.useRealTimers();
  });
  afterAll(async () => {
    await http[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  });
}

export function settings(others: Readonly<Record<string, string>> = {}) {
  const given: Readonly<Record<string, string>> = {
    openid_issuer: provider.issuer,
    openid_client_id: provider.clientId,
    openid_client_secret: provider.clientSecret,
    openid_public_url: OWN,
    openid_groups: "ops=/operators,dev=/authors,CN=all,OU=staff=/viewers",
    ...others,
  };
  const found = openIdSettings({
    text: (name) => given[name] ?? "",
    wrong: (name, why) => new Error(`${name}: ${why}`) as never,
    firstTenant: "matrix",
  });
  if (found === undefined) throw new Error("no provider");
  return found;
}

export const who = async (): Promise<string | undefined> => {
  const session = browser.cookies.get("matrixSession");
  const principal = session === undefined ? undefined : await http.users.bySession(session, "");
  return principal && `${principal.tenant}.${principal.user}`;
};
export const account = (subject: string, claims: Claims = {}): string => {
  provider.accounts.set(subject, { preferred_username: subject, ...claims });
  return subject;
};
export const accountOf = (subject: string) => ({ issuer: `${provider.issuer}/`, subject });
export const principalOf = async (username: "viewer") => {
  const principal = await http.users.bySession(await http.signIn(username), "");
  if (principal === undefined) throw new Error("not signed in");
  return principal;
};
export const groupsOf = async (username: string) => (await http.users.find(testPrincipal(), username))?.groups;
export const REFUSED = "/user/login?error=openid";
