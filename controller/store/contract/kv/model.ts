import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import type { KvStore } from "../../kv.ts";
import { again, bytes, put, remove, seedOfRun, text, uniqueName } from "../harness.ts";
import { listAll } from "./reading.ts";

/** Compares the store with a map after random calls, some of them conditional. */
export function kvModelTest(name: string, kv: () => KvStore): void {
  test("behaves like a map under a random sequence of calls", async () => {
    const random = seededRandom(seedOfRun(`KvStore ${name}`));
    const prefix = uniqueName("model") + "/";
    const model = new Map<string, string>();
    for (let step = 0; step < 300; step++) {
      const key = prefix + Math.floor(random.next() * 12);
      await randomStep({ kv: kv(), key, model, value: `step ${step}`, choice: random.next() });
      if (step % 50 === 49) {
        const entries = await listAll(kv(), prefix, 1 + Math.floor(random.next() * 5));
        expect(new Map(entries.map((entry) => [entry.key, text(entry.value)]))).toEqual(model);
      }
    }
  });
}

interface Step {
  readonly kv: KvStore;
  readonly key: string;
  readonly model: Map<string, string>;
  readonly value: string;
  readonly choice: number;
}

async function randomStep({ kv, key, model, value, choice }: Step): Promise<void> {
  if (choice < 0.4) {
    await put(kv, key, bytes(value));
    model.set(key, value);
  } else if (choice < 0.6) {
    await remove(kv, key);
    model.delete(key);
  } else if (choice < 0.8) {
    const { ok } = await put(kv, key, bytes(value), { ifRevision: 0 });
    expect(ok).toBe(!model.has(key));
    if (ok) model.set(key, value);
  } else {
    const entry = await again(() => kv.get(key));
    expect(entry && text(entry.value)).toBe(model.get(key));
  }
}
