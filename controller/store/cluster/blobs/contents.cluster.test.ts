import { afterAll, beforeAll, expect, test } from "vitest";
import { clusterRuntime } from "../../../../test/helpers/cluster/admin.ts";
import {
  clusterSettings,
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";
import { BLOB_CHUNK_MAX_BYTES } from "../../../../common/limits.ts";
import { Cassandra } from "../cassandra/cassandra.ts";
import { keyspaceOf } from "../schema.ts";

const ROUNDS = 25;

describeCluster("contents swept by one controller while another takes the same in", () => {
  let engine: TestClusterEngine;
  let other: TestClusterEngine;
  beforeAll(async () => {
    engine = await openTestClusterEngine({ tenants: ["matrix"] });
    other = await openTestClusterEngine({ prefix: engine.prefix, tenants: [] });
  });
  afterAll(async () => {
    await other?.close();
    await engine?.[Symbol.asyncDispose]();
  });

  test("what was taken in and marked is there afterwards", async () => {
    const [sweeper, taker] = [(await engine.tenant("matrix")).blobs, (await other.tenant("matrix")).blobs];
    const bytes = Uint8Array.from({ length: 5_000 }, (_, i) => i % 256);
    for (let round = 0; round < ROUNDS; round++) {
      const { digest } = await sweeper.put([bytes], "old owner");
      await sweeper.unmark(digest, "old owner");
      await Promise.all([sweeper.sweep(0), taker.put([bytes], "new owner")]);
      const read: Uint8Array[] = [];
      for await (const piece of sweeper.read(digest)) read.push(piece);
      expect(Buffer.concat(read).equals(bytes), `round ${round}`).toBe(true);
      await taker.unmark(digest, "new owner");
      await sweeper.sweep(0);
      expect(await taker.stat(digest), `round ${round}`).toBeUndefined();
    }
  });
});

describeCluster("a content with a flipped byte", () => {
  test("is read up to the chunk that has it, and fails there", async () => {
    await using engine = await openTestClusterEngine({ tenants: ["matrix"] });
    const { blobs } = await engine.tenant("matrix");
    const { digest } = await blobs.put([new Uint8Array(BLOB_CHUNK_MAX_BYTES + 10)], "owner");
    await flip(`${keyspaceOf(engine.prefix, "matrix")}.chunks`, 1);
    const read: Uint8Array[] = [];
    const reading = (async () => {
      for await (const piece of blobs.read(digest)) read.push(piece);
    })();
    await expect(reading).rejects.toMatchObject({ message: expect.stringContaining("damaged") as string });
    expect(Buffer.concat(read).length).toBe(BLOB_CHUNK_MAX_BYTES);
  });
});

/** Flips the first bit of a chunk of the only content in the table. */
async function flip(table: string, part: number): Promise<void> {
  const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
  const cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  const rows = await cassandra.read(
    { query: `SELECT content, part, bytes FROM ${table}`, params: [] },
    cassandra.deadline(),
  );
  const row = rows.find((one) => one.part === part);
  const bytes = Buffer.from(row?.bytes as Buffer);
  bytes.writeUInt8(bytes.readUInt8(0) ^ 1, 0);
  const query = `UPDATE ${table} SET bytes = ? WHERE content = ? AND part = ? AND position = 0`;
  await cassandra.write([{ query, params: [bytes, row?.content, part] }], cassandra.deadline());
  await cassandra.close();
}
