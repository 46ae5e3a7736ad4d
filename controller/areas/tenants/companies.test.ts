import { afterEach, describe, expect, test } from "vitest";
import { TENANT_CALLS_IN_FLIGHT_MAX, TENANT_GRACE_MS, TENANT_LEAVE_STEP_MS } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import { testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { Clock } from "../../../common/time.ts";
import type { Engine, TenantStore as TenantStores } from "../../store/engine.ts";
import { AuditService } from "../audit/index.ts";
import type { Principal } from "../permissions/index.ts";
import { passwordFault, UserService } from "../users/index.ts";
import { MemoryTrail } from "../../../test/helpers/areas/http-app.ts";
import { TEST_SECRETS } from "../../../test/helpers/time/runtime.ts";
import { CompanyService } from "./companies.ts";
import { TenantGate } from "./gate.ts";
import { countQuotaOf } from "./quotas.ts";
import { TenantRemoval } from "./removal.ts";
import { TenantService } from "./service.ts";
import type { Company, NewCompany } from "./types.ts";

const PASSWORD = "correct horse";
const LOST = "battery staple forgotten";
const admin = testPrincipal();
const bytes = new Uint8Array([1]);

interface Controller {
  readonly gate: TenantGate;
  readonly companies: CompanyService;
  readonly removal: TenantRemoval;
  readonly tenants: TenantService;
  readonly users: UserService;
}

/** Controllers of one installation whose first tenant is `matrix`. */
class Installation {
  readonly engine: TestEngine;
  readonly alive = new Set<string>();
  readonly controllers: Controller[] = [];
  clock: Clock = realClock;
  after: Clock["after"] = (...of) => realClock.after(...of);
  /** Keys in the system store that belong to tenants. */
  readonly keys: string[] = [];

  constructor(engine: TestEngine) {
    this.engine = engine;
  }

  async controller(id: string, engine: Engine = this.engine): Promise<Controller> {
    this.alive.add(id);
    const clock: Clock = {
      ...realClock,
      nowMs: () => this.clock.nowMs(),
      after: (...of) => this.after(...of),
    };
    const runtime = { ...testRuntime(clock), random: { next: Math.random, bytes: randomBytes } };
    const gate = await TenantGate.open({ stores: engine, runtime, controllerId: id });
    const tenants = new TenantService({ runtime, engine });
    gate.onLeave((tenant) => tenants.forget(tenant));
    const audit = new AuditService({ runtime, trail: new MemoryTrail(), keys: TEST_SECRETS });
    const users = new UserService({ runtime, stores: gate, tenants, audit });
    const controllers = { own: id, has: (one: string) => this.alive.has(one) };
    const companies = new CompanyService({
      engine,
      runtime,
      gate,
      users,
      controllers,
      passwordFault,
      onDue: () => {},
      licenseOf: () => Promise.resolve("{}"),
      use: { shown: () => undefined, measureSoon: () => {} },
    });
    const keys = this.keys;
    const keysOf = async function* (): AsyncGenerator<string> {
      yield* await Promise.resolve(keys);
    };
    const removal = new TenantRemoval({ engine, runtime, gate, controllers, keysOf: () => [keysOf] });
    await tenants.ensureTenant({ name: "matrix", ospace: "/matrix" });
    const controller = { gate, companies, removal, tenants, users };
    this.controllers.push(controller);
    return controller;
  }

  purge({ removal }: Controller): Promise<void> {
    return removal.run(new AbortController().signal);
  }
}

function randomBytes(count: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(count));
}

let installation: Installation;

async function begin(): Promise<Installation> {
  installation = new Installation(await openTestEngine());
  return installation;
}

afterEach(async () => {
  for (const { gate } of installation.controllers) await gate.close();
  await installation.engine[Symbol.asyncDispose]();
});

async function names(pages: AsyncIterable<readonly Company[]>): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const page of pages) found.push(...page.map(({ name }) => name));
  return found;
}

async function signsIn({ users }: Controller, company: string, password: string): Promise<boolean> {
  const request = { company, username: "admin", password, remote: "test", traceparent: "" };
  return users.signIn(request).then(
    () => true,
    () => false,
  );
}

