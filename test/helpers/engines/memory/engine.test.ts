import { blobsContract } from "../../../../controller/store/contract/blobs.ts";
import type { ContractSubject } from "../../../../controller/store/contract/harness.ts";
import { kvContract } from "../../../../controller/store/contract/kv.ts";
import { objectsContract } from "../../../../controller/store/contract/objects.ts";
import { shiftedClock } from "../../time/clock.ts";
import { AT_ONCE, MemoryDatabase } from "./engine.ts";
import { MemoryKvStore } from "./kv.ts";
import { TestClock } from "../../time/runtime.ts";

/** The store of the simulation must pass the contract of the real ones. */
async function openMemorySubject(): Promise<ContractSubject> {
  const clock = new TestClock(Date.now());
  const database = new MemoryDatabase(clock);
  database.create("matrix");
  database.create("second");
  const engine = database.engine({ clock });
  return {
    at(offsetMs) {
      const state = database.tenant("matrix").kv;
      return new MemoryKvStore({ state, call: AT_ONCE, clock: shiftedClock(clock, offsetMs) });
    },
    store: await engine.tenant("matrix"),
    other: await engine.tenant("second"),
    clock,
    async advance(ms) {
      // In small steps, so that leases are renewed in between.
      for (let step = 0; step < 100; step++) {
        clock.advance(ms / 100);
        await Promise.resolve();
      }
    },
    compactKv: () => Promise.resolve(database.tenant("matrix").kv.compact()),
    close: () => Promise.resolve(),
  };
}

kvContract("memory", openMemorySubject);
objectsContract("memory", openMemorySubject);
blobsContract("memory", openMemorySubject);
