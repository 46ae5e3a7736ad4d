import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { ObjectService } from "../../controller/areas/objects/index.ts";
import type { TenantStore } from "../../controller/store/engine.ts";
import type { DamagedRow } from "../../controller/store/scrub.ts";
import { checkStore, openEmbeddedEngine, type EmbeddedEngine } from "../../controller/store/embedded/index.ts";
import { Environment } from "../../controller/store/embedded/environment/environment.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { storeFolder } from "../helpers/runs/folders.ts";
import { TestClock, testPrincipal, testRuntime } from "../helpers/time/runtime.ts";
import { unpackFolder } from "./archive.ts";
import { visibleObjects } from "../../controller/areas/query/index.ts";

const VERSIONS = ["13059a9", "ae85b99"];
const MINUTE_MS = 60_000;
const admin = testPrincipal();
const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString();

interface Made {
  readonly madeMs: number;
  readonly updatedMs: number;
}

interface Kept extends Made {
  readonly dir: string;
  readonly clock: TestClock;
  readonly engine: EmbeddedEngine;
  readonly objects: ObjectService;
}

const runtime = { clock: new TestClock(), random: seededRandom(1) };
const dataOf = (dir: string): string => join(dir, "tenants", "matrix", "lmdb", "data.mdb");

/** Damaged rows that a whole round of the row check finds. */
async function everyRow(
  { scrub }: Pick<TenantStore, "scrub">,
  first: { readonly isPassing?: boolean } = {},
): Promise<readonly DamagedRow[]> {
  const found: DamagedRow[] = [];
  let cursor: string | undefined;
  do {
    const page = await scrub.rows(cursor === undefined ? first : { cursor });
    found.push(...page.damaged);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

async function stateOf(dir: string): Promise<{ readonly format: number; readonly isAllChecked: boolean }> {
  const env = new Environment(dirname(dataOf(dir)), runtime.clock);
  const { format, isAllChecked } = env;
  await env.close();
  return { format, isAllChecked };
}

/** Flips one bit at each occurrence of the text. */
function flipAll(file: Buffer, value: string): void {
  for (let at = file.indexOf(value); at >= 0; at = file.indexOf(value, at + 1)) file[at]! ^= 1;
}

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

async function unpacked(version: string): Promise<string> {
  const dir = await storeFolder("odp-kept-");
  folders.push(dir);
  await unpackFolder(await readFile(join(import.meta.dirname, `${version}.json.br`)), dir);
  return dir;
}

/** Opens a kept copy with this version, `afterMs` after it was made, and returns its folder. */
async function opened(version: string, afterMs: number, work: (kept: Kept) => Promise<void>): Promise<string> {
  const dir = await unpacked(version);
  const made = JSON.parse(await readFile(join(import.meta.dirname, `${version}.json`), "utf8")) as Made;
  const clock = new TestClock(made.madeMs + afterMs);
  const engine = await openEmbeddedEngine({ dir, runtime: { clock, random: seededRandom(1) } });
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: testRuntime(clock) });
  try {
    await work({ dir, clock, engine, objects, ...made });
  } finally {
    await objects.close();
    await engine.close();
  }
  return dir;
}