test("a tenant is made whole: stores, name space, an administrator whose generated password is told once", async () => {
  const one = await (await begin()).controller("one");
  const { username, password = "" } = await one.companies.create(admin, {
    name: "third",
    fullname: "The Third",
    web: "https://third.example",
    icon: "data:image/png;base64,AAAA",
    config: { replication_factor: "1" },
  });
  expect([username, await signsIn(one, "third", password)]).toEqual(["admin", true]);
  expect(await one.companies.get(admin, "third")).toMatchObject({
    name: "third",
    fullname: "The Third",
    ospace: "/third",
    title: "The Third",
    web: "https://third.example",
    icon: "data:image/png;base64,AAAA",
    logo: "",
    config: { replication_factor: "1" },
    license: "{}",
  });
  expect(await names(one.companies.list(admin))).toEqual(["matrix", "third"]);
  await expect(one.companies.create(admin, { name: "third" })).rejects.toMatchObject({ code: "conflict" });
  const changed = await one.companies.update(admin, { name: "third", title: "3", icon: "", config: { color: "red" } });
  expect(changed).toMatchObject({ title: "3", fullname: "The Third", icon: "" });
  expect(changed.config).toEqual({ replication_factor: "1", color: "red" });
  for (const wrong of [{ ospace: "/other" }, { config: { replication_factor: "3" } }])
    await expect(one.companies.update(admin, { name: "third", ...wrong })).rejects.toMatchObject({
      code: expect.stringMatching(/^(conflict|unsupported)$/),
    });
});

test("administrators of other tenants see their own and manage none, users of few rights neither", async () => {
  const one = await (await begin()).controller("one");
  await one.tenants.ensureTenant({ name: "second", ospace: "/second" });
  for (const foreign of [testPrincipal("administrator", "second"), testPrincipal("viewer", "second")]) {
    expect(await names(one.companies.list(foreign))).toEqual(["second"]);
    expect(await one.companies.get(foreign, "second")).toMatchObject({ name: "second" });
    await expect(one.companies.get(foreign, "matrix")).rejects.toMatchObject({ code: "not_found" });
  }
  expect(await names(one.companies.list(testPrincipal("viewer")))).toEqual(["matrix"]);
  for (const user of [testPrincipal("administrator", "second"), testPrincipal("viewer")]) {
    for (const change of [
      () => one.companies.create(user, { name: "fourth" }),
      () => one.companies.update(user, { name: "second", title: "x" }),
      () => one.companies.remove(user, "second"),
      () => one.companies.restore(user, "second"),
    ])
      await expect(change()).rejects.toMatchObject({ code: "denied" });
  }
  await expect(one.companies.remove(admin, "matrix")).rejects.toMatchObject({ code: "conflict" });
});

test("nobody is told the password of an administrator who is none, by grants or by a part of them", async () => {
  const { companies } = await (await begin()).controller("a");
  const few: readonly Principal[] = [
    { ...admin, grants: ["tenants:*"], data: [] },
    { ...admin, paths: ["/home/few"] },
    { ...admin, grants: ["tenants:*"], byToken: "part" },
  ];
  for (const principal of few)
    await expect(companies.create(principal, { name: "made" })).rejects.toMatchObject({ code: "denied" });
  expect(await names(companies.list(admin))).toEqual(["matrix"]);
  await companies.create({ ...admin, byToken: "whole" }, { name: "made" });
  expect(await names(companies.list(admin))).toEqual(["made", "matrix"]);
});

test("members that cannot be kept are refused by name, and nothing is begun", async () => {
  const one = await (await begin()).controller("one");
  const huge = "x".repeat(2_000_000);
  const wishes: readonly NewCompany[] = [
    { name: "" },
    { name: "Upper" },
    { name: huge },
    { name: "../x" },
    { name: "third", ospace: "/a/b" },
    { name: "third", password: "third" },
    { name: "third", title: huge },
    { name: "third", title: "a\u0000b" },
    { name: "third", icon: huge },
    { name: "third", icon: "javascript:alert(1)" },
    { name: "third", config: { replication_factor: "many" } },
    { name: "third", config: { a: huge } },
  ];
  for (const wrong of wishes)
    await expect(one.companies.create(admin, wrong)).rejects.toMatchObject({
      code: expect.stringMatching(/^(invalid|too_large)$/),
    });
  expect(await names(one.companies.list(admin))).toEqual(["matrix"]);
});

