import { describe, expect, test } from "vitest";
import { BASIC_CACHE_MS, SIGN_IN_FREE_FAILURES_PER_ADDRESS } from "../../../../common/limits.ts";
import { PASSWORD } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { UserService } from "../service.ts";
import { http, clock, useSignIns, signIn, basic, user } from "../../../../test/helpers/users/sign-in-world.ts";

useSignIns();

describe("signing in", () => {
  test("gives a session of just that user and tenant", async () => {
    const { session } = await signIn({ company: "second", username: "viewer" });
    expect(await http.users.bySession(session, "trace")).toMatchObject({
      tenant: "second",
      ospace: "/second",
      user: "viewer",
      groups: ["/everyone"],
      grants: ["*:read", "files:read", "scripts:read"],
      data: [{ class: "/", access: "read" }],
      traceparent: "trace",
    });
  });

  test("anew ends the session that the browser had, and no other", async () => {
    const [replaced, other] = [await signIn({ company: "matrix" }), await signIn({ company: "matrix" })];
    const { session } = await signIn({ company: "matrix", replaced: replaced.session });
    expect(await user(replaced.session)).toBeUndefined();
    for (const stays of [other.session, session]) expect(await user(stays)).toBe("admin");
    await signIn({ company: "matrix", password: "wrong", replaced: session }).catch(() => {});
    expect(await user(session)).toBe("admin");
  });

  test("says the same for every kind of wrong", async () => {
    const wrong = [
      { company: "matrix", password: "wrong" },
      { company: "matrix", username: "nobody" },
      { company: "nowhere" },
      { company: "second", username: "no/such" },
    ];
    for (const members of wrong)
      await expect(signIn(members)).rejects.toMatchObject({
        code: "denied",
        message: "Company, user name or password are wrong.",
      });
  });

  test("is on record, with the tenant when there is one", async () => {
    const before = http.trail.records.length;
    await signIn({ company: "matrix" });
    await signIn({ company: "matrix", password: "wrong" }).catch(() => {});
    await signIn({ company: "nowhere" }).catch(() => {});
    expect(
      http.trail.records
        .slice(before)
        .map(({ tenant, user, permission, outcome }) => ({ tenant, user, permission, outcome })),
    ).toEqual([
      { tenant: "matrix", user: "admin", permission: "signin", outcome: "ok" },
      { tenant: "matrix", user: "admin", permission: "signin", outcome: "denied" },
      { tenant: "", user: "admin", permission: "signin", outcome: "denied" },
    ]);
  });

  test("needs a company where there are several", async () => {
    await expect(signIn({})).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining("company") });
  });

  test("gets slow for who guesses, not for others, and is forgiven", async () => {
    const guess = (remote: string, password = "wrong") =>
      signIn({ company: "matrix", password, remote }).then(
        () => "in",
        (error: { code: string }) => error.code,
      );
    const answers: string[] = [];
    for (let attempt = 0; attempt < 7; attempt++) answers.push(await guess("attacker"));
    expect(answers).toEqual(["denied", "denied", "denied", "denied", "denied", "denied", "limited"]);
    expect(await guess("attacker", PASSWORD)).toBe("limited");
    expect(await guess("colleague", PASSWORD)).toBe("in");
    clock.advance(1_000);
    expect(await guess("attacker")).toBe("denied");
    clock.advance(1_000);
    expect(await guess("attacker", PASSWORD)).toBe("limited");
    clock.advance(1_000);
    expect(await guess("attacker", PASSWORD)).toBe("in");
    expect(await guess("attacker")).toBe("denied");
  });

  test("a network full of wrong passwords keeps nobody out who signed in from there before", async () => {
    const from = (at: number) => `2001:db8::${at.toString(16)}`;
    const program = { username: "program", password: PASSWORD, rights: { grants: [], data: [] } };
    await http.users.create(testPrincipal(), program);
    const byBasic = (at: number) =>
      http.users.byPassword({ login: "matrix.program", password: PASSWORD, remote: from(at) }, "");
    await byBasic(0);
    clock.advance(BASIC_CACHE_MS);
    await signIn({ company: "matrix", remote: from(0) });
    const codes: string[] = [];
    for (let at = 1; at <= SIGN_IN_FREE_FAILURES_PER_ADDRESS + 2; at++) {
      codes.push(
        await signIn({ company: "matrix", username: `guess${String(at)}`, remote: from(at) }).then(
          () => "in",
          (error: { code: string }) => error.code,
        ),
      );
    }
    expect(codes.at(-1), "an address of IPv6 more is no client more").toBe("limited");
    await expect(signIn({ company: "matrix", username: "viewer", remote: from(1) })).rejects.toMatchObject({
      code: "limited",
    });
    await expect(signIn({ company: "matrix", remote: from(2) })).resolves.toHaveProperty("session");
    await expect(byBasic(2), "without a session").resolves.toMatchObject({ user: "program" });
    await expect(signIn({ company: "matrix", username: "viewer", remote: "2001:db8:0:1::1" })).resolves.toHaveProperty(
      "session",
    );
    // Another controller knows only the sessions: that of the viewer is from another network.
    const { engine: stores, tenants, audit } = http;
    const other = new UserService({ runtime: testRuntime(clock), stores, tenants, audit });
    const there = { company: "matrix", password: PASSWORD, remote: from(3), traceparent: "" };
    await expect(other.signIn({ ...there, username: "viewer" })).rejects.toMatchObject({ code: "limited" });
    await expect(other.signIn({ ...there, username: "admin" })).resolves.toHaveProperty("session");
  });

  test("many guesses at once count as many", async () => {
    const guesses = Array.from({ length: 12 }, (_, at) =>
      signIn({ company: "matrix", password: `guess ${String(at)}` }).catch((error: { code: string }) => error.code),
    );
    const codes = await Promise.all(guesses);
    expect(codes.filter((code) => code === "denied")).toHaveLength(6);
    expect(codes.filter((code) => code === "limited")).toHaveLength(6);
  });
});

describe("Basic credentials", () => {
  test("name company and user; a user name may have dots", async () => {
    await http.users.create(testPrincipal("administrator", "second"), {
      username: "ann.b",
      password: PASSWORD,
      rights: { role: "viewer" },
    });
    expect(await basic("second.ann.b")).toMatchObject({ tenant: "second", user: "ann.b" });
    expect(await basic("matrix.ann.b")).toBeUndefined();
    expect(await basic("admin")).toBeUndefined();
  });

  test("are checked once a minute, however many calls carry them", async () => {
    const before = http.trail.records.length;
    await Promise.all(Array.from({ length: 20 }, () => basic("matrix.admin")));
    await basic("matrix.admin");
    expect(http.trail.records.length - before).toBe(1);
    clock.advance(BASIC_CACHE_MS);
    await basic("matrix.admin");
    expect(http.trail.records.length - before).toBe(2);
  });

  test("that were good are refused from the moment the user changes", async () => {
    expect(await basic("matrix.viewer")).toBeDefined();
    await http.users.setPassword(testPrincipal(), "viewer", "another password");
    expect(await basic("matrix.viewer")).toBeUndefined();
    expect(await basic("matrix.viewer", "another password")).toBeDefined();
    await http.users.update(testPrincipal(), "viewer", { active: false });
    expect(await basic("matrix.viewer", "another password")).toBeUndefined();
  });
});
