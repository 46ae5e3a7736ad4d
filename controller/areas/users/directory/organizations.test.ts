import { Secret, TOTP } from "otpauth";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openTestHttp, PASSWORD, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { encodeJson } from "../../../store/format.ts";
import type { Principal } from "../../permissions/index.ts";
import type { CodeNeeded } from "../second-factor/tickets.ts";
import { organizationKey } from "./tree-store.ts";

/**
 * An inactive organisation stops all users below it. Only a caller who may change each of these users may change it.
 */

const admin = testPrincipal();
const NO_RIGHTS = { grants: [], data: [] };
const WRONG = { code: "denied", message: "Company, user name or password are wrong." };

let http: TestHttp;
let clock: TestClock;
let plant: string;
let night: string;

beforeEach(async () => {
  // On the cluster entries expire by the real clock.
  clock = new TestClock(realClock.nowMs());
  http = await openTestHttp({ runtime: testRuntime(clock) });
  ({ id: plant } = await directory().createOrganization(admin, { username: "plant" }));
  ({ id: night } = await directory().createOrganization(admin, { username: "night", parent: "/plant" }));
  await make("ann", { parent: "/plant/night" });
});
afterEach(() => http[Symbol.asyncDispose]());

const directory = () => http.users.directory;
const make = async (username: string, members: object = {}) =>
  (await http.users.create(admin, { username, password: PASSWORD, rights: { role: "viewer" }, ...members })).id;
const signIn = (username = "ann") =>
  http.users.signIn({ company: "matrix", username, password: PASSWORD, remote: "r", traceparent: "" });
const basic = (username = "ann") =>
  http.users.byPassword({ login: `matrix.${username}`, password: PASSWORD, remote: "r" }, "");
const close = (id: string) => directory().change(admin, id, { active: false });
const open = (id: string) => directory().change(admin, id, { active: true });
async function ofFew(grants: readonly string[]): Promise<Principal> {
  await make("few", { rights: { grants, data: [] } });
  const found = await http.users.present("matrix", "few");
  if (found === undefined) throw new Error("There is no few.");
  return found;
}

