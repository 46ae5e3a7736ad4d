import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  BLOB_ROW_MAX_BYTES,
  CHANGE_BATCH_MAX,
  EXPIRY_SWEEP_EVERY_MS,
  KV_LOG_MAX_ENTRIES,
  KV_SWEEP_EVERY_MS,
  OBJECT_TOMBSTONE_KEEP_MS,
} from "../../../common/limits.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { disagreements } from "../../../test/tools/crash/verify.ts";
import { encodePacked } from "../format.ts";
import type { KvEvent, KvStore } from "../kv.ts";
import { Environment } from "./environment/environment.ts";
import { openEmbeddedEngine, type EmbeddedEngine } from "./index.ts";
import { textBytes } from "./bytes/keys.ts";
import { storeFolder } from "../../../test/helpers/runs/folders.ts";

let dir: string;
let clock: SleepyClock;
const engines: EmbeddedEngine[] = [];

/** A clock like that of a stopped process: time has passed before any timer runs. */
class SleepyClock extends TestClock {
  #sleptMs = 0;

  sleepThrough(ms: number): void {
    this.#sleptMs += ms;
  }

  override monotonicMs(): number {
    return super.monotonicMs() + this.#sleptMs;
  }
}

beforeEach(async () => {
  dir = await storeFolder("odp-embedded-");
  clock = new SleepyClock();
});

afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
  await rm(dir, { recursive: true, force: true });
});

async function open(): Promise<EmbeddedEngine> {
  const engine = await openEmbeddedEngine({
    dir,
    runtime: { clock, random: seededRandom(Math.floor(Math.random() * 1e9)) },
  });
  engines.push(engine);
  await engine.createTenant("matrix");
  return engine;
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("one controller per folder", () => {
  test("a second one is refused while the first lives, and let in after it", async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining(`process ${process.pid}`),
    });
    await first.close();
    await open();
  });

  test("the lock of a process that is gone is taken over, also when its number is in use again", async () => {
    await (await open()).close();
    const path = join(dir, "controller.lock");
    await writeFile(path, JSON.stringify({ pid: 2 ** 22 + 1, started: "1", boot: "x" }));
    await (await open()).close();
    await writeFile(path, JSON.stringify({ pid: process.pid, started: "1", boot: "x" }));
    await (await open()).close();
    await writeFile(path, "torn");
    await open();
    expect(JSON.parse(await readFile(path, "utf8"))).toMatchObject({ pid: process.pid });
  });
});

describe("tenants", () => {
  test("must have been created, have proper names, and go wholly", async () => {
    const engine = await open();
    await expect(engine.tenant("nobody")).rejects.toMatchObject({ code: "not_found" });
    for (const name of ["", "A", "../up", "a".repeat(49), "1a"])
      await expect(engine.createTenant(name)).rejects.toMatchObject({ code: "invalid" });
    await (await engine.tenant("matrix")).kv.put("a", bytes("1"));
    await engine.createTenant("matrix");
    expect(await (await engine.tenant("matrix")).kv.get("a")).toBeDefined();
    await engine.dropTenant("matrix");
    await engine.dropTenant("matrix");
    await expect(engine.tenant("matrix")).rejects.toMatchObject({ code: "not_found" });
    await expect(stat(join(dir, "tenants", "matrix"))).rejects.toMatchObject({ code: "ENOENT" });
    await engine.createTenant("matrix");
    expect(await (await engine.tenant("matrix")).kv.get("a")).toBeUndefined();
  });

  test("that are released are closed here and have all they held when they are asked for again", async () => {
    const engine = await open();
    const before = await engine.tenant("matrix");
    await before.kv.put("a", bytes("1"));
    await engine.releaseTenant("matrix");
    await engine.releaseTenant("matrix");
    const after = await engine.tenant("matrix");
    expect(after).not.toBe(before);
    expect(await after.kv.get("a")).toBeDefined();
  });

  test("a format of a later version is refused, and left as it is", async () => {
    const engine = await open();
    await (await engine.tenant("matrix")).kv.put("a", bytes("1"));
    await engine.close();
    const env = new Environment(join(dir, "tenants", "matrix", "lmdb"), clock);
    await env.write(() => env.tables.meta.put(textBytes("format"), encodePacked(99)));
    await env.close();
    await expect(open()).rejects.toMatchObject({ code: "unsupported", message: expect.stringContaining("99") });
  });

  test("what was written is there after closing and opening", async () => {
    const engine = await open();
    const { kv, objects, blobs } = await engine.tenant("matrix");
    await kv.put("a", bytes("1"));
    await objects.change([{ key: { cid: 1, id: "o" }, timeUs: 1, birth: true, addTerms: ["t"] }]);
    const { digest } = await blobs.put([bytes("content")], "owner");
    await engine.close();
    await expect(kv.get("a")).rejects.toMatchObject({ code: "unavailable" });
    const again = await (await open()).tenant("matrix");
    expect(await again.kv.get("a")).toBeDefined();
    expect((await again.objects.find({ terms: ["t"] }, { limit: 5 })).items).toHaveLength(1);
    expect(await again.blobs.stat(digest)).toEqual({ digest, size: 7 });
  });
});

