import { hash } from "@node-rs/argon2";
import { describe, expect, test } from "vitest";
import { HTTP_PUBLIC_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import {
  FORM,
  http,
  session,
  useUserInterface,
  call,
  adminPrincipal,
} from "../../../test/helpers/users/user-interface.ts";

useUserInterface();

describe("start pages", () => {
  const home = async () =>
    (
      await http.app.inject({
        method: "POST",
        url: "/user/login",
        payload: { company: "matrix", username: "admin", password: PASSWORD },
      })
    ).headers.location;

  test("are one's own, else the tenant's, else the first page", async () => {
    expect(await home()).toBe("/");
    await call({ method: "POST", url: "/admin/users/home", payload: "home=/static/app/a.html&_csrf=x", headers: FORM });
    expect(await home()).toBe("/static/app/a.html");
    await call({ method: "POST", url: "/user/settings/home", payload: { home: "/static/mine.html?a=b#c" } });
    expect(await home()).toBe("/static/mine.html?a=b#c");
    await call({ method: "POST", url: "/user/settings/home", payload: { home: "" } });
    expect(await home()).toBe("/static/app/a.html");
    await call({ method: "POST", url: "/admin/users/home", payload: { home: "" } });
    expect(await home()).toBe("/");
  });

  test("are pages of this site", async () => {
    for (const url of ["/user/settings/home", "/admin/users/home"]) {
      for (const at of [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/a\\b",
        "/a\r\nX: y",
        "x",
        "/user/logout",
      ])
        expect(await call({ method: "POST", url, payload: { home: at } }), at).toMatchObject({ code: "invalid" });
    }
    const stranger = await http.app.inject({ method: "POST", url: "/user/settings/home", payload: { home: "/a" } });
    expect(stranger.json()).toMatchObject({ status: "signin" });
  });
});

describe("goauth", () => {
  const go = (payload: object, headers = {}) =>
    http.app.inject({ method: "POST", url: "/user/goauth", payload, headers });
  const right = { username: "matrix.admin", password: PASSWORD };

  test("signs in, with the company before the user's name, and goes on", async () => {
    const answer = await go(right);
    expect([answer.statusCode, answer.headers.location]).toEqual([302, "/"]);
    const id = /^matrixSession=([^;]+); Path=\/; HttpOnly; SameSite=Lax$/.exec(
      String(answer.headers["set-cookie"]),
    )?.[1];
    expect(await http.users.bySession(id ?? "", "")).toMatchObject({ tenant: "matrix", user: "admin" });
    expect((await go({ ...right, redirect: "/static/x.html" })).headers.location).toBe("/static/x.html");
  });

  test("goes to no other site, and says so before the password is looked at", async () => {
    const targets = [
      "https://evil.example",
      "//evil.example",
      "/\\evil.example",
      "\\\\evil",
      "/\t/evil.example",
      "evil",
    ];
    for (const redirect of [...targets, "/x\r\nSet-Cookie: a=b", "/".padEnd(1_001, "x")]) {
      const answer = await go({ ...right, redirect });
      expect(answer.json(), redirect).toMatchObject({ status: "error", code: "invalid" });
      expect([answer.headers.location, answer.headers["set-cookie"]], redirect).toEqual([undefined, undefined]);
    }
  });

  test("a wrong password is told as everywhere", async () => {
    expect((await go({ ...right, password: "wrong" })).json()).toMatchObject({ code: "denied" });
    const person = await go({ ...right, password: "wrong" }, { accept: "text/html" });
    expect(person.headers.location).toBe("/user/login?error=denied");
  });
});

describe("signing in", () => {
  test("takes the company from the user's name where none is given, in every way", async () => {
    await http.users.create(adminPrincipal(), {
      username: "second.boss",
      password: PASSWORD,
      rights: { grants: [], data: [] },
    });
    const who = async (payload: object) => {
      const answer = await http.app.inject({ method: "POST", url: "/user/signin", payload });
      const principal = await http.users.bySession(answer.json<{ message: string }>().message, "");
      return principal && `${principal.tenant} ${principal.user}`;
    };
    expect(await who({ username: "second.admin", password: PASSWORD })).toBe("second admin");
    expect(await who({ company: "", username: "matrix.admin", password: PASSWORD })).toBe("matrix admin");
    expect(await who({ company: "matrix", username: "second.boss", password: PASSWORD })).toBe("matrix second.boss");
    expect(await who({ username: "second.boss", password: PASSWORD }), "the company goes first").toBeUndefined();
    expect(await who({ username: "nowhere.admin", password: PASSWORD })).toBeUndefined();
  });

  test("never takes over a session id that came with it", async () => {
    const planted = "A".repeat(43);
    const answer = await http.app.inject({
      method: "POST",
      url: `/user/signin?sessionid=${planted}`,
      headers: { cookie: `matrixSession=${planted}` },
      payload: { company: "matrix", username: "admin", password: PASSWORD },
    });
    const { message } = answer.json<{ message: string }>();
    expect(message).not.toBe(planted);
    expect(await http.users.bySession(planted, "")).toBeUndefined();
    expect(await http.users.bySession(message, "")).toBeDefined();
  });

  test("makes the hash anew when it is of another cost, and ends no session by it", async () => {
    const { kv } = await http.engine.tenant("matrix");
    const stored = async () =>
      decodeStored<{ hash: string }>((await kv.get("users/viewer"))?.value ?? new Uint8Array());
    const early = await http.signIn("viewer");
    const weak = await hash(PASSWORD, { memoryCost: 8_192, timeCost: 1, parallelism: 1 });
    await kv.put("users/viewer", encodeJson({ ...(await stored()), hash: weak }));
    await http.users.byPassword({ login: "matrix.viewer", password: "wrong", remote: "r" }, "");
    expect((await stored()).hash).toBe(weak);
    await http.signIn("viewer");
    const { hash: renewed } = await stored();
    expect(renewed).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await http.users.bySession(early, "")).toBeDefined();
    await http.signIn("viewer");
    expect((await stored()).hash).toBe(renewed);
  });
});

