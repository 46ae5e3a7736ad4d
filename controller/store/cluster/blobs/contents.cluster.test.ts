import { afterAll, beforeAll, expect, test } from "vitest";
import {
  describeCluster,
  openTestClusterEngine,
  type TestClusterEngine,
} from "../../../../test/helpers/cluster/cluster.ts";

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
