import { expect, test } from "vitest";
import { isAppError } from "../../common/errors.ts";
import { openEmbeddedSubject } from "../../test/helpers/engines/contract-subject.ts";
import { blobsContract } from "./contract/blobs.ts";
import { again, all, bytes, seedOfRun } from "./contract/harness.ts";
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

test("a change that was given up in the middle shows its version and edges with the next one, or keeps what it drops", async () => {
  const subject = await openEmbeddedSubject(seed);
  const { objects } = subject.store;
  const to = { cid: 2, id: "to" };
  const met = { appeared: 0, kept: 0 };
  for (let i = 0; i < 4_000 && (met.appeared === 0 || met.kept === 0); i++) {
    const key = { cid: 1, id: `o${i}` };
    await again(() => objects.change([{ key, timeUs: 1, birth: true, addEdges: [{ type: "old", to }] }]));
    const [type, drops] = i % 2 === 0 ? ["new", []] : ["other", [{ type: "old", to }]];
    const change = { key, timeUs: 2, cells: new Map([["1", bytes("x")]]), version: bytes("2") };
    const code = await objects.change([{ ...change, addEdges: [{ type, to }], dropEdges: drops }]).then(
      () => undefined,
      (error: unknown) => (isAppError(error) ? error.code : "none"),
    );
    const written = (await again(() => objects.get([key])))[0]?.cells.get("1") !== undefined;
    const types = async () =>
      (await all(10, (page) => objects.edges(key, "out", page))).map((edge) => edge.type).sort();
    const versions = async () => (await all(10, (page) => objects.history(key, {}, page))).length;
    expect([(await types()).includes(type), await versions()]).toEqual(written ? [true, 1] : [false, 0]);
    if (code !== "unknown_outcome") continue;
    if (written && drops.length > 0 && (await types()).includes("old")) met.kept += 1;
    await again(() => objects.change([{ key, timeUs: 3, cells: new Map([["2", bytes("y")]]) }]));
    if (!written && (await types()).includes(type) && (await versions()) === 1) met.appeared += 1;
  }
  await subject.close();
  for (const [fault, count] of Object.entries(met)) expect(count, fault).toBeGreaterThan(0);
});
