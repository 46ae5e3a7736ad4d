import { expect, test } from "vitest";
import { openTestEngine } from "../../../test/helpers/engine.ts";
import { testRuntime } from "../../../test/helpers/runtime.ts";
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