describe("the strength of a password", () => {
  const check = async (payload: string, type: string | undefined, url = "/user/vali_password") =>
    (
      await http.app.inject({
        method: "POST",
        url: `${url}?sessionid=${session}`,
        payload,
        headers: type === undefined ? {} : { "content-type": type },
      })
    ).json<{ status: string; message: string }>();
  const TYPES = ["application/json;charset=utf-8", FORM["content-type"], "text/plain", "application/octet-stream"];

  test("is told for a raw text under any content type: empty when it is acceptable", async () => {
    for (const type of TYPES) {
      for (const good of [PASSWORD, "a=b&password=%41+ unusual", '{"password":"x"} and more', "漢字と仮名のパスワード"])
        expect(await check(good, type), `${type} ${good}`).toEqual({ status: "ok", message: "" });
      for (const bad of [
        "short",
        "password1",
        "P@ssw0rd!",
        "qwertyuiop",
        "aaaaaaaaaaaaaaa",
        "admin2024",
        "x".repeat(1_100),
      ])
        expect(await check(bad, type), `${type} ${bad}`).toEqual({ status: "ok", message: expect.stringMatching(/./) });
    }
    expect(await check("", undefined)).toEqual({ status: "ok", message: expect.stringMatching(/./) });
  });

  test("is told to administrators of users in the same way, and not to strangers there", async () => {
    expect(await check(PASSWORD, "text/plain", "/admin/users")).toEqual({ status: "ok", message: "" });
    expect((await check("12345678", "text/plain", "/admin/users")).message).toMatch(/easy to guess/);
    const stranger = await http.app.inject({ method: "POST", url: "/admin/users", payload: "x" });
    expect(stranger.json()).toMatchObject({ status: "signin" });
  });

  test("has a bound for strangers", async () => {
    const answer = await http.app.inject({
      method: "POST",
      url: "/user/vali_password",
      payload: "x".repeat(HTTP_PUBLIC_BODY_MAX_BYTES + 1),
    });
    expect(answer.json()).toMatchObject({ code: "too_large" });
  });
});
