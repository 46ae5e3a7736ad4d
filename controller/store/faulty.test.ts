import { expect, test } from "vitest";
import { isAppError } from "../../common/errors.ts";
import { openEmbeddedSubject } from "../../test/helpers/contract-subject.ts";
import { blobsContract } from "./contract/blobs.ts";
import { again, bytes, seedOfRun } from "./contract/harness.ts";
import { kvContract } from "./contract/kv.ts";
import { objectsContract } from "./contract/objects.ts";

const seed = seedOfRun("faulty");
kvContract("faulty", () => openEmbeddedSubject(seed));
objectsContract("faulty", () => openEmbeddedSubject(seed));
blobsContract("faulty", () => openEmbeddedSubject(seed));

test("the faults are really there: outages, lost answers of writes done and not done, empty pages, more found than asked", async () => {
  const subject = await openEmbeddedSubject(seed);
  const { kv, objects } = subject.store;
  const met = { unavailable: 0, done: 0, undone: 0, empty: 0, superset: 0 };
  for (let i = 0; i < 400; i++) {
    const code = await kv.put(`k${i}`, bytes("x")).then(
      () => undefined,
      (error: unknown) => (isAppError(error) ? error.code : "none"),
    );
    const there = (await again(() => kv.get(`k${i}`))) !== undefined;
    if (code === "unavailable") met.unavailable += 1;
    if (code === "unavailable") expect(there).toBe(false);
    if (code === "unknown_outcome") met[there ? "done" : "undone"] += 1;
  }
  const births = ["a", "b"].map((id) => ({
    key: { cid: 1, id },
    timeUs: 1,
    birth: true as const,
    addTerms: ["both", id],
  }));
  await again(() => objects.change(births));
  for (let i = 0; i < 100; i++) {
    const { items, cursor } = await again(() => objects.find({ terms: ["both", "a"] }, { limit: 10 }));
    if (items.length === 0 && cursor !== undefined) met.empty += 1;
    if (items.length === 2) met.superset += 1;
  }
  await subject.close();
  for (const [fault, count] of Object.entries(met)) expect(count, fault).toBeGreaterThan(0);
});
