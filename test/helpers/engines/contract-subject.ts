import { rm } from "node:fs/promises";
import type { ContractSubject } from "../../../controller/store/contract/harness.ts";
import { EmbeddedKvStore } from "../../../controller/store/embedded/kv/kv.ts";
import { EmbeddedObjectStore } from "../../../controller/store/embedded/objects.ts";
import { openEmbeddedEngine } from "../../../controller/store/embedded/index.ts";
import { faulty, faultyStore } from "../../../controller/store/faulty.ts";
import { seededRandom } from "../time/clock.ts";
import type { KvStore } from "../../../controller/store/kv.ts";
import { TestClock } from "../time/runtime.ts";
import { wrappedKv } from "./wrapped-kv.ts";
import { storeFolder } from "../runs/folders.ts";

/** A clock whose time of day can be set. */
class JumpingClock extends TestClock {
  #offsetMs = 0;

  override nowMs(): number {
    return super.nowMs() + this.#offsetMs;
  }

  /** The offset applies until `action` first waits, because every store call reads the time of day when it begins. */
  during<T>(offsetMs: number, action: () => T): T {
    this.#offsetMs = offsetMs;
    try {
      return action();
    } finally {
      this.#offsetMs = 0;
    }
  }
}

/** An embedded store has one controller, so its clock is set for every call and reset afterwards. */
function atTimeOfDay(kv: KvStore, clock: JumpingClock, offsetMs: number): KvStore {
  return wrappedKv(kv, {
    get: (key) => clock.during(offsetMs, () => kv.get(key)),
    put: (key, value, options) => clock.during(offsetMs, () => kv.put(key, value, options)),
    delete: (key, options) => clock.during(offsetMs, () => kv.delete(key, options)),
    list: (prefix, options) => clock.during(offsetMs, () => kv.list(prefix, options)),
    txn: (request) => clock.during(offsetMs, () => kv.txn(request)),
  });
}

/** The embedded engine with a clock that the contract can move. With `faultySeed`, behind the faulty wrapper. */
export async function openEmbeddedSubject(faultySeed?: number): Promise<ContractSubject> {
  const dir = await storeFolder("odp-contract-");
  const clock = new JumpingClock(Date.now());
  const engine = await openEmbeddedEngine({ dir, runtime: { clock, random: seededRandom(Date.now()) } });
  await engine.createTenant("matrix");
  await engine.createTenant("second");
  const faults = faultySeed === undefined ? undefined : { random: seededRandom(faultySeed) };
  const seen = faults === undefined ? engine : faulty(engine, faults);
  const inner = await engine.tenant("matrix");
  const { kv, objects } = inner;
  if (!(kv instanceof EmbeddedKvStore && objects instanceof EmbeddedObjectStore))
    throw new Error("Another engine than expected.");
  return {
    store: await seen.tenant("matrix"),
    other: await seen.tenant("second"),
    clock,
    at(offsetMs) {
      const there = { ...inner, kv: atTimeOfDay(kv, clock, offsetMs) };
      return (faults === undefined ? there : faultyStore(there, faults)).kv;
    },
    async advance(ms) {
      clock.advance(ms);
      // The sweep is queued after all writes that the timers started.
      await objects.sweep();
    },
    compactKv: () => kv.compact(),
    async close() {
      await engine.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
