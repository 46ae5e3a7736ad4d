import { expect, test } from "vitest";
import { TENANT_REGISTER_ATTEMPTS_MAX } from "../../../common/limits.ts";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import { TenantService } from "./service.ts";

test("a tenant is made once, with its stores, and keeps its name space", async () => {
  await using engine = await openTestEngine();
  const tenants = new TenantService({ runtime: testRuntime(), engine });
  expect([await tenants.only(), await tenants.get("third")]).toEqual([undefined, undefined]);
  const made = await Promise.all(
    [1, 2, 3].map(() => tenants.ensureTenant({ name: "third", ospace: "/ns", title: "Third" })),
  );
  expect(new Set(made.map((tenant) => JSON.stringify(tenant))).size).toBe(1);
  expect(await tenants.only()).toMatchObject({ name: "third", ospace: "/ns", title: "Third" });
  await (await engine.tenant("third")).kv.put("a", new Uint8Array([1]));
  await expect(tenants.ensureTenant({ name: "third", ospace: "/other" })).rejects.toMatchObject({ code: "conflict" });
  await tenants.ensureTenant({ name: "fourth", ospace: "/fourth" });
  expect((await tenants.list()).map(({ name }) => name)).toEqual(["fourth", "third"]);
  expect(await tenants.only()).toBeUndefined();
  expect(await tenants.ospaceOf("third")).toBe("/ns");
  await expect(tenants.ospaceOf("fifth")).rejects.toMatchObject({ code: "not_found" });
});

test("registering goes on after lost races, as often as its bound says", async () => {
  await using engine = await openTestEngine();
  const system = await engine.system();
  const most = TENANT_REGISTER_ATTEMPTS_MAX;
  for (const [races, name] of [
    [most - 1, "third"],
    [most, "fourth"],
  ] as const) {
    let attempts = 0;
    // The conflicting tenant no longer exists when the store answers.
    const kv = wrappedKv(system.kv, {
      put: async (...put) =>
        put[0].startsWith("tenants/") && attempts++ < races ? { ok: false, current: undefined } : system.kv.put(...put),
    });
    const stores = {
      system: () => Promise.resolve({ ...system, kv }),
      tenant: (tenant: string) => engine.tenant(tenant),
      ready: () => engine.ready(),
      createTenant: (tenant: string) => engine.createTenant(tenant),
    };
    const tenants = new TenantService({ runtime: testRuntime(), engine: stores });
    const made = tenants.ensureTenant({ name, ospace: "/ns" });
    if (races < most) expect(await made).toMatchObject({ name });
    else await expect(made).rejects.toMatchObject({ code: "conflict" });
    expect(attempts).toBe(most);
  }
});

test("names that a store could not keep are refused", async () => {
  await using engine = await openTestEngine();
  const tenants = new TenantService({ runtime: testRuntime(), engine });
  for (const name of ["", "Upper", "1a", "a-b", "../x", "x".repeat(49)]) {
    await expect(tenants.ensureTenant({ name, ospace: "/a" })).rejects.toMatchObject({ code: "invalid" });
    expect(await tenants.get(name)).toBeUndefined();
  }
  for (const ospace of ["", "a", "/", "/a/b", "/a b"])
    await expect(tenants.ensureTenant({ name: "a", ospace })).rejects.toMatchObject({ code: "invalid" });
});

test("a tenant that is registered and has no store is named", async () => {
  await using engine = await openTestEngine();
  const tenants = new TenantService({ runtime: testRuntime(), engine });
  await tenants.ensureTenant({ name: "third", ospace: "/third" });
  await tenants.requireStores();
  await engine.dropTenant("third");
  await expect(tenants.requireStores()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("tenant third"),
  });
});
