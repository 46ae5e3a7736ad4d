import { describe, expect, test } from "vitest";
import { SIGN_IN_CACHE_MS, USER_CHANGE_ATTEMPTS_MAX, USERS_PER_TENANT_MAX } from "../../../common/limits.ts";
import { PASSWORD } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { linkKey } from "./providers/link-store.ts";
import { UserService } from "./service.ts";
import { http, clock, useSignIns, signIn, basic } from "../../../test/helpers/users/sign-in-world.ts";

useSignIns();

describe("users", () => {
  test("the administrator is made once, with the given or a generated password", async () => {
    const made = await http.users.operator.ensureAdministrator({ tenant: "second", username: "boss" });
    expect(made).toMatchObject({ created: true, generatedPassword: expect.stringMatching(/^.{20}$/) });
    await signIn({ company: "second", username: "boss", password: made.generatedPassword });
    expect(
      await http.users.operator.ensureAdministrator({
        tenant: "second",
        username: "boss",
        password: "another password",
      }),
    ).toEqual({ username: "boss", created: false });
    await signIn({ company: "second", username: "boss", password: made.generatedPassword });
  });

  test("a lost password is replaced by a generated one: the old one and every session are over, and it is on record", async () => {
    const lost = await http.users.operator.ensureAdministrator({ tenant: "second", username: "forgetful" });
    const { session } = await signIn({ company: "second", username: "forgetful", password: lost.generatedPassword });
    const before = http.trail.records.length;
    const password = await http.users.operator.resetPassword("second", "forgetful");
    clock.advance(SIGN_IN_CACHE_MS + 1);
    expect(await http.users.bySession(session, "")).toBeUndefined();
    await expect(
      signIn({ company: "second", username: "forgetful", password: lost.generatedPassword }),
    ).rejects.toThrow();
    await signIn({ company: "second", username: "forgetful", password });
    const [entry] = http.trail.records.slice(before);
    expect(entry).toMatchObject({
      tenant: "second",
      permission: "users:write",
      action: "reset the password of forgetful",
      outcome: "ok",
    });
    expect(JSON.stringify(http.trail.records)).not.toContain(password);
    await expect(http.users.operator.resetPassword("second", "nobody")).rejects.toMatchObject({ code: "not_found" });
    await expect(http.users.operator.resetPassword("nowhere", "admin")).rejects.toMatchObject({ code: "not_found" });
  });

  test("bad names and passwords, and names that are taken, are refused", async () => {
    const create = (username: string, password = PASSWORD) =>
      http.users.create(testPrincipal(), { username, password, rights: { role: "viewer" } });
    for (const name of ["", "a/b", "a:b", " a", "a ", "a\u0000", "x".repeat(129)])
      await expect(create(name)).rejects.toMatchObject({ code: "invalid" });
    await expect(create("short", "seven77")).rejects.toMatchObject({ code: "invalid" });
    await expect(create("admin")).rejects.toMatchObject({ code: "conflict" });
    await expect(http.users.update(testPrincipal(), "nobody", {})).rejects.toMatchObject({ code: "not_found" });
  });

  test("are as many in a tenant as its bound says", async () => {
    const make = (username: string) =>
      http.users.directory.create(testPrincipal(), { username, password: PASSWORD, rights: { grants: [], data: [] } });
    const { id } = await make("ann");
    const { kv } = await http.engine.tenant("matrix");
    const counted = decodeStored<object>((await kv.get("usertree"))?.value ?? new Uint8Array());
    await kv.put("usertree", encodeJson({ ...counted, users: USERS_PER_TENANT_MAX }));
    const full = { code: "too_large", details: { limit: "USERS_PER_TENANT_MAX" } };
    await expect(make("bob")).rejects.toMatchObject(full);
    await http.users.directory.remove(testPrincipal(), id);
    await make("bob");
    await expect(make("eve")).rejects.toMatchObject(full);
  });

  test("get no account of a provider that another user was linked to at the same moment", async () => {
    const account = { issuer: "https://id.example/", subject: "ann" };
    const links: (() => Promise<unknown>)[] = [];
    const { engine: stores, tenants, audit } = http;
    const tenant = async (name: string) => {
      const store = await stores.tenant(name);
      links.push(() => store.kv.put(linkKey(account), encodeJson({ username: "viewer" })));
      return { ...store, kv: wrappedKv(store.kv, { txn: async (txn) => (await links.pop()?.(), store.kv.txn(txn)) }) };
    };
    const system = () => stores.system();
    const users = new UserService({ runtime: testRuntime(clock), stores: { system, tenant }, tenants, audit });
    const eve = { username: "eve", password: PASSWORD, rights: { grants: [], data: [] }, openId: account };
    await expect(users.directory.create(testPrincipal(), eve)).rejects.toMatchObject({ code: "conflict" });
    expect(await http.users.find(testPrincipal(), "eve")).toBeUndefined();
  });

  test("changes made at the same time are all kept", async () => {
    await Promise.all([
      http.users.update(testPrincipal(), "viewer", { details: { firstname: "V." } }),
      http.users.update(testPrincipal(), "viewer", { groups: ["ops"] }),
      http.users.setPassword(testPrincipal(), "viewer", "another password"),
    ]);
    expect(await http.users.find(testPrincipal(), "viewer")).toMatchObject({
      details: { firstname: "V." },
      groups: ["ops"],
    });
    expect(await basic("matrix.viewer", "another password")).toBeDefined();
  });

  /** The users of a store in which others write the same user before each of the first `races` changes. */
  async function contested(races: number): Promise<{ readonly users: UserService; readonly lost: () => number }> {
    const inner = (await http.engine.tenant("matrix")).kv;
    let lost = 0;
    const kv = wrappedKv(inner, {
      async put(key, value, options) {
        const current = lost < races ? await inner.get(key) : undefined;
        if (current === undefined) return inner.put(key, value, options);
        lost++;
        const theirs = { ...decodeStored<object>(current.value), home: `/writer${lost}` };
        await inner.put(key, encodeJson(theirs), { ifRevision: current.revision });
        return inner.put(key, value, options);
      },
    });
    const tenant = async (name: string) => ({ ...(await http.engine.tenant(name)), kv });
    const stores = { system: () => http.engine.system(), tenant };
    const users = new UserService({ runtime: testRuntime(clock), stores, tenants: http.tenants, audit: http.audit });
    return { users, lost: () => lost };
  }

  test("a change is made again on what others wrote meanwhile, as often as its bound says", async () => {
    const { users, lost } = await contested(USER_CHANGE_ATTEMPTS_MAX - 1);
    expect(await users.update(testPrincipal(), "viewer", { groups: ["ops"] })).toMatchObject({ groups: ["ops"] });
    expect(lost()).toBe(USER_CHANGE_ATTEMPTS_MAX - 1);
    expect(await users.find(testPrincipal(), "viewer")).toMatchObject({
      groups: ["ops"],
      home: `/writer${lost()}`,
    });
  });

  test("a change that loses every race is refused, and nothing of it is kept", async () => {
    const { users, lost } = await contested(Infinity);
    await expect(users.update(testPrincipal(), "viewer", { groups: ["ops"] })).rejects.toMatchObject({
      code: "conflict",
    });
    expect(lost()).toBe(USER_CHANGE_ATTEMPTS_MAX);
    expect(await users.find(testPrincipal(), "viewer")).toMatchObject({ groups: [], home: `/writer${lost()}` });
  });

  test("a write whose answer got lost is no conflict", async () => {
    const inner = (await http.engine.tenant("matrix")).kv;
    let losses = 0;
    const kv = wrappedKv(inner, {
      async txn(request) {
        const written = await inner.txn(request);
        if (losses++ === 0) throw new AppError("unknown_outcome", "the answer got lost");
        return written;
      },
    });
    const stores = {
      system: () => http.engine.system(),
      tenant: async (name: string) => ({ ...(await http.engine.tenant(name)), kv }),
    };
    const users = new UserService({ runtime: testRuntime(clock), stores, tenants: http.tenants, audit: http.audit });
    await users.create(testPrincipal(), { username: "lost", password: PASSWORD, rights: { role: "viewer" } });
    expect([losses, (await users.find(testPrincipal(), "lost"))?.username]).toEqual([2, "lost"]);
  });

  test("what is answered of a user holds no hash", async () => {
    expect(JSON.stringify(await http.users.find(testPrincipal(), "admin"))).not.toContain("argon2");
  });
});