describe("an inactive organisation", () => {
  test("stops sign-in, sessions, tokens, Basic and what runs as its users, at once; and those of none below it", async () => {
    const { session } = await signIn();
    const ann = await http.users.bySession(session, "");
    if (ann === undefined) throw new Error("ann is signed in");
    const token = await http.users.signIns.makeToken(ann, { name: "t", scopes: ["*:read"], days: 1, remote: "" });
    const { session: other } = await signIn("viewer");
    const ways = {
      session: () => http.users.bySession(session, ""),
      token: () => http.users.byToken(token, ""),
      basic: () => basic(),
      present: () => http.users.present("matrix", "ann"),
    };
    for (const [way, ask] of Object.entries(ways)) expect(await ask(), way).toMatchObject({ user: "ann" });
    await close(plant);
    for (const [way, ask] of Object.entries(ways)) expect(await ask(), way).toBeUndefined();
    await expect(signIn()).rejects.toMatchObject(WRONG);
    expect(await http.users.bySession(other, "")).toMatchObject({ user: "viewer" });
    await open(plant);
    // As for a user who is made active again: earlier sessions are over, tokens work again.
    expect(await ways.session()).toBeUndefined();
    expect(await ways.token()).toMatchObject({ user: "ann" });
    expect(await ways.basic()).toMatchObject({ user: "ann" });
    const again = (await signIn()).session;
    expect(await http.users.bySession(again, "")).toMatchObject({ user: "ann" });
  });

  test("stops a sign-in that it overtakes: after the password, after the check, and by a provider", async () => {
    const account = { issuer: "https://provider.example", subject: "ann" };
    const { providers } = http.users;
    await providers.link(admin, await idOf("ann"), account);
    const given = {
      account,
      groups: [],
      governed: [],
      remote: "r",
      traceparent: "",
      replaced: undefined,
      redirect: "",
    };
    const profile = { username: undefined, firstname: undefined, lastname: undefined, email: undefined };
    const byProvider = () => providers.signIn({ tenant: "matrix", ...given, profile, creates: false, remember: false });
    await expect(byProvider()).resolves.toHaveProperty("session");
    const append = http.trail.append.bind(http.trail);
    const during = vi.spyOn(http.trail, "append").mockImplementation(async (tenant, records) => {
      if (records.some(({ user }) => user === "ann")) await close(plant);
      return append(tenant, records);
    });
    await expect(signIn()).rejects.toMatchObject({ code: "denied", message: expect.stringContaining("meanwhile") });
    during.mockRestore();
    await expect(byProvider()).rejects.toMatchObject({ details: { reason: "account" } });
    await open(plant);
    const ann = (await http.users.bySession((await signIn()).session, "")) ?? admin;
    const { secret } = await http.users.secondFactors.begin(ann, PASSWORD);
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.nowMs() });
    await http.users.secondFactors.confirm(ann, code);
    const { ticket } = await signIn().then(
      () => ({ ticket: "" }),
      (error: unknown) => error as CodeNeeded,
    );
    await close(plant);
    const second = http.users.signInByCode({ ticket, code: "000000", remote: "r", traceparent: "" });
    await expect(second).rejects.toMatchObject({ code: "deadline" });
  });

  test("stops who is moved into it, with an organisation or alone, until moved out", async () => {
    const { id: closed } = await directory().createOrganization(admin, { username: "closed", active: false });
    const { session } = await signIn();
    await directory().move(admin, plant, closed);
    expect(await http.users.bySession(session, "")).toBeUndefined();
    await directory().move(admin, plant, "/");
    expect(await http.users.bySession(session, "")).toMatchObject({ user: "ann" });
    await directory().move(admin, await idOf("ann"), closed);
    expect(await http.users.bySession(session, "")).toBeUndefined();
  });

  test("that was stored before it had an effect has it", async () => {
    const record = {
      id: night,
      parent: plant,
      username: "night",
      details: {},
      active: false,
      createdMs: 0,
      changedMs: 0,
    };
    const { kv } = await http.engine.tenant("matrix");
    await kv.put(organizationKey(night), encodeJson(record));
    await expect(signIn()).rejects.toMatchObject(WRONG);
  });

  test("leaves an active administrator: by closing, by moving into it, and when another one goes", async () => {
    const conflict = { code: "conflict", message: "No active administrator would be left." };
    const last = (username: string) => ({ code: "conflict", message: `${username} is the last active administrator.` });
    const adminId = await idOf("admin");
    await directory().move(admin, adminId, "/plant/night");
    await expect(close(plant)).rejects.toMatchObject(conflict);
    const { id: closed } = await directory().createOrganization(admin, { username: "closed", active: false });
    await expect(directory().move(admin, plant, closed)).rejects.toMatchObject(conflict);
    await expect(directory().move(admin, adminId, closed)).rejects.toMatchObject(last("admin"));
    await make("boss", { rights: { role: "administrator" } });
    await close(plant);
    await expect(basic("admin")).resolves.toBeUndefined();
    const bossId = await idOf("boss");
    await expect(directory().change(admin, bossId, { isAdmin: false })).rejects.toMatchObject(last("boss"));
    await expect(directory().change(admin, bossId, { active: false })).rejects.toMatchObject(last("boss"));
    await expect(directory().remove(admin, bossId)).rejects.toMatchObject(last("boss"));
    await open(plant);
    await directory().remove(admin, bossId);
  });

  test("is made active for the only administrator whose password an operator resets, and for nobody else", async () => {
    await directory().move(admin, await idOf("admin"), "/plant/night");
    const { kv } = await http.engine.tenant("matrix");
    const record = { id: plant, parent: "1000000000000000000", username: "plant", details: {}, active: false };
    await kv.put(organizationKey(plant), encodeJson({ ...record, createdMs: 0, changedMs: 0 }));
    await http.users.operator.resetPassword("matrix", "ann");
    await expect(signIn("admin")).rejects.toMatchObject(WRONG);
    const password = await http.users.operator.resetPassword("matrix", "admin");
    const request = { company: "matrix", username: "admin", password, remote: "r", traceparent: "" };
    await expect(http.users.signIn(request)).resolves.toHaveProperty("session");
    expect(http.trail.records.map(({ action }) => action)).toContain("make the organisation /plant active");
  });
});

describe("who may change users, and has less than one below an organisation,", () => {
  const BEYOND = { code: "denied", message: expect.stringContaining("beyond the own") as string };

  test("neither changes, closes, opens nor moves it", async () => {
    const few = await ofFew(["users:*"]);
    for (const change of [{ details: { remark: "x" } }, { active: false }, { active: true }])
      await expect(directory().change(few, plant, change)).rejects.toMatchObject(BEYOND);
    const { id: other } = await directory().createOrganization(few, { username: "other" });
    await expect(directory().move(few, plant, other)).rejects.toMatchObject(BEYOND);
    expect(await directory().reader.subtree(admin, "/plant")).toMatchObject({ isactive: true, remark: "" });
    expect(await http.users.present("matrix", "ann")).toMatchObject({ user: "ann" });
  });

  test("changes one whose users have no more than he", async () => {
    await http.users.update(admin, "ann", { rights: NO_RIGHTS });
    const few = await ofFew(["users:*"]);
    await directory().change(few, plant, { active: false });
    expect(await http.users.present("matrix", "ann")).toBeUndefined();
    await directory().change(few, plant, { active: true });
    expect(await http.users.present("matrix", "ann")).toMatchObject({ user: "ann" });
  });
});

async function idOf(username: string): Promise<string> {
  const found = await http.users.find(admin, username);
  if (found === undefined) throw new Error(`There is no ${username}.`);
  return found.id;
}
