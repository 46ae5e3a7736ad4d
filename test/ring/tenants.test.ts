import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../controller/areas/query/index.ts";
import { clusterRuntime, openTestClusterEngine, type TestClusterEngine } from "../helpers/cluster/cluster.ts";
import { ClusterAdmin } from "../helpers/cluster/admin.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { mendRing, openRing, type Ring } from "../helpers/cluster/ring.ts";

let ring: Ring;
let admin: ClusterAdmin;
let engine: TestClusterEngine;

beforeAll(async () => {
  ring = await openRing();
  admin = await ClusterAdmin.connect(ring.settings);
  engine = await openTestClusterEngine({ tenants: [], settings: ring.settings });
});
afterAll(async () => {
  if (ring !== undefined) await mendRing(ring);
  await engine?.[Symbol.asyncDispose]();
  await admin?.close();
});

/** Keys, contents, objects by an index and their edges, and records must be stored as they were written. */
async function expectWhole(name: string): Promise<void> {
  const { kv, blobs } = await engine.tenant(name);
  await kv.put("here", Buffer.from(name));
  expect(Buffer.from((await kv.get("here"))?.value ?? []).toString()).toBe(name);
  const { digest } = await blobs.put([Buffer.from(name)], "test");
  const read: Uint8Array[] = [];
  for await (const piece of blobs.read(digest)) read.push(piece);
  expect(Buffer.concat(read).toString()).toBe(name);
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: clusterRuntime });
  const query = new QueryService({ objects, runtime: clusterRuntime });
  const rows = (text: string) => query.rows(testPrincipal("administrator", name), text);
  await rows(
    `create edge type leads; create class /${name}/box (h varchar, n int, keys(h), index(n)) with autosearch=true, version=true;
    create class /${name}/line (n int) with kind='record';
    insert into /${name}/box h='a', n=1; insert into /${name}/box h='b', n=2; insert into /${name}/line n=3;
    update /${name}/box set leads='box:b', n=5 where h='a'`,
  );
  expect(await rows(`select h from /${name}/box where n > 3`)).toEqual([{ h: "a" }]);
  expect(await rows(`select leads.h from /${name}/box where h = 'a'`)).toEqual([{ "leads.h": "b" }]);
  expect(await rows(`select n from /${name}/line`)).toEqual([{ n: 3 }]);
  await objects.close();
}

test("a tenant that is made with three replicas has them on the ring, and one with one has one", async () => {
  await engine.createTenant("three", { replicationFactor: 3 });
  await engine.createTenant("one", { replicationFactor: 1 });
  expect(await admin.replication(engine.prefix)).toMatchObject({
    [`${engine.prefix}_three`]: { [ring.settings.cassandraDatacenter]: "3" },
    [`${engine.prefix}_one`]: { [ring.settings.cassandraDatacenter]: "1" },
  });
  await expectWhole("three");
});

/** Nodes that hang. `npm run soak`, with five nodes, takes one more. */
const HANGING = inject("ring").nodes === 5 ? ["cassandra-1", "cassandra-3"] : ["cassandra-1"];

test.each(HANGING)("a tenant is made while %s hangs, and is whole when that goes on", async (name) => {
  const tenant = name.replace("-", "");
  await ring.pause(name);
  try {
    await engine.createTenant(tenant, { replicationFactor: 3 });
  } finally {
    await mendRing(ring);
  }
  await expectWhole(tenant);
});
