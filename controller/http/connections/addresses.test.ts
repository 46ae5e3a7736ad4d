import { describe, expect, test } from "vitest";
import { SIGN_IN_FREE_FAILURES_PER_USER } from "../../../common/limits.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";

describe("behind a proxy", () => {
  const signIn = (http: TestHttp, client: string, password: string) =>
    http.app.inject({
      method: "POST",
      url: "/user/signin",
      remoteAddress: "10.0.0.1",
      payload: { company: "matrix", username: "admin", password },
      headers: { "x-forwarded-for": client, "x-forwarded-proto": "https" },
    });

  const guess = async (http: TestHttp): Promise<string> => {
    for (let failures = 0; failures <= SIGN_IN_FREE_FAILURES_PER_USER; failures++)
      await signIn(http, "192.0.2.1", "wrong");
    return (await signIn(http, "192.0.2.1", "wrong")).json<{ code: string }>().code;
  };

  test("that is trusted, a client who guesses passwords locks nobody else out, and cookies are for HTTPS only", async () => {
    await using http = await openTestHttp({
      runtime: testRuntime(new TestClock()),
      settings: { trustedProxies: ["10.0.0.0/8"] },
    });
    expect(await guess(http)).toBe("limited");
    const other = await signIn(http, "192.0.2.2", PASSWORD);
    expect(other.json()).toMatchObject({ status: "ok" });
    expect(other.headers["set-cookie"]).toMatch(/; Secure/);
    expect(http.trail.records.map(({ remote }) => remote)).toContain("192.0.2.2");
  });

  test("that nobody trusts, what it says counts for nothing", async () => {
    await using http = await openTestHttp({ runtime: testRuntime(new TestClock()) });
    expect(await guess(http)).toBe("limited");
    expect((await signIn(http, "192.0.2.2", PASSWORD)).json()).toMatchObject({ code: "limited" });
    expect(http.trail.records.map(({ remote }) => remote)).not.toContain("192.0.2.1");
  });
});

describe("metrics", () => {
  test("are for the machine itself, unless a setting names others", async () => {
    const read = async (http: TestHttp, remoteAddress: string, headers = {}) =>
      (await http.app.inject({ url: "/metrics", remoteAddress, headers })).body;
    await using http = await openTestHttp();
    for (const address of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
      expect(await read(http, address)).toContain("odp_http_calls_total");
    expect(await read(http, "192.0.2.1")).toMatch(/"code":"denied"/);
    for (const host of ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"])
      expect(await read(http, "127.0.0.1", { host }), host).toContain("odp_http_calls_total");
    for (const host of ["evil.example:8080", "127.0.0.1.evil.example"])
      expect(await read(http, "127.0.0.1", { host }), "by DNS rebinding").toMatch(/"code":"denied"/);
    expect(await read(http, "127.0.0.1", { "x-forwarded-for": "127.0.0.1" }), "through a proxy nobody trusts").toMatch(
      /"code":"denied"/,
    );
    await using open = await openTestHttp({
      settings: { metricsReaders: ["192.0.2.0/24"], trustedProxies: ["127.0.0.1"] },
    });
    expect(await read(open, "192.0.2.1")).toContain("odp_http_calls_total");
    expect(await read(open, "127.0.0.1", { "x-forwarded-for": "192.0.2.1" })).toContain("odp_http_calls_total");
    expect(await read(open, "127.0.0.1")).toMatch(/"code":"denied"/);
  });
});
