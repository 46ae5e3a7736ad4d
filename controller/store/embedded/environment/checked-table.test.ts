import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { openEmbeddedEngine } from "../index.ts";
import type { CheckedRow } from "./checked-table.ts";
import { valueLength, ValueReader, withChecksum } from "./checksums.ts";
import { Environment, type CheckedTableName } from "./environment.ts";
import { textBytes } from "../bytes/keys.ts";

const BOX = { cid: 2, id: "box" };
const runtime = { clock: realClock, random: seededRandom(1) };
const bytes = (text: string): Uint8Array => Buffer.from(text);

let dir: string;
beforeEach(async () => {
  dir = await storeFolder("odp-checked-");
  await withEngine(async ({ kv, objects }) => {
    await kv.put("a", bytes("one"));
    await objects.change([
      { key: BOX, timeUs: 10, birth: true, cells: new Map([["17", bytes("red")]]), version: bytes("first") },
    ]);
  });
});
afterEach(() => rm(dir, { recursive: true }));

type Store = Awaited<ReturnType<Awaited<ReturnType<typeof openEmbeddedEngine>>["tenant"]>>;

async function withEngine<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const engine = await openEmbeddedEngine({ dir, runtime });
  try {
    await engine.createTenant("matrix");
    return await work(await engine.tenant("matrix"));
  } finally {
    await engine.close();
  }
}

/** Changes the tables directly, without the store. */
async function withTables<T>(work: (env: Environment) => T): Promise<T> {
  const env = new Environment(join(dir, "tenants", "matrix", "lmdb"), realClock);
  try {
    return await env.write(() => work(env));
  } finally {
    await env.close();
  }
}

/** Flips one bit of a text in the first value. */
function damage(table: CheckedTableName, text: string): Promise<void> {
  return withTables(({ tables }) => {
    const [row] = [...tables[table].rows({ start: Uint8Array.of(0) })];
    const value = Buffer.from(row!.value);
    value[value.indexOf(text)]! ^= 1;
    tables[table].put(row!.key, value, false);
  });
}

function rowsOf(table: CheckedTableName): Promise<readonly CheckedRow[]> {
  return withTables(({ tables }) => [...tables[table].rows({ start: Uint8Array.of(0) })]);
}

test("every value has a checksum, but the format that earlier versions read", async () => {
  for (const table of ["kv", "kvlog", "objects", "history"] as const)
    expect((await rowsOf(table)).map(({ isSound }) => isSound)).toEqual([true]);
  const meta = (await rowsOf("meta")).map(({ key, isSound }) => [Buffer.from(key).toString(), isSound]);
  expect(meta).toEqual([
    ["checked", true],
    ["format", undefined],
    ["kvstate", true],
  ]);
});

test("a value is sound under its own key alone, with each of its bits, and not when its checksum is cut off", () => {
  const [key, value] = [textBytes("key"), bytes("\u0001value")];
  const reader = new ValueReader();
  const isSound = (stored: Uint8Array, under = key) =>
    reader.isSound(under, reader.read(stored, Buffer.alloc(valueLength(stored))));
  const stored = withChecksum(key, value);
  expect(isSound(stored)).toBe(true);
  expect(isSound(stored, textBytes("kez"))).toBe(false);
  expect(isSound(value)).toBe(undefined);
  for (let bit = 0; bit < 8 * stored.length; bit += 1) {
    const changed = Buffer.from(stored);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    // The highest bit of the first byte means that there is a checksum.
    expect(isSound(changed)).toBe(bit === 7 ? undefined : false);
  }
  for (let length = 1; length < stored.length; length += 1) expect(isSound(stored.subarray(0, length))).toBe(false);
});

test("an entry of the KvStore whose checksum is wrong is refused, and another value heals it", async () => {
  await damage("kv", "one");
  await withEngine(async ({ kv }) => {
    await expect(kv.get("a")).rejects.toMatchObject({ code: "unavailable", details: { reason: "damaged" } });
    await kv.put("a", bytes("two"));
    expect(Buffer.from((await kv.get("a"))!.value).toString()).toBe("two");
  });
});

test("what is made of a damaged entity or version stays damaged", async () => {
  await damage("objects", "red");
  await damage("history", "first");
  await withEngine(({ objects }) =>
    objects.change([
      { key: BOX, timeUs: 20, cells: new Map([["18", bytes("blue")]]), version: bytes("second") },
      { key: BOX, timeUs: 20, endVersionsAtMs: Date.now() + 1e6 },
    ]),
  );
  expect((await rowsOf("objects")).map(({ isSound }) => isSound)).toEqual([false]);
  expect((await rowsOf("history")).map(({ isSound }) => isSound)).toEqual([true, false]);
});