test("quotas of agents and calls are made, changed and listed, reach every controller, and are refused by name", async () => {
  const own = await begin();
  const [one, two] = [await own.controller("one"), await own.controller("two")];
  const quotaOf = ({ gate }: Controller) => countQuotaOf(gate.configOf("third"));
  await one.companies.create(admin, { name: "third", config: { max_agents: "5", max_calls: "2" } });
  expect(await one.companies.get(admin, "third")).toMatchObject({ config: { max_agents: "5", max_calls: "2" } });
  for (const each of [one, two]) await expect.poll(() => quotaOf(each)).toEqual({ agents: 5, calls: 2 });
  await two.companies.update(admin, { name: "third", config: { max_agents: "0", max_calls: "" } });
  for (const each of [one, two]) await expect.poll(() => quotaOf(each)).toEqual({ agents: 0, calls: Infinity });
  expect(countQuotaOf(one.gate.configOf("matrix")), "others have none").toEqual({ agents: Infinity, calls: Infinity });
  for (const [member, texts] of Object.entries({
    max_agents: ["-1", "1.5", "many", "1e3"],
    max_calls: ["0", "-1", "1.5", "many", String(TENANT_CALLS_IN_FLIGHT_MAX + 1)],
  }))
    for (const text of texts)
      await expect(one.companies.update(admin, { name: "third", config: { [member]: text } })).rejects.toMatchObject({
        code: "invalid",
        details: { fields: [`config.${member}`] },
      });
  expect(quotaOf(one)).toEqual({ agents: 0, calls: Infinity });
});

test("what was kept before it was a quota is none, and nothing keeps a tenant from every call", () => {
  expect(countQuotaOf({ max_agents: "many", max_calls: "few" })).toEqual({ agents: Infinity, calls: Infinity });
  expect(countQuotaOf({ max_calls: "0" })).toEqual({ agents: Infinity, calls: 1 });
});

