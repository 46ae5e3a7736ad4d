import { afterAll, beforeAll, expect, test } from "vitest";
import {
  JOB_GROUP_HOSTS_MAX,
  JOB_GROUP_NAME_MAX_BYTES,
  JOB_GROUP_PASSWORD_MAX_BYTES,
} from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { onCluster } from "../../../../test/helpers/engines/engine.ts";
import { noClasses } from "../../../../test/helpers/objects/memory/objects.ts";
import { openTestHttp, type TestHttp } from "../../../../test/helpers/http/http-app.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../../test/helpers/engines/wrapped-kv.ts";
import { AGED_CHANGES } from "../../../../test/helpers/time/times.ts";
import { AppError } from "../../../../common/errors.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import type { Stores } from "../../../store/engine.ts";
import { JobGroups } from "./groups.ts";
import { groupRoutes } from "../routes.ts";

const CHANGES = onCluster ? 100 : AGED_CHANGES;
const admin = testPrincipal();
const runtime = testRuntime(realClock);

let http: TestHttp;
let session: string;
let groups: JobGroups;

// The HTTP side opens the engine but needs the routes first, so the engine is looked up at the first call.
const stores: Stores = { system: () => http.engine.system(), tenant: (name) => http.engine.tenant(name) };

const objects = noClasses();

beforeAll(async () => {
  groups = new JobGroups({ stores, objects, secrets: TEST_SECRETS, runtime });
  http = await openTestHttp({ endpoints: groupRoutes(groups) });
  session = await http.signIn("admin");
});
afterAll(() => http[Symbol.asyncDispose]());

const call = (method: "GET" | "POST" | "PUT" | "DELETE", url: string, payload?: object, as = session) =>
  http.call(as, { method, url, ...(payload !== undefined && { payload }) });
/** The groups without their revisions. */
const listed = async (as = session) => {
  const { message } = await call("GET", "/group", undefined, as);
  return (message as readonly { readonly revision: string }[]).map(({ revision: _revision, ...group }) => group);
};
const stored = async () => {
  const { kv } = await http.engine.tenant("matrix");
  const texts: string[] = [];
  for await (const { value } of entriesUnder(kv, "jobs/group/")) texts.push(Buffer.from(value).toString());
  return texts.join("\n");
};

test("a group is made, listed, replaced and removed; its passwords are never answered and lie sealed", async () => {
  expect(await listed()).toEqual([]);
  const hosts = [{ host: "db1", proxy: "gate", port: 2222, username: "ops", password: "hunter2" }, { host: "db2" }];
  expect(await call("POST", "/group", { name: "a/b dbs", gtype: "proxy", hosts })).toEqual({
    status: "ok",
    message: "",
    warnings: ["No host leads to db2: its own record says how it is reached."],
  });
  const db1 = { host: "db1", proxy: "gate", port: "2222", username: "ops", password: "******", sshkey: "" };
  const db2 = { host: "db2", proxy: "", port: "", username: "", password: "", sshkey: "" };
  expect(await listed()).toEqual([{ name: "a/b dbs", gtype: "proxy", hosts: [db1, db2] }]);
  expect(await stored()).not.toContain("hunter2");
  expect(await call("PUT", "/group", { name: "a/b dbs", gtype: "proxy", hosts: [db2] })).toMatchObject({
    status: "ok",
  });
  expect(await listed()).toEqual([{ name: "a/b dbs", gtype: "proxy", hosts: [db2] }]);
  expect(await call("PUT", "/group", { name: "a/b dbs", gtype: "group", hosts: [] })).toMatchObject({
    code: "not_found",
  });
  expect(await call("DELETE", "/group/group/a%2Fb%20dbs")).toMatchObject({ code: "not_found" });
  expect(await call("DELETE", "/group/proxy/a%2Fb%20dbs")).toEqual({ status: "ok", message: "" });
  expect(await call("DELETE", "/group/proxy/a%2Fb%20dbs")).toMatchObject({ code: "not_found" });
  expect(await listed()).toEqual([]);
});

test("a password that is missing or masked stays, an empty one goes, and none goes to another place", async () => {
  const place = { host: "web", proxy: "gate", port: "22", username: "ops" };
  const save = (more: object) => groups.save(admin, { name: "kept", gtype: "proxy", hosts: [{ ...place, ...more }] });
  const shown = async (more: object) => (await save(more)).group.hosts[0]?.password;
  expect(await shown({ password: "first" })).toBe("******");
  const before = await stored();
  const sealed = /"sealed":"([^"]+)"/.exec(before)?.[1] ?? "none";
  expect(await shown({})).toBe("******");
  expect(await shown({ password: "******" })).toBe("******");
  expect(await stored()).toContain(sealed);
  for (const elsewhere of [{ proxy: "evil" }, { port: "2200" }, { username: "root" }]) {
    await save({ password: "again" });
    const { group, warnings } = await save(elsewhere);
    expect(group.hosts[0]?.password).toBe("");
    expect(warnings[0]).toContain("The password of web was removed");
  }
  await save({ password: "again" });
  expect(await shown({ password: "" })).toBe("");
  await groups.remove(admin, { gtype: "proxy", name: "kept" });
});

