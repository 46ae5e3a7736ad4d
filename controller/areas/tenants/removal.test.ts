import { describe, expect, test } from "vitest";
import { TENANT_GRACE_MS, TENANT_LEAVE_STEP_MS } from "../../../common/limits.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import type { TenantStore as TenantStores } from "../../store/engine.ts";
import {
  PASSWORD,
  admin,
  installation,
  useInstallations,
  begin,
  names,
  signsIn,
  entry,
  storeIn,
} from "../../../test/helpers/tenants/company-world.ts";

useInstallations();

const bytes = new Uint8Array([1]);

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