describe.each(VERSIONS)("a store made by %s", (version) => {
  test("is opened by this version, and everything is found", async () => {
    const dir = await opened(version, 31 * MINUTE_MS, async ({ engine, objects, updatedMs }) => {
      const [first, second, removed] = await objects.unrestricted.get(admin, [
        { id: "box:b00" },
        { id: "box:b01" },
        { id: "box:b39" },
      ]);
      expect([first?.values, second?.values, removed]).toMatchObject([
        { color: "green", size: 0 },
        { color: "blue", size: 1 },
        undefined,
      ]);
      expect(await objects.unrestricted.get(admin, [{ id: "mortal:1" }])).toMatchObject([
        { values: { name: "1", color: "blue", size: 1 }, vtimeMs: updatedMs },
      ]);
      const { kv, blobs, objects: store } = await engine.tenant("matrix");
      const cid = first?.class.cid ?? 0;
      const edges = await store.edges({ cid, id: "b00" }, "out", { limit: 10 });
      expect(edges.items.map(({ to }) => to)).toEqual([{ cid, id: "b01" }]);
      expect((await store.history({ cid, id: "b00" }, {}, { limit: 10 })).items).toHaveLength(2);
      const line = (await objects.catalog(admin)).get("/matrix/line")?.cid ?? 0;
      expect(await store.countRecords({ cid: line, fromMs: 0, toMs: 1e15 })).toEqual({ count: 60 });
      expect(await store.countClass(`c${cid}`)).toEqual({ count: 39 });
      expect([text((await kv.get("kept/plain"))?.value), text((await kv.get("kept/expiring"))?.value)]).toEqual([
        "a value",
        "a value that ends",
      ]);
      expect(text((await blobs.readStream("kept/stream", 0, 100)).bytes)).toBe("a stream");
    });
    expect(await checkStore(dir, runtime)).toMatchObject({ faults: 0 });
  });

  test.each([
    ["maintenance has seen it", ({ objects }: Kept) => objects.maintain(admin), 90],
    [
      "it is updated",
      ({ objects }: Kept) =>
        objects.unrestricted.update(admin, { id: "mortal:1" }, [{ column: "size", operation: "set", value: 1 }]),
      91,
    ],
  ])("has an object with a ttl that ends as a whole after %s", async (_when, see, endMinutes) => {
    await opened(version, 31 * MINUTE_MS, async (kept) => {
      const { objects, clock, madeMs } = kept;
      const seen = async () => (await objects.unrestricted.get(admin, [{ id: "mortal:1" }]))[0]?.values;
      await see(kept);
      clock.advance(madeMs + endMinutes * MINUTE_MS - 1 - clock.nowMs());
      expect(await seen()).toMatchObject({ name: "1", color: "blue", size: 1 });
      clock.advance(1);
      expect(await seen()).toBeUndefined();
    });
  });

  test("is found whole by the row check, which gives its values checksums", async () => {
    const dir = await opened(version, 31 * MINUTE_MS, async ({ engine }) => {
      for (const store of [await engine.tenant("matrix"), await engine.system()])
        expect(await everyRow(store)).toEqual([]);
    });
    // From now on a value without a checksum counts as damaged, so there must be none.
    expect(await stateOf(dir)).toEqual({ format: 5, isAllChecked: true });
    expect(await checkStore(dir, runtime)).toMatchObject({ faults: 0 });
  });

  test("counts as having checksums only after a round that passed by nothing", async () => {
    const dir = await opened(version, 31 * MINUTE_MS, async ({ engine }) => {
      expect(await everyRow(await engine.tenant("matrix"), { isPassing: true })).toHaveLength(1);
    });
    expect(await stateOf(dir)).toEqual({ format: 5, isAllChecked: false });
  });

  test("whose values change a bit later on is told as damaged, row by row", async () => {
    const dir = await opened(version, 31 * MINUTE_MS, async ({ engine }) => {
      await everyRow(await engine.tenant("matrix"));
    });
    const file = await readFile(dataOf(dir));
    for (const value of ["green", "line 17", "a value that ends"]) flipAll(file, value);
    await writeFile(dataOf(dir), file);
    const engine = await openEmbeddedEngine({ dir, runtime });
    const { kv, objects, scrub } = await engine.tenant("matrix");
    const damaged = await everyRow({ scrub });
    expect(new Set(damaged.map(({ table }) => table))).toEqual(
      new Set(["kv", "kvlog", "objects", "history", "records"]),
    );
    expect(damaged.filter(({ reason }) => reason !== "its checksum is wrong")).toEqual([]);
    expect(damaged.find(({ table }) => table === "objects")?.key).toMatch(/^\d+:b00$/);
    // Other values are read as before.
    await expect(kv.get("kept/expiring")).rejects.toMatchObject({ code: "unavailable" });
    expect(text((await kv.get("kept/plain"))?.value)).toBe("a value");
    expect((await objects.scan({ limit: 100 })).items.length).toBeGreaterThan(39);
    await engine.close();
    const { lines, faults } = await checkStore(dir, runtime);
    expect(faults).toBe(damaged.length);
    expect(lines.join("\n")).toMatch(/DAMAGED kv, the value of "kept\/expiring": its checksum is wrong/);
  });
});