describe("a deleted tenant", () => {
  test("is gone from a controller of which a part hangs as long as it may, and the other parts are told", async () => {
    const own = await begin();
    own.after = (ms, run) => realClock.after(ms === TENANT_LEAVE_STEP_MS ? 0 : ms, run);
    const one = await own.controller("one");
    await one.companies.create(admin, { name: "third", password: PASSWORD });
    const left: string[] = [];
    one.gate.onLeave(() => new Promise(() => {}));
    one.gate.onLeave((tenant) => void left.push(tenant));
    await one.companies.remove(admin, "third");
    expect(left).toEqual(["third"]);
  });

  test("is absent for every call at once on every controller; within the grace all of it can be had back", async () => {
    const { controller } = await begin();
    const make = controller.bind(installation);
    const [one, two] = [await make("one"), await make("two")];
    await one.companies.create(admin, { name: "third", password: PASSWORD });
    const left: string[] = [];
    two.gate.onLeave((tenant) => void left.push(tenant));
    const held = await two.gate.tenant("third");
    await held.kv.put("kept", bytes);
    const { session } = await two.users.signIn({
      company: "third",
      username: "admin",
      password: PASSWORD,
      remote: "test",
      traceparent: "",
    });

    await one.companies.remove(admin, "third");
    expect(left).toEqual(["third"]);
    for (const { gate, tenants, companies } of [one, two]) {
      expect([await gate.isOpen("third"), await tenants.get("third")]).toEqual([false, undefined]);
      for (const ask of [
        () => gate.tenant("third"),
        () => tenants.ospaceOf("third"),
        () => companies.get(admin, "third"),
      ])
        await expect(ask()).rejects.toMatchObject({ code: "not_found" });
    }
    for (const call of callsOf(held)) await expect(call()).rejects.toMatchObject({ code: "not_found" });
    expect(await signsIn(two, "third", PASSWORD)).toBe(false);
    expect([await names(two.companies.list(admin)), await names(two.companies.list(admin, { deleted: true }))]).toEqual(
      [["matrix"], ["third"]],
    );
    await expect(two.companies.create(admin, { name: "third" })).rejects.toMatchObject({ code: "conflict" });
    await one.companies.remove(admin, "third");
    await installation.purge(one);

    await two.companies.restore(admin, "third");
    await expect.poll(() => one.gate.isOpen("third"), { timeout: 60_000 }).toBe(true);
    expect(await (await one.gate.tenant("third")).kv.get("kept")).toBeDefined();
    expect(await signsIn(one, "third", PASSWORD)).toBe(true);
    expect(await two.users.bySession(session, "")).toMatchObject({ tenant: "third" });
    await expect(two.companies.restore(admin, "third")).rejects.toMatchObject({ code: "conflict" });
  });

  test("is not called deleted everywhere before the last controller said so or is gone", async () => {
    const { controller } = await begin();
    const one = await controller.call(installation, "one");
    await one.companies.create(admin, { name: "third", password: PASSWORD });
    const { kv } = await installation.engine.system();
    const silent = await kv.lease(60_000);
    await kv.put("tenant-followers/silent", (await entry(kv, "tenant-followers/one")).value, { lease: silent.id });
    const over = new AbortController();
    const { revision } = await entry(kv, "tenants/third");
    let isTold = false;
    const waiting = one.gate.acknowledged(revision + 1, over.signal).finally(() => (isTold = true));
    await entry(kv, "tenant-followers/silent");
    expect(isTold).toBe(false);
    await silent.revoke();
    expect(await waiting).toBe(true);
    expect(await one.gate.acknowledged(Number.MAX_SAFE_INTEGER, over.signal), "its own place does not count").toBe(
      true,
    );
  });

  test("is really gone after the grace, and a new one of that name has nothing of it", async () => {
    const { controller } = await begin();
    const one = await controller.call(installation, "one");
    await one.companies.create(admin, { name: "third", password: PASSWORD });
    await (await one.gate.tenant("third")).kv.put("old", bytes);
    const { kv } = await installation.engine.system();
    const store = storeIn(await entry(kv, "tenants/third"));
    installation.keys.push("enrolment/hosts/third/a", "enrolment/tokens/b");
    for (const key of installation.keys) await kv.put(key, bytes);
    await one.companies.remove(admin, "third");
    await installation.purge(one);
    expect(await installation.engine.tenant(store), "kept within the grace").toBeDefined();
    installation.clock = { ...realClock, nowMs: () => Date.now() + TENANT_GRACE_MS };
    await installation.purge(one);
    await expect(installation.engine.tenant(store)).rejects.toMatchObject({ code: "not_found" });
    for (const key of [...installation.keys, "tenants/third"]) expect(await kv.get(key)).toBeUndefined();
    await expect(one.companies.restore(admin, "third")).rejects.toMatchObject({ code: "not_found" });
    installation.keys.length = 0;
    installation.clock = realClock;
    await one.companies.create(admin, { name: "third", password: "another password" });
    expect(await (await one.gate.tenant("third")).kv.get("old")).toBeUndefined();
    expect([await signsIn(one, "third", PASSWORD), await signsIn(one, "third", "another password")]).toEqual([
      false,
      true,
    ]);
  });

  test("leaves nothing open on controllers that had its stores and did not remove it", async () => {
    const { controller } = await begin();
    const one = await controller.call(installation, "one");
    const released: string[] = [];
    const { engine } = installation;
    const two = await controller.call(installation, "two", {
      ...engine,
      releaseTenant: async (name) => void released.push(name),
    });
    await one.companies.create(admin, { name: "third", password: PASSWORD });
    const store = storeIn(await entry((await engine.system()).kv, "tenants/third"));
    await expect.poll(() => two.gate.isOpen("third"), { timeout: 30_000 }).toBe(true);
    await (await two.gate.tenant("third")).kv.put("used", bytes);
    await one.companies.remove(admin, "third", { purge: true });
    expect(released, "within the grace it may be had back").toEqual([]);
    await installation.purge(one);
    await expect.poll(() => released, { timeout: 30_000 }).toEqual([store]);
  });

  test("takes no key of a later tenant of that name, however late its removal comes", async () => {
    const { controller } = await begin();
    const one = await controller.call(installation, "one");
    await one.companies.create(admin, { name: "third", password: PASSWORD });
    const { kv } = await installation.engine.system();
    await one.companies.remove(admin, "third", { purge: true });
    let goOn = (): void => {};
    let arrived = (): void => {};
    const there = new Promise<void>((resolve) => (arrived = resolve));
    const late = await controller.call(installation, "late", {
      ...installation.engine,
      dropTenant: async (name) => {
        arrived();
        await new Promise<void>((resolve) => (goOn = resolve));
        await installation.engine.dropTenant(name);
      },
    });
    const slow = installation.purge(late);
    await there;
    installation.alive.delete("late");
    await installation.purge(one);
    await one.companies.create(admin, { name: "third", password: PASSWORD });
    installation.keys.push("enrolment/hosts/third/new");
    await kv.put("enrolment/hosts/third/new", bytes);
    goOn();
    await slow;
    expect(await kv.get("enrolment/hosts/third/new")).toBeDefined();
    expect(await signsIn(one, "third", PASSWORD)).toBe(true);
  });
});