describe("leases", () => {
  test("end with the process that held them: at the next open, with their entries and events", async () => {
    const first = await open();
    const { kv } = await first.tenant("matrix");
    const lease = await kv.lease(60_000);
    const written = await kv.put("bound", bytes("1"), { lease: lease.id });
    await first.close();
    expect(lease.lost.aborted).toBe(true);
    const later = (await (await open()).tenant("matrix")).kv;
    expect(await later.get("bound")).toBeUndefined();
    const abort = new AbortController();
    for await (const events of later.watch("", {
      sinceRevision: written.ok ? written.revision : 0,
      signal: abort.signal,
    })) {
      expect(events).toMatchObject([{ kind: "delete", key: "bound" }]);
      abort.abort();
    }
  });

  test("end when the process was stopped for longer than they last", async () => {
    const { kv } = await (await open()).tenant("matrix");
    const lease = await kv.lease(3_000);
    await kv.put("bound", bytes("1"), { lease: lease.id });
    clock.advance(9_000);
    expect(lease.lost.aborted).toBe(false);
    clock.sleepThrough(10_000);
    clock.advance(1_000);
    expect(lease.lost.aborted).toBe(true);
    await kv.put("behind it in the queue", bytes("2"));
    expect(await kv.get("bound")).toBeUndefined();
  });
});

test("the log of changes is bounded: whoever is further behind lists again", async () => {
  const { kv } = await (await open()).tenant("matrix");
  const writes = Array.from({ length: Math.ceil(KV_LOG_MAX_ENTRIES * 1.2) }, (_, i) =>
    kv.put(`k${i % 10}`, bytes(String(i))),
  );
  await Promise.all(writes);
  const { revision } = await kv.list("");
  expect(revision).toBe(writes.length);
  const next = (since: number) =>
    kv.watch("", { sinceRevision: since, signal: new AbortController().signal })[Symbol.asyncIterator]().next();
  await expect(next(0)).rejects.toMatchObject({ code: "compacted" });
  const recent = await next(revision - KV_LOG_MAX_ENTRIES + 1);
  expect(recent.value?.[0]).toMatchObject({ entry: { revision: revision - KV_LOG_MAX_ENTRIES + 2 } });
});

