import { describe, expect, test } from "vitest";
import { SESSION_REMEMBERED_MS } from "../../../../common/limits.ts";
import { PASSWORD } from "../../../../test/helpers/http/http-app.ts";
import { http, useSignIns, user } from "../../../../test/helpers/users/sign-in-world.ts";

useSignIns();

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

  test("a form without a name or a password is sent back", async () => {
    for (const missing of ["username=admin", `password=${encodeURIComponent(PASSWORD)}`]) {
      const person = await form(`company=matrix&${missing}`, { accept: "text/html" });
      expect([person.statusCode, person.headers.location], missing).toEqual([302, "/user/login?error=invalid"]);
    }
  });

  test("a page of another site signs nobody in", async () => {
    const right = `company=matrix&username=admin&password=${encodeURIComponent(PASSWORD)}`;
    const foreign = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
    const person = await form(right, { ...foreign, accept: "text/html" });
    expect([person.headers.location, person.headers["set-cookie"]]).toEqual(["/user/login?error=foreign", undefined]);
    const program = await form(right, { ...foreign, accept: "*/*" });
    expect([program.json<{ code: string }>().code, program.headers["set-cookie"]]).toEqual(["denied", undefined]);
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
