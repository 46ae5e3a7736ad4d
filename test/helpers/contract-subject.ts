import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ContractSubject } from "../../controller/store/contract/harness.ts";
import { EmbeddedKvStore } from "../../controller/store/embedded/kv.ts";
import { EmbeddedObjectStore } from "../../controller/store/embedded/objects.ts";
import { openEmbeddedEngine } from "../../controller/store/embedded/index.ts";
import { faulty } from "../../controller/store/faulty.ts";
import { seededRandom } from "./clock.ts";
import { TestClock } from "./runtime.ts";

/** The embedded engine with a clock the contract can move; with `faultySeed` behind the faulty wrapper. */
export async function openEmbeddedSubject(faultySeed?: number): Promise<ContractSubject> {
  const dir = await mkdtemp(join(tmpdir(), "odp-contract-"));
  const clock = new TestClock(Date.now());
  const engine = await openEmbeddedEngine({ dir, runtime: { clock, random: seededRandom(Date.now()) } });
  await engine.createTenant("matrix");
  await engine.createTenant("second");
  const seen = faultySeed === undefined ? engine : faulty(engine, { random: seededRandom(faultySeed) });
  const { kv, objects } = await engine.tenant("matrix");
  if (!(kv instanceof EmbeddedKvStore && objects instanceof EmbeddedObjectStore))
    throw new Error("Another engine than expected.");
  return {
    store: await seen.tenant("matrix"),
    other: await seen.tenant("second"),
    clock,
    async advance(ms) {
      clock.advance(ms);
      // What the timers began is before this in the queue of writes.
      await objects.sweep();
    },
    compactKv: () => kv.compact(),
    async close() {
      await engine.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