describe("clearing up", () => {
  test("what has vanished leaves the tables by itself, removals are forgotten in the end", async () => {
    const engine = await open();
    const { objects } = await engine.tenant("matrix");
    const expiresAtMs = clock.nowMs() + 1_000;
    const key = { cid: 1, id: "brief" };
    await objects.change([
      {
        key,
        timeUs: 1,
        birth: true,
        cells: new Map([["1", bytes("x")]]),
        addTerms: ["t"],
        numbers: new Map([[0, 1]]),
        addEdges: [{ type: "e", to: key }],
        version: bytes("v"),
        expiresAtMs,
      },
    ]);
    await objects.change([
      { key: { cid: 1, id: "dead" }, timeUs: 1, birth: true, addTerms: ["t"] },
      { key: { cid: 1, id: "dead" }, timeUs: 2, death: true },
    ]);
    await objects.append([{ cid: 2, id: "01ARZ3NDEKTSV4RRFFQ69G5FAV", value: bytes("r"), terms: ["t"], expiresAtMs }]);
    await objects.removeRecords([{ cid: 2, id: "01ARZ3NDEKTSV4RRFFQ69G5FAW" }]);
    for (const ms of [
      EXPIRY_SWEEP_EVERY_MS,
      OBJECT_TOMBSTONE_KEEP_MS + EXPIRY_SWEEP_EVERY_MS,
      OBJECT_TOMBSTONE_KEEP_MS + EXPIRY_SWEEP_EVERY_MS,
    ]) {
      clock.advance(ms);
      // Queued after the sweep.
      await objects.change([{ key: { cid: 3, id: "lasting" }, timeUs: 1, birth: true }]);
    }
    await engine.close();
    const env = new Environment(join(dir, "tenants", "matrix", "lmdb"), clock);
    const left = (
      ["objects", "history", "edgesOut", "edgesIn", "terms", "numbers", "records", "recordTerms", "expiry"] as const
    ).map((table) => [
      table,
      env.tables[table].getKeysCount({ start: table === "terms" ? "\u0000" : Uint8Array.of(0) }),
    ]);
    const findings = disagreements(env);
    await env.close();
    expect(Object.fromEntries(left)).toEqual({
      objects: 1,
      history: 0,
      edgesOut: 0,
      edgesIn: 0,
      terms: 0,
      numbers: 0,
      records: 0,
      recordTerms: 0,
      expiry: 0,
    });
    expect(findings).toEqual([]);
  });

  test("a removal is remembered for a while, so that an older write that comes late brings nothing back", async () => {
    const { objects } = await (await open()).tenant("matrix");
    const key = { cid: 1, id: "o" };
    await objects.change([
      { key, timeUs: 5, birth: true },
      { key, timeUs: 9, death: true },
    ]);
    clock.advance(OBJECT_TOMBSTONE_KEEP_MS - 1_000);
    await objects.change([{ key, timeUs: 7, birth: true }]);
    expect(await objects.get([key])).toEqual([undefined]);
  });
});

describe("entries that expire", () => {
  async function firstEvents(kv: KvStore, sinceRevision: number): Promise<readonly KvEvent[] | undefined> {
    for await (const events of kv.watch("", { sinceRevision, signal: new AbortController().signal })) return events;
    return undefined;
  }

  test("keep their moment over closing and opening, also in the history of changes", async () => {
    const expiresAtMs = clock.nowMs() + 60_000;
    const first = await open();
    await (await first.tenant("matrix")).kv.put("a", bytes("1"), { expiresAtMs });
    await first.close();
    const { kv } = await (await open()).tenant("matrix");
    expect(await kv.get("a")).toMatchObject({ value: bytes("1"), expiresAtMs });
    expect(await firstEvents(kv, 0)).toMatchObject([{ kind: "put", entry: { value: bytes("1"), expiresAtMs } }]);
    clock.advance(60_000);
    expect(await kv.get("a")).toBeUndefined();
  });

  test("go by a sweep when they are not read, and a watcher who waits is told", async () => {
    const { kv } = await (await open()).tenant("matrix");
    const written = await kv.put("a", bytes("1"), { expiresAtMs: clock.nowMs() + 1_000 });
    await kv.put("b", bytes("2"));
    const { revision } = await kv.list("");
    expect(written).toMatchObject({ ok: true, revision: revision - 1 });
    const told = firstEvents(kv, revision);
    clock.advance(KV_SWEEP_EVERY_MS);
    expect(await told).toEqual([{ kind: "delete", key: "a", revision: revision + 1 }]);
  });

  test("cost no write to read before their moment", async () => {
    const { kv } = await (await open()).tenant("matrix");
    await kv.put("a", bytes("1"), { expiresAtMs: clock.nowMs() + 1_000 });
    const deadlines = vi.spyOn(clock, "after");
    await Promise.all([kv.get("a"), kv.get("absent"), kv.list("")]);
    // Only a write has a deadline.
    expect(deadlines).not.toHaveBeenCalled();
    clock.advance(1_000);
    expect(await kv.get("a")).toBeUndefined();
    expect(deadlines).toHaveBeenCalledOnce();
  });

  test("a lease that has ended refuses a put over an expired entry, and nothing else happens", async () => {
    const { kv } = await (await open()).tenant("matrix");
    const lease = await kv.lease(5_000);
    await lease.revoke();
    await kv.put("a", bytes("1"), { expiresAtMs: clock.nowMs() + 1_000 });
    const { revision } = await kv.list("");
    clock.advance(1_000);
    const operation = { kind: "put" as const, key: "a", value: bytes("2"), lease: lease.id };
    await expect(kv.put("a", bytes("2"), { lease: lease.id })).rejects.toMatchObject({ code: "not_found" });
    await expect(kv.txn({ if: [], then: [operation] })).rejects.toMatchObject({ code: "not_found" });
    expect((await kv.put("b", bytes("3"))).ok && (await kv.get("b"))?.revision).toBe(revision + 1);
    const late = await kv.put("a", bytes("2"), { lease: lease.id, ifRevision: revision });
    expect(late).toEqual({ ok: false, current: undefined });
  });

  test("entries of versions without expiry are read, listed, watched and fenced as they were", async () => {
    const before = await open();
    await (await before.tenant("matrix")).kv.put("other", bytes("0"));
    await before.close();
    const env = new Environment(join(dir, "tenants", "matrix", "lmdb"), clock);
    const stored = encodePacked(["old", 1, 1, null, bytes("1")]);
    await env.write(() => {
      env.tables.kv.put(textBytes("old"), stored);
      env.tables.kvlog.put(Buffer.from("000000000000000100000000", "hex"), stored);
    });
    await env.close();
    const { kv } = await (await open()).tenant("matrix");
    const old = { key: "old", value: bytes("1"), createRevision: 1, revision: 1 };
    expect(await kv.get("old")).toEqual(old);
    expect((await kv.list("old")).entries).toEqual([old]);
    expect(await firstEvents(kv, 0)).toMatchObject([{ kind: "put", entry: old }]);
    expect((await kv.put("old", bytes("2"), { ifRevision: 1, expiresAtMs: clock.nowMs() + 1 })).ok).toBe(true);
    expect(await kv.get("old")).toMatchObject({ createRevision: 1, expiresAtMs: clock.nowMs() + 1 });
  });
});

