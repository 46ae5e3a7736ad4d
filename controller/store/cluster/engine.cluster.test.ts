import { expect, test, beforeAll, afterAll } from "vitest";
import { describeCluster, openTestClusterEngine, type TestClusterEngine } from "../../../test/helpers/cluster.ts";
import type { TenantStore } from "../engine.ts";

describeCluster("cluster engine, first look", () => {
  let engine: TestClusterEngine;
  let store: TenantStore;
  beforeAll(async () => {
    engine = await openTestClusterEngine();
    store = await engine.tenant("matrix");
  });
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  test("kv", async () => {
    const { kv } = store;
    const r = await kv.put("a/1", new Uint8Array([1]), { ifRevision: 0 });
    expect(r.ok).toBe(true);
    const again = await kv.put("a/1", new Uint8Array([1]), { ifRevision: 0 });
    expect(again).toMatchObject({ ok: false, current: { key: "a/1", value: new Uint8Array([1]) } });
    const lease = await kv.lease(5000);
    await kv.put("a/2", new Uint8Array(3), { lease: lease.id });
    await lease.revoke();
    const abort = new AbortController();
    const got: string[] = [];
    for await (const events of kv.watch("a/", { sinceRevision: 0, signal: abort.signal })) {
      for (const e of events) got.push(e.kind + (e.kind === "put" ? e.entry.key : e.key));
      if (got.length >= 3) abort.abort();
    }
    expect(got).toEqual(["puta/1", "puta/2", "deletea/2"]);
    expect((await kv.list("a/")).entries.map((e) => e.key)).toEqual(["a/1"]);
    await expect(kv.put("a/3", new Uint8Array(1), { lease: lease.id })).rejects.toMatchObject({ code: "not_found" });
    for (let i = 0; i < 25; i++) await kv.put(`l/${String(i).padStart(2, "0")}`, new Uint8Array(1));
    const keys: string[] = [];
    let after: string | undefined;
    do {
      const page = await kv.list("l/", { after, limit: 10 });
      keys.push(...page.entries.map((e) => e.key));
      after = page.next;
    } while (after);
    expect(keys.length).toBe(25);
    expect((await (await engine.tenant("second")).kv.list("")).entries).toEqual([]);
  });

  test("entities", async () => {
    const { objects } = store;
    const key = { cid: 7, id: "a:b" };
    await objects.change([{ key, timeUs: 100, birth: true, cells: new Map([["1", Uint8Array.of(1)]]), addTerms: ["c7", "x"], numbers: new Map([[0, 5], [1, -2.5]]), version: Uint8Array.of(9), addEdges: [{ type: "t", to: { cid: 8, id: "z" } }] }]);
    expect((await objects.get([key]))[0]).toMatchObject({ birthUs: 100, lastUs: 100, numbers: [5, -2.5, undefined] });
    expect((await objects.find({ terms: ["c7", "x"] }, { limit: 10 })).items.length).toBe(1);
    expect((await objects.find({ terms: ["c7"], ranges: [{ slot: 0, from: 5 }] }, { limit: 10 })).items.length).toBe(1);
    expect((await objects.find({ terms: [], ranges: [{ slot: 1 }] }, { limit: 10 })).items.length).toBe(1);
    expect((await objects.find({ terms: [], ranges: [{ slot: 1, from: 0 }] }, { limit: 10 })).items.length).toBe(0);
    expect((await objects.edges({ cid: 8, id: "z" }, "in", { limit: 10 })).items).toEqual([{ from: key, type: "t", to: { cid: 8, id: "z" }, timeUs: 100 }]);
    await objects.change([{ key, timeUs: 200, death: true }]);
    expect((await objects.get([key]))[0]).toBeUndefined();
    expect((await objects.find({ terms: ["c7", "x"] }, { limit: 10 })).items.length).toBe(0);
    expect((await objects.history(key, {}, { limit: 10 })).items.length).toBe(1);
    expect((await objects.edges({ cid: 8, id: "z" }, "in", { limit: 10 })).items).toEqual([]);
  });

  test("records", async () => {
    const { objects } = store;
    const ids = Array.from({ length: 100 }, (_, i) => `01JD${String(i).padStart(22, "0")}`);
    await objects.append(ids.map((id, i) => ({ cid: 3, id, value: Uint8Array.of(i), terms: [i % 2 ? "odd" : "even"] })));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await objects.timeline({ cid: 3, fromMs: 0, toMs: 2 ** 47 }, { limit: 17, cursor });
      seen.push(...page.items.map((r) => r.id));
      cursor = page.cursor;
    } while (cursor);
    expect(seen).toEqual([...ids].reverse());
    const odd = await objects.timeline({ cid: 3, fromMs: 0, toMs: 2 ** 47, terms: ["odd"] }, { limit: 100 });
    expect(odd.items.length).toBe(50);
    await objects.removeRecords([{ cid: 3, id: ids[0] ?? "" }]);
    expect((await objects.getRecords([{ cid: 3, id: ids[0] ?? "" }, { cid: 3, id: ids[1] ?? "" }])).map((r) => r?.terms)).toEqual([undefined, ["odd"]]);
  });

  test("blobs", async () => {
    const { blobs } = store;
    const bytes = new Uint8Array(3_500_000).map((_, i) => i % 251);
    const info = await blobs.put([bytes.subarray(0, 10), bytes.subarray(10)], "me");
    expect(await blobs.stat(info.digest)).toEqual({ digest: info.digest, size: bytes.length });
    const read: Uint8Array[] = [];
    for await (const part of blobs.read(info.digest, { start: 1_000_000, end: 3_000_000 })) read.push(part);
    expect(Buffer.concat(read).equals(bytes.subarray(1_000_000, 3_000_000))).toBe(true);
    expect(await blobs.sweep(0)).toBe(0);
    await blobs.unmark(info.digest, "me");
    expect(await blobs.sweep(0)).toBe(1);
    expect(await blobs.stat(info.digest)).toBeUndefined();
    expect(await blobs.append("s", 0, bytes)).toEqual({ size: bytes.length });
    expect(await blobs.append("s", 100, bytes.subarray(100))).toEqual({ size: bytes.length });
    await expect(blobs.append("s", 0, Uint8Array.of(9, 9))).rejects.toMatchObject({ code: "conflict" });
    const part = await blobs.readStream("s", 1_048_570, 100);
    expect(Buffer.from(part.bytes).equals(bytes.subarray(1_048_570, 1_048_670))).toBe(true);
    await blobs.removeStream("s");
    expect(await blobs.readStream("s", 0, 10)).toEqual({ bytes: new Uint8Array(0), size: 0 });
  });

  test("nodes, ready", async () => {
    await engine.ready();
    expect(await engine.nodes()).toMatchObject([{ isup: true, datacenter: "datacenter1", peer: "127.0.0.1" }]);
  });
});
