import { describe, expect, test } from "vitest";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { ROOT_ID } from "./directory/organizations.ts";
import type { UserNode } from "./types.ts";
import {
  FORM,
  http,
  session,
  useUserInterface,
  call,
  adminPrincipal,
} from "../../../test/helpers/users/user-interface.ts";

useUserInterface();

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

  test("a refused token is named: by its name if it lacks a right, by the header if it is not valid", async () => {
    const wanted = { name: "deploy", scopes: ["users:read"], days: 1 };
    const token = String((await call({ method: "POST", url: "/user/tokens", payload: wanted })).message);
    const ask = (bearer: string, more: object = {}) => {
      const headers = { authorization: `Bearer ${bearer}`, ...more };
      return http.app.inject({ method: "POST", url: "/admin/users/new", payload: ann, headers });
    };
    expect((await ask(token)).json()).toMatchObject({
      code: "denied",
      message: "The token deploy of admin lacks the permission users:write.",
      details: { permission: "users:write" },
    });
    const refused = (await ask("odp_unknown")).json();
    expect(refused).toEqual({ status: "signin", message: "/user/login", details: { reason: "token" } });
    const precise = await ask("odp_unknown", { accept: "application/problem+json" });
    expect(precise.statusCode).toBe(401);
    expect(precise.json()).toMatchObject({
      code: "signin",
      detail: "Nobody is signed in: the token in Authorization is unknown, has expired or was removed.",
      details: { reason: "token" },
    });
    const stranger = await http.app.inject({ url: "/admin/users" });
    expect(stranger.json()).toEqual({ status: "signin", message: "/user/login" });
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
    const stamp = { stamp: undefined, changedMs: 0 };
    expect({ ...after, ...stamp }).toEqual({ ...before, ...stamp });
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
