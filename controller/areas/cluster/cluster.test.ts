import { expect, test } from "vitest";
import { onCluster, openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { AppError } from "../../../common/errors.ts";
import { READY_KEPT_MS } from "../../../common/limits.ts";
import { encodeJson } from "../../store/format.ts";
import { TenantService } from "../tenants/index.ts";
import { clusterRoutes } from "./routes.ts";
import { ClusterService } from "./service.ts";

function tenantsOf(engine: TestEngine): TenantService {
  return new TenantService({ runtime: testRuntime(), engine });
}

test("lists the data nodes to who may read, and to nobody else", async () => {
  await using engine = await openTestEngine();
  await using http = await openTestHttp({
    endpoints: clusterRoutes(
      new ClusterService({ engine, tenants: tenantsOf(engine), clock: realClock, settings: [] }),
    ),
  });
  const answer = await http.call(await http.signIn("viewer"), { url: "/cluster/info" });
  expect(answer).toEqual({ status: "ok", message: { datastore: await engine.nodes() } });
  expect(await engine.nodes()).toHaveLength(1);
  expect(engine.kind).toBe(onCluster ? "cluster" : "embedded");
  expect((await http.app.inject({ url: "/cluster/info" })).json()).toMatchObject({ status: "signin" });
});

test("names tenants whose keyspace is gone as people do, to the first tenant and to no other", async () => {
  await using engine = await openTestEngine();
  await tenantsOf(engine).ensureTenant({ name: "matrix", ospace: "/matrix" });
  const shop = { name: "shop", ospace: "/shop", fullname: "Shop", title: "Shop", createdMs: 1, store: "shop_x2" };
  await (await engine.system()).kv.put("tenants/shop", encodeJson(shop));
  const lost = [
    { tenant: "shop_x2", keyspace: "odp_shop_x2" },
    { tenant: "stray", keyspace: "odp_stray" },
  ];
  const told = [{ tenant: "shop", keyspace: "odp_shop_x2" }, lost[1]];
  let asked = 0;
  const tenants = tenantsOf({ ...engine, ready: () => ((asked += 1), Promise.resolve({ lost })) });
  const clock = new TestClock();
  const cluster = new ClusterService({ engine, tenants, clock, settings: [] });
  expect(await tenants.ready()).toEqual({ lost: told });
  expect(await cluster.lost(testPrincipal())).toEqual(told);
  expect(await cluster.lost(testPrincipal("administrator", "second"))).toBeUndefined();
  // The stores are asked only once in a while, however many calls come.
  const before = asked;
  await cluster.lost(testPrincipal());
  expect(asked).toBe(before);
  clock.advance(READY_KEPT_MS);
  await cluster.lost(testPrincipal());
  expect(asked).toBe(before + 1);
  const away = tenantsOf({ ...engine, ready: () => Promise.reject(new AppError("unavailable", "etcd is away")) });
  expect(
    await new ClusterService({ engine, tenants: away, clock, settings: [] }).lost(testPrincipal()),
  ).toBeUndefined();
  const nobody = { ...testPrincipal(), grants: [] };
  await expect(cluster.lost(nobody)).rejects.toMatchObject({ code: "denied" });
});

test("settings are answered to users of the first tenant with the permission, and to no others", async () => {
  await using engine = await openTestEngine();
  const tenants = tenantsOf(engine);
  await tenants.ensureTenant({ name: "matrix", ospace: "/matrix" });
  const settings = [{ name: "port", value: "8390", default: "8080", given: true }];
  const cluster = new ClusterService({ engine, tenants, clock: realClock, settings });
  expect(await cluster.settings(testPrincipal("viewer"))).toEqual(settings);
  const denied = { code: "denied" };
  await expect(cluster.settings(testPrincipal("administrator", "second"))).rejects.toMatchObject(denied);
  await expect(cluster.settings({ ...testPrincipal(), grants: [] })).rejects.toMatchObject(denied);
});
