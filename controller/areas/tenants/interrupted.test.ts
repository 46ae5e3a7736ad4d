import { describe, expect, test } from "vitest";
import { onCluster, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { Mortality } from "../../../test/helpers/engines/mortal.ts";
import type { Engine, TenantStore as TenantStores } from "../../store/engine.ts";
import {
  PASSWORD,
  admin,
  type Controller,
  installation,
  useInstallations,
  begin,
  signsIn,
  entry,
  storeIn,
} from "../../../test/helpers/tenants/company-world.ts";

useInstallations();

const LOST = "battery staple forgotten";

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
