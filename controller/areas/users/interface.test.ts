import { hash } from "@node-rs/argon2";
import type { InjectOptions } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HTTP_PUBLIC_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../test/helpers/areas/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { ROOT_ID } from "./directory/organizations.ts";
import type { UserNode } from "./types.ts";

let http: TestHttp;
let session: string;
beforeEach(async () => {
  http = await openTestHttp();
  session = await http.signIn("admin");
});
afterEach(() => http[Symbol.asyncDispose]());

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const call = (options: InjectOptions & { readonly url: string }) => http.call(session, options);
const tree = async (fullname = "/") => (await call({ url: `/admin/users?fullname=${fullname}` })).message as UserNode;
const make = (payload: object) => call({ method: "POST", url: "/admin/users/new", payload });
const ann = { parent: "/", username: "ann", passwd: PASSWORD, otype: "usr", isadmin: false, isactive: true };

describe("users by HTTP", () => {
  test("are made, changed as JSON, text and form, moved and deleted by id", async () => {
    const plant = (await make({ parent: "/", username: "plant", otype: "org" })).message as string;
    const made = await make({ ...ann, parent: "/plant", email: ["ann@example.org"], wechat: "ann-w", status: 3 });
    expect(made).toMatchObject({ status: "ok", message: expect.stringMatching(/^\d{19,20}$/) });
    const url = `/admin/users/${String(made.message)}`;
    expect(await tree("/plant")).toMatchObject({
      id: plant,
      username: "plant",
      fullname: "/plant",
      parent: "/",
      otype: "org",
      nodes: [
        {
          id: made.message,
          username: "ann",
          fullname: "/plant/ann",
          parent: "/plant",
          otype: "usr",
          email: ["ann@example.org"],
          wechat: "ann-w",
          imaccount: "ann-w",
          status: 3,
        },
      ],
    });
    const ways = [
      { payload: { firstname: "Ann" } },
      { payload: JSON.stringify({ lastname: "Other" }), headers: { "content-type": "text/plain" } },
      { payload: "mobile[]=1&mobile[]=2&isactive=false", headers: FORM },
    ];
    for (const way of ways) expect(await call({ method: "POST", url, ...way })).toMatchObject({ status: "ok" });
    expect(await tree("/plant/ann")).toMatchObject({
      firstname: "Ann",
      lastname: "Other",
      mobile: ["1", "2"],
      isactive: false,
      email: ["ann@example.org"],
    });
    expect(await call({ url: `${url}?to=${ROOT_ID}` })).toMatchObject({ status: "ok", message: made.message });
    expect(await tree("/ann")).toMatchObject({ id: made.message, parent: "/" });
    expect(await call({ method: "DELETE", url, headers: { "x-csrf-token": "any" } })).toMatchObject({ status: "ok" });
    expect(await call({ method: "DELETE", url })).toMatchObject({ status: "error", code: "not_found" });
    expect(await call({ method: "DELETE", url: `/admin/users/${plant}` })).toMatchObject({ status: "ok" });
    expect((await tree()).nodes.map(({ username }) => username)).toEqual(["admin", "viewer"]);
  });

  test("of the tree the root is one node with every member, and nothing of a password", async () => {
    const text = JSON.stringify(await tree());
    expect(await tree()).toMatchObject({ id: ROOT_ID, username: "/", fullname: "/", otype: "org", parent: "" });
    expect(Object.keys((await tree()).nodes[0] ?? {})).toEqual(
      expect.arrayContaining(
        "id username fullname parent otype nodes isadmin isactive status email mobile telephone firstname lastname wechat address remark grpset".split(
          " ",
        ),
      ),
    );
    expect(text).not.toMatch(/argon2|epoch|hash|passw/);
  });

  test("are refused with what is wrong named", async () => {
    const wrong = [
      [{ ...ann, otype: "grp" }, "invalid"],
      [{ ...ann, passwd: "12345678" }, "invalid"],
      [{ ...ann, passwd: undefined }, "invalid"],
      [{ ...ann, parent: "/nowhere" }, "not_found"],
      [{ ...ann, username: "admin" }, "conflict"],
      [{ ...ann, username: "a\r\nSet-Cookie: x" }, "invalid"],
      [{ ...ann, email: Array.from({ length: 33 }, () => "x") }, "invalid"],
    ] as const;
    for (const [payload, code] of wrong) expect(await make(payload), JSON.stringify(payload)).toMatchObject({ code });
    for (const id of ["1", "abc", "../admin", "9".repeat(20), "1234567890123456789"])
      expect(
        await call({ method: "POST", url: `/admin/users/${encodeURIComponent(id)}`, payload: {} }),
        id,
      ).toMatchObject({ code: "not_found" });
    expect(await call({ url: "/admin/users/1234567890123456789" })).toMatchObject({ code: "invalid" });
  });

  test("need a parent, users and organisations alike, and a change of them needs none", async () => {
    for (const payload of [
      { ...ann, parent: undefined },
      { username: "plant", otype: "org" },
      { ...ann, parent: "" },
      { ...ann, parent: null },
    ])
      expect(await make(payload), JSON.stringify(payload)).toMatchObject({
        code: "invalid",
        message: expect.stringContaining("parent"),
      });
    const { message: id } = await make(ann);
    expect(await call({ method: "POST", url: `/admin/users/${String(id)}`, payload: { firstname: "Ann" } })).toEqual({
      status: "ok",
      message: "",
    });
  });

  test("of an organisation the members of a user are ignored and named in warnings, when it is made and when it is changed", async () => {
    const sent = { parent: "/", username: "plant", otype: "org", firstname: "Plant" };
    const ofUser = { passwd: PASSWORD, grpset: ["/operators"], isadmin: true };
    const warnings = ["An organisation has no password, groups or rights: passwd, grpset, isadmin were ignored."];
    const made = await make({ ...sent, ...ofUser, isactive: true });
    expect(made).toMatchObject({ status: "ok", message: expect.stringMatching(/^\d{19,20}$/), warnings });
    const url = `/admin/users/${String(made.message)}`;
    const changed = { ...ofUser, password: "x", firstname: "Works" };
    expect(await call({ method: "POST", url, payload: changed })).toEqual({ status: "ok", message: "", warnings });
    expect(await tree("/plant")).toMatchObject({ otype: "org", isadmin: false, grpset: [], firstname: "Works" });
    const zoned = { config: { time_zone: "Europe/Berlin" } };
    const told = ["config.time_zone of an organisation has no effect: it is for users."];
    expect(await call({ method: "POST", url, payload: zoned })).toMatchObject({ status: "ok", warnings: told });
    // Empty members, as clients send them.
    const empty = { passwd: "", grpset: [], isadmin: false, config: { time_zone: "" } };
    expect(await make({ ...sent, username: "office", ...empty })).not.toHaveProperty("warnings");
    expect(await call({ method: "POST", url, payload: empty })).not.toHaveProperty("warnings");
  });

  test("a client may send an empty time zone, and the one that the user has already, though there is no such zone", async () => {
    const { message: id } = await make({ ...ann, config: { time_zone: "", color: "red" } });
    const url = `/admin/users/${String(id)}`;
    const sent = (zone: string) => ({ method: "POST", url, payload: { config: { time_zone: zone } } }) as const;
    expect(await call(sent("GMT+8"))).toMatchObject({ code: "invalid" });
    // Former versions accepted this zone.
    await http.users.update(testPrincipal(), ann.username, { details: { config: { time_zone: "GMT+8" } } });
    expect(await call(sent("GMT+8"))).toMatchObject({ status: "ok" });
    expect(await call(sent("GMT+9"))).toMatchObject({ code: "invalid" });
    expect(await call(sent(""))).toMatchObject({ status: "ok" });
  });

  test("who is put into the group of administrators and is none is told what makes one", async () => {
    const warnings = ["grpset: being in /administrators has no effect: isadmin makes a user an administrator."];
    const sent = { ...ann, username: "cho", grpset: ["/administrators", "/operators"] };
    const made = await make(sent);
    expect(made).toMatchObject({ status: "ok", warnings });
    const url = `/admin/users/${String(made.message)}`;
    expect(await call({ method: "POST", url, payload: { grpset: ["2"] } })).toMatchObject({ status: "ok", warnings });
    const given = { grpset: ["/administrators"], isadmin: true };
    expect(await call({ method: "POST", url, payload: given })).not.toHaveProperty("warnings");
  });

  test("one's own password takes the present one, and is not set by a token; that of another is on record as set", async () => {
    const { id } = await tree("/admin");
    const passwd = "four-yellow-tables-9";
    const change = (payload: object) => call({ method: "POST", url: `/admin/users/${id}`, payload });
    expect(await change({ passwd })).toMatchObject({ code: "denied", message: expect.stringContaining("present one") });
    expect(await change({ passwd, password: "wrong" })).toMatchObject({ code: "denied" });
    const scopes = ["users:*"];
    const made = await call({ method: "POST", url: "/user/tokens", payload: { name: "t", scopes, days: 1 } });
    const byToken = await http.app.inject({
      method: "POST",
      url: `/admin/users/${id}`,
      payload: { passwd, password: PASSWORD },
      headers: { authorization: `Bearer ${String(made.message)}` },
    });
    expect(byToken.json()).toMatchObject({ code: "denied" });
    expect(
      await call({ method: "POST", url: `/admin/users/${(await tree("/viewer")).id}`, payload: { passwd } }),
    ).toMatchObject({ status: "ok" });
    expect(http.trail.records).toContainEqual(
      expect.objectContaining({
        action: "set the password of another user",
        object: "viewer",
        user: "admin",
        code: "ok",
      }),
    );
    expect(await change({ firstname: "Ada" })).toMatchObject({ status: "ok" });
    expect(await change({ passwd, password: PASSWORD })).toMatchObject({ status: "ok" });
    expect(await http.users.bySession(session, "")).toBeUndefined();
    const request = { company: "matrix", username: "admin", remote: "r", traceparent: "" };
    expect(await http.users.signIn({ ...request, password: passwd })).toMatchObject({ home: "/" });
  });

  test("take the permission, also for the move, and no member that is not named", async () => {
    const viewer = await http.signIn("viewer");
    const { id } = await tree("/viewer");
    for (const options of [
      { method: "POST", url: "/admin/users/new", payload: ann },
      { method: "POST", url: `/admin/users/${id}`, payload: { isadmin: true } },
      { method: "DELETE", url: `/admin/users/${id}` },
      { method: "GET", url: `/admin/users/${id}?to=${ROOT_ID}` },
      { method: "POST", url: "/admin/users/home", payload: { home: "/" } },
    ] as const)
      expect(await http.call(viewer, options), options.url).toMatchObject({ code: "denied" });
    const before = await http.users.find({ ...adminPrincipal(), grants: ["users:read"] }, "viewer");
    await call({
      method: "POST",
      url: `/admin/users/${id}`,
      payload: {
        username: "root",
        tenant: "second",
        hash: "x",
        rights: { role: "administrator" },
        id: "1",
        parent: "x",
      },
    });
    const after = await http.users.find({ ...adminPrincipal(), grants: ["users:read"] }, "viewer");
    expect({ ...after, changedMs: 0 }).toEqual({ ...before, changedMs: 0 });
  });

  test("a page of another site moves and deletes no user with the cookie of an administrator", async () => {
    const { id } = await tree("/viewer");
    const headers = { cookie: `matrixSession=${session}`, "sec-fetch-site": "cross-site" };
    for (const options of [
      { method: "GET", url: `/admin/users/${id}?to=${ROOT_ID}` },
      { method: "DELETE", url: `/admin/users/${id}` },
      { method: "POST", url: "/user/settings/home", payload: { home: "/x" } },
    ] as const)
      expect((await http.app.inject({ ...options, headers })).json(), options.url).toMatchObject({ code: "denied" });
    expect((await tree("/viewer")).id).toBe(id);
  });
});

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

function adminPrincipal() {
  return {
    tenant: "matrix",
    ospace: "/matrix",
    user: "admin",
    groups: [],
    grants: ["*:read", "*:write", "*:run"],
    data: [],
    traceparent: "",
  };
}