// Every step creates tables on the cluster; the steps are writes of the registry, which the store contract proves.
describe.skipIf(onCluster)("killed between any two steps", () => {
  /** The engine of a process that is killed at one of its writes. */
  function mortalEngine(inner: TestEngine, mortality: Mortality): Engine {
    const step = mortality.mortal({ put: (work: () => Promise<void>) => work() });
    const stores = (store: TenantStores): TenantStores => ({ ...store, kv: mortality.mortal(store.kv) });
    return {
      ...inner,
      system: async () => stores(await inner.system()),
      tenant: async (name) => stores(await inner.tenant(name)),
      createTenant: (name, options) => step.put(() => inner.createTenant(name, options)),
      dropTenant: (name) => step.put(() => inner.dropTenant(name)),
    };
  }

  async function dies(
    work: (mortal: Controller) => Promise<unknown>,
    at: number,
    isWritten: boolean,
  ): Promise<boolean> {
    // Written before the test: the controller's own entry, and the first tenant.
    const mortality = { now: new Mortality(Infinity, false) };
    const engine = mortalEngine(installation.engine, new Mortality(Infinity, false));
    const mortal = await installation.controller(
      "mortal",
      new Proxy(engine, {
        get: (_, name) => Reflect.get(mortalEngine(installation.engine, mortality.now), name) as unknown,
      }),
    );
    mortality.now = new Mortality(at, isWritten);
    const died = await Promise.race([mortality.now.died.then(() => true), work(mortal).then(() => false)]);
    installation.alive.delete("mortal");
    mortality.now = new Mortality(Infinity, false);
    return died;
  }

  test("a tenant that was being made is not there, and making it again goes on", async () => {
    const { controller } = await begin();
    const one = await controller.call(installation, "one");
    let at = 0;
    for (let died = true; died; at++) {
      for (const isWritten of [false, true]) {
        const name = `t${at}${isWritten ? "w" : ""}`;
        const wanted = { name, icon: "data:image/png;base64,AAAA" };
        died = await dies(({ companies }) => companies.create(admin, { ...wanted, password: LOST }), at, isWritten);
        const isThere = (await one.tenants.get(name)) !== undefined;
        if (!died || isThere) continue;
        expect(await signsIn(one, name, LOST)).toBe(false);
        const { password = "" } = await one.companies.create(admin, wanted);
        expect([await signsIn(one, name, password), await signsIn(one, name, LOST)]).toEqual([true, false]);
        expect(await one.companies.get(admin, name)).toMatchObject({ icon: wanted.icon });
      }
    }
    expect(at).toBeGreaterThan(4);
  });

  test("the data of a deleted tenant goes in the end, and nothing of it stays", async () => {
    const { controller } = await begin();
    const one = await controller.call(installation, "one");
    const { kv } = await installation.engine.system();
    let at = 0;
    for (let died = true; died; at++) {
      for (const isWritten of [false, true]) {
        const name = `t${at}${isWritten ? "w" : ""}`;
        await one.companies.create(admin, { name, password: PASSWORD, icon: "data:image/png;base64,AAAA" });
        const store = storeIn(await entry(kv, `tenants/${name}`));
        await one.companies.remove(admin, name, { purge: true });
        died = await dies((mortal) => installation.purge(mortal), at, isWritten);
        await installation.purge(one);
        await expect(installation.engine.tenant(store)).rejects.toMatchObject({ code: "not_found" });
        for (const prefix of ["tenants/", "tenant-images/"]) {
          const { entries } = await kv.list(prefix + name);
          expect(entries.map(({ key }) => key)).toEqual([]);
        }
      }
    }
    expect(at).toBeGreaterThan(3);
  });
});

function callsOf({ kv, objects, blobs }: TenantStores): readonly (() => Promise<unknown>)[] {
  const place = { cid: 1, id: "a" };
  return [
    () => kv.get("kept"),
    () => kv.put("more", bytes),
    () => kv.delete("kept"),
    () => kv.list(""),
    () => kv.lease(1_000),
    () => kv.txn({ if: [], then: [] }),
    () => kv.watch("", { sinceRevision: 0, signal: new AbortController().signal })[Symbol.asyncIterator]().next(),
    () => objects.get([place]),
    () => objects.append([]),
    () => blobs.stat("a".repeat(64)),
    () => blobs.put([bytes], "owner"),
    () => blobs.read("a".repeat(64))[Symbol.asyncIterator]().next(),
  ];
}

async function entry(kv: TenantStores["kv"], key: string) {
  const found = await kv.get(key);
  if (!found) throw new Error(`There is no ${key}.`);
  return found;
}

function storeIn({ value }: { readonly value: Uint8Array }): string {
  return (JSON.parse(Buffer.from(value.subarray(1)).toString()) as { readonly store: string }).store;
}