test("content that was damaged on the disk is not handed out", async () => {
  const { blobs } = await (await open()).tenant("matrix");
  const { digest } = await blobs.put([bytes("precious content".repeat(BLOB_ROW_MAX_BYTES / 16)), bytes("!")], "owner");
  const path = join(dir, "tenants", "matrix", "blobs", "contents", digest.slice(0, 2), digest);
  const file = await readFile(path);
  file[3] = file[3]! ^ 1;
  await writeFile(path, file);
  await expect(blobs.read(digest)[Symbol.asyncIterator]().next()).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("damaged"),
  });
});

test("a range of thousands of numbers is walked where far more objects bear the terms", async () => {
  const { objects } = await (await open()).tenant("matrix");
  const [all, late] = [4_800, 1_100];
  for (let from = 0; from < all; from += CHANGE_BATCH_MAX) {
    await objects.change(
      Array.from({ length: Math.min(CHANGE_BATCH_MAX, all - from) }, (_, at) => ({
        ...{ key: { cid: 1, id: `run-${from + at}` }, timeUs: 1, birth: true as const, addTerms: ["c1"] },
        numbers: new Map([[1, from + at]]),
      })),
    );
  }
  const since = (from: number) => ({ terms: ["c1"], ranges: [{ slot: 1, from }] });
  expect(await objects.estimate(since(all - late))).toEqual({
    terms: [{ term: "c1", count: all, isRead: false }],
    range: late,
  });
  const found = new Set<string>();
  let cursor: string | undefined;
  do {
    const page = await objects.find(since(all - late), { limit: 500, ...(cursor === undefined ? {} : { cursor }) });
    for (const { key } of page.items) found.add(key.id);
    cursor = page.cursor;
  } while (cursor !== undefined);
  expect([found.size, found.has(`run-${all - late}`), found.has(`run-${all - late - 1}`)]).toEqual([late, true, false]);
  // A range with a large part of the entities saves less than counting it costs.
  expect((await objects.estimate(since(all / 2))).range).toBeUndefined();
});
