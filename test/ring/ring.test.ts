import { expect, test } from "vitest";
import { mendRing, openRing } from "../helpers/ring.ts";

test("members of a ring are killed, paused and brought back by name", async () => {
  const ring = await openRing();
  await ring.kill("cassandra-2");
  await ring.kill("etcd-1");
  await ring.pause("etcd-2");
  expect((await ring.alive()).map((daemon) => daemon.name)).toEqual(["etcd-2", "etcd-3", "cassandra-1", "cassandra-3"]);
  await mendRing(ring);
  expect(await ring.alive()).toHaveLength(6);
  expect(await ring.etcdLeader()).toMatch(/^etcd-[123]$/);
});