test("a key on record stays with its server; another one takes the password with it that is not brought anew", async () => {
  const [one, two] = ["A", "B"].map((letter) => `SHA256:${letter.repeat(43)}`);
  const place = { host: "web", proxy: "gate", port: "22", username: "ops" };
  const save = async (more: object) => {
    const { group, warnings } = await groups.save(admin, {
      name: "keyed",
      gtype: "proxy",
      hosts: [{ ...place, ...more }],
    });
    return { shown: group.hosts[0], removed: warnings.some((text) => text.startsWith("The password of web")) };
  };
  expect(await save({ password: "p", sshkey: one })).toMatchObject({ shown: { sshkey: one, password: "******" } });
  expect(await save({})).toMatchObject({ shown: { sshkey: one, password: "******" }, removed: false });
  expect(await save({ sshkey: one, username: "root", password: "r" })).toMatchObject({ shown: { sshkey: one } });
  expect(await save({ password: "p", sshkey: two })).toMatchObject({ shown: { sshkey: two, password: "******" } });
  for (const other of [{ sshkey: one }, { sshkey: "" }]) {
    await save({ password: "p", sshkey: two });
    expect(await save(other)).toMatchObject({ shown: { ...other, password: "" }, removed: true });
  }
  await save({ password: "p", sshkey: two });
  expect(await save({ port: "2222" })).toMatchObject({ shown: { sshkey: "", password: "" }, removed: true });
  await groups.remove(admin, { gtype: "proxy", name: "keyed" });
});

test("what is no group is refused, and nothing is changed", async () => {
  const before = await listed();
  const group = (more: object) => ({ name: "bad", gtype: "group", hosts: [{ host: "h" }], ...more });
  const many = Array.from({ length: JOB_GROUP_HOSTS_MAX + 1 }, (_, at) => ({ host: `h${at}` }));
  const refused = [
    [group({ gtype: "other" }), "invalid"],
    [group({ name: "" }), "invalid"],
    [group({ name: "x".repeat(JOB_GROUP_NAME_MAX_BYTES + 1) }), "too_large"],
    [group({ hosts: "h" }), "invalid"],
    [group({ hosts: [{}] }), "invalid"],
    [group({ hosts: [{ host: "h" }, { host: "h" }] }), "invalid"],
    [group({ hosts: [{ host: "h", port: "70000" }] }), "invalid"],
    [group({ hosts: [{ host: "h", port: "ssh" }] }), "invalid"],
    [group({ hosts: many }), "too_large"],
    [group({ hosts: [{ host: "h", proxy: "h" }] }), "invalid"],
    [group({ hosts: [{ host: "h", proxy: "gate\u0000" }] }), "invalid"],
    [group({ hosts: [{ host: "h", username: "ops\n" }] }), "invalid"],
    [group({ hosts: [{ host: "h", sshkey: "SHA256:short" }] }), "invalid"],
    [group({ hosts: [{ host: "h", password: "x".repeat(JOB_GROUP_PASSWORD_MAX_BYTES + 1) }] }), "too_large"],
    [group({ hosts: many.slice(0, 100).map((one) => ({ ...one, password: "x".repeat(15_000) })) }), "too_large"],
  ] as const;
  for (const [body, code] of refused)
    expect(await call("POST", "/group", body), JSON.stringify(body).slice(0, 80)).toMatchObject({
      status: "error",
      code,
    });
  expect(await listed()).toEqual(before);
});

test("a viewer reads and changes nothing, a neighbour has groups of its own", async () => {
  await call("POST", "/group", { name: "mine", gtype: "group", hosts: [{ host: "h", password: "p" }] });
  const viewer = await http.signIn("viewer");
  expect(await listed(viewer)).toMatchObject([{ name: "mine", hosts: [{ host: "h", password: "******" }] }]);
  for (const [method, url, body] of [
    ["POST", "/group", { name: "mine", gtype: "group", hosts: [] }],
    ["PUT", "/group", { name: "mine", gtype: "group", hosts: [] }],
    ["DELETE", "/group/group/mine", undefined],
  ] as const)
    expect(await call(method, url, body, viewer)).toMatchObject({ status: "error", code: "denied" });
  const neighbour = await http.signIn("admin", "second");
  expect(await listed(neighbour)).toEqual([]);
  expect(await call("DELETE", "/group/group/mine", undefined, neighbour)).toMatchObject({ code: "not_found" });
  await groups.remove(admin, { gtype: "group", name: "mine" });
});

test(`a group that changes ${CHANGES} times, at two controllers at once, is the last change of one of them`, async () => {
  const other = new JobGroups({ stores, objects, secrets: TEST_SECRETS, runtime });
  const save = (at: number, by: JobGroups) =>
    by.save(admin, { name: "aged", gtype: "group", hosts: [{ host: `h${at}` }] });
  for (let at = 0; at < CHANGES; at += 2) await Promise.all([save(at, groups), save(at + 1, other)]);
  const [aged] = await groups.list(admin);
  expect([`h${CHANGES - 2}`, `h${CHANGES - 1}`]).toContain(aged?.hosts[0]?.host);
  await groups.remove(admin, { gtype: "group", name: "aged" });
});

test("a change whose answer is lost is made once and told as made", async () => {
  let lost = 0;
  const lossy: Stores = {
    system: () => http.engine.system(),
    tenant: async (name) => {
      const store = await http.engine.tenant(name);
      const put: typeof store.kv.put = async (...args) => {
        const answer = await store.kv.put(...args);
        if (lost++ === 0) throw new AppError("unknown_outcome", "done, not told");
        return answer;
      };
      return { ...store, kv: wrappedKv(store.kv, { put }) };
    },
  };
  const unlucky = new JobGroups({ stores: lossy, objects, secrets: TEST_SECRETS, runtime });
  const { group } = await unlucky.save(admin, { name: "lost", gtype: "group", hosts: [{ host: "h" }] });
  expect(await groups.list(admin)).toEqual([group]);
  expect(lost).toBe(2);
  await groups.remove(admin, { gtype: "group", name: "lost" });
});
