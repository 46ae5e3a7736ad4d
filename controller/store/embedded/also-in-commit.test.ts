import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BLOB_ROW_MAX_BYTES, CHANGE_SLICE_MAX } from "../../../common/limits.ts";
import { storeFolder } from "../../../test/helpers/runs/folders.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";
import { encodeJson } from "../format.ts";
import type { AlsoInCommit } from "../also-in-commit.ts";
import type { EntityChange } from "../objects.ts";
import type { TenantStore } from "../engine.ts";
import { openEmbeddedEngine, type EmbeddedEngine } from "./index.ts";

/** Writes of the other seams in the commit of a change of objects. */

const KEY = "files/sequence/1";
const bytes = Buffer.from("small");
const digest = createHash("sha256").update(bytes).digest("hex");

let dir: string;
let engine: EmbeddedEngine;
let store: TenantStore;
let refusals: number;

beforeEach(async () => {
  dir = await storeFolder("odp-also-");
  engine = await openEmbeddedEngine({ dir, runtime: { clock: new TestClock(), random: seededRandom(1) } });
  await engine.createTenant("matrix");
  store = await engine.tenant("matrix");
  refusals = 0;
});

afterEach(async () => {
  await engine.close();
  await rm(dir, { recursive: true, force: true });
});

const born = (id: string): EntityChange => ({ key: { cid: 1, id }, timeUs: 1, birth: true });

const also = (
  revision: number,
  content: AlsoInCommit["content"] = { digest, bytes, owner: "file/a" },
): AlsoInCommit => ({
  kv: { if: [{ key: KEY, revision }], then: [{ kind: "put", key: KEY, value: encodeJson(1) }] },
  content,
  unmet: () => void (refusals += 1),
  failed: () => undefined,
});

const change = (changes: readonly EntityChange[], given: AlsoInCommit): Promise<void> =>
  store.objects.change(changes, { records: () => [], failed: () => undefined, also: given });

async function state(id: string): Promise<readonly boolean[]> {
  const [entity] = await store.objects.get([{ cid: 1, id }]);
  return [
    entity !== undefined,
    (await store.kv.get(KEY)) !== undefined,
    (await store.blobs.stat(digest)) !== undefined,
  ];
}

test("all of them are made, and the content is kept by its mark", async () => {
  await change([born("a")], also(0));
  expect(await state("a")).toEqual([true, true, true]);
  await store.blobs.sweep(0);
  await store.blobs.unmark(digest, "file/a");
  expect(await state("a")).toEqual([true, true, true]);
  await store.blobs.sweep(0);
  expect(await state("a")).toEqual([true, true, false]);
});

test("nothing is written if a condition does not hold", async () => {
  await expect(change([born("a")], also(7))).rejects.toMatchObject({ code: "conflict" });
  expect([refusals, ...(await state("a"))]).toEqual([1, false, false, false]);
});

test("a watch sees the write of a key", async () => {
  const over = new AbortController();
  const events = store.kv.watch("files/", { sinceRevision: 0, signal: over.signal })[Symbol.asyncIterator]();
  const next = events.next();
  await change([born("a")], also(0));
  expect((await next).value).toMatchObject([{ kind: "put", entry: { key: KEY } }]);
  over.abort();
  await events.return?.();
});

test("a sweep spares a content that is stored again while it is swept", async () => {
  await store.blobs.put([bytes], "before");
  await store.blobs.unmark(digest, "before");
  const swept = store.blobs.sweep(0);
  await change([born("a")], also(0));
  await swept;
  expect(await state("a")).toEqual([true, true, true]);
});

test("a content that is no row and changes of several commits are refused", async () => {
  const large = { digest, bytes: new Uint8Array(BLOB_ROW_MAX_BYTES + 1), owner: "file/a" };
  const many = Array.from({ length: CHANGE_SLICE_MAX + 1 }, (_, at) => born(`e${String(at)}`));
  await expect(change([born("a")], also(0, large))).rejects.toMatchObject({ code: "invalid" });
  await expect(change(many, also(0))).rejects.toMatchObject({ code: "invalid" });
  expect(await state("a")).toEqual([false, false, false]);
});
