import { expect, test } from "vitest";
import { mendRing, openRing } from "../helpers/cluster/ring.ts";

test("members of a ring are killed, paused and brought back by name", async () => {
  const ring = await openRing();
  const names = ring.members.map(({ name }) => name);
  await ring.kill("cassandra-2");
  await ring.kill("etcd-1");
  await ring.pause("etcd-2");
  expect((await ring.alive()).map((daemon) => daemon.name)).toEqual(
    names.filter((name) => name !== "etcd-1" && name !== "cassandra-2"),
  );
  await mendRing(ring);
  expect((await ring.alive()).map((daemon) => daemon.name)).toEqual(names);
  expect(names.filter((name) => name.startsWith("etcd-"))).toContain(await ring.etcdLeader());
});
