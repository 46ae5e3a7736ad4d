import { cp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { encodePacked } from "../../format.ts";
import { checkStore } from "./check.ts";
import { openEmbeddedEngine } from "../index.ts";
import { BLOB_ROW_MAX_BYTES } from "../../../../common/limits.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";

const PAGE_BYTES = 4_096;
const RECORDS = 1_500;
const runtime = { clock: realClock, random: seededRandom(5) };

let whole: string;
let copies = 0;
let digest: string;

const dataOf = (dir: string, store = "tenants/matrix"): string => join(dir, store, "lmdb", "data.mdb");

beforeAll(async () => {
  whole = await storeFolder("odp-damage-");
  const engine = await openEmbeddedEngine({ dir: join(whole, "store"), runtime });
  await engine.createTenant("matrix");
  const { kv, objects, blobs } = await engine.tenant("matrix");
  await kv.put("tenants/matrix", encodePacked({ name: "matrix" }));
  await kv.put("long", new Uint8Array(50_000).fill(7));
  ({ digest } = await blobs.put([new Uint8Array(BLOB_ROW_MAX_BYTES + 1)], "owner"));
  for (let first = 0; first < RECORDS; first += 100) {
    const id = (at: number): string => `01ARZ3NDEKTSV4RRFF${String(first + at).padStart(8, "0")}`;
    await objects.append(
      Array.from({ length: 100 }, (_, at) => ({
        cid: 1,
        id: id(at),
        value: new Uint8Array(100).fill(3),
        terms: ["all", `t${at % 7}`],
      })),
    );
    await objects.change(
      Array.from({ length: 50 }, (_, at) => ({
        key: { cid: 2, id: `o${first + at}` },
        timeUs: 1,
        birth: true as const,
        addTerms: ["t"],
        numbers: new Map([[0, at]]),
      })),
    );
  }
  await engine.close();
});

afterAll(() => rm(whole, { recursive: true }));

async function copy(): Promise<string> {
  copies += 1;
  const dir = join(whole, `copy-${copies}`);
  await cp(join(whole, "store"), dir, { recursive: true });
  return dir;
}

async function openMatrix(dir: string): Promise<void> {
  const engine = await openEmbeddedEngine({ dir, runtime });
  try {
    await (await engine.tenant("matrix")).kv.get("long");
  } finally {
    await engine.close();
  }
}

async function overwrite(path: string, page: number, bytes: Uint8Array): Promise<void> {
  const file = await readFile(path);
  file.set(bytes, page * PAGE_BYTES);
  await writeFile(path, file);
}

describe("a damaged store is refused with its file and the reason before anything is done with it", () => {
  test.each<[string, RegExp, (path: string) => Promise<void>]>([
    [
      "cut off in the middle",
      /the file ends before it/,
      async (path) => truncate(path, Math.floor((await stat(path)).size / 2)),
    ],
    ["cut to a page", /ends before its second meta page/, (path) => truncate(path, PAGE_BYTES)],
    ["cut to half a page", /second meta page/, (path) => truncate(path, PAGE_BYTES / 2)],
    ["empty", /has 0 bytes/, (path) => truncate(path, 0)],
    ["a first meta page of zeros", /first meta page is none/, (path) => overwrite(path, 0, new Uint8Array(PAGE_BYTES))],
    [
      "a second meta page of zeros",
      /second meta page is none/,
      (path) => overwrite(path, 1, new Uint8Array(PAGE_BYTES)),
    ],
    ["missing", /data\.mdb is missing/, (path) => rm(path)],
    ["missing with its folder", /data\.mdb is missing/, (path) => rm(join(path, ".."), { recursive: true })],
  ])("%s", async (_, reason, damage) => {
    for (const store of ["tenants/matrix", "system"]) {
      const dir = await copy();
      await damage(dataOf(dir, store));
      await expect(openMatrix(dir)).rejects.toMatchObject({
        code: "unavailable",
        message: expect.stringMatching(reason),
        // A start does not wait for it.
        details: { reason: "damaged" },
      });
      await expect(openMatrix(dir)).rejects.toMatchObject({ message: expect.stringContaining(join(dir, store)) });
    }
  });
});

describe("the check of a store that is at rest", () => {
  test("counts every entry of a whole one and finds nothing", async () => {
    const { lines, faults } = await checkStore(await copy(), runtime);
    expect(faults).toBe(0);
    expect(lines.slice(lines.indexOf("tenants/matrix:"))).toEqual(
      expect.arrayContaining([
        `  records: ${RECORDS} entries`,
        "  objects: 750 entries",
        "  terms: 750 entries",
        "  contents: 1",
      ]),
    );
  });

  test("finds any page of a tree that became noise, and says what can no longer be read", async () => {
    const random = seededRandom(11);
    const pages = Math.floor((await stat(dataOf(join(whole, "store")))).size / PAGE_BYTES);
    const found: number[] = [];
    for (let page = 2; page < pages; page += 1 + Math.floor(random.next() * 8)) {
      const dir = join(whole, "noise");
      await cp(join(whole, "store"), dir, { recursive: true });
      await overwrite(dataOf(dir), page, random.bytes(PAGE_BYTES));
      const { lines, faults } = await checkStore(dir, runtime);
      // A free page may contain anything.
      if (faults === 0) continue;
      found.push(page);
      const isNamed = lines.some((line) => line.includes(`page ${page}: `));
      // A page in the middle of a long value has no header that shows damage; the checksum of the value does.
      expect(isNamed || lines.some((line) => / kv(log)?, the value of .*: its checksum is wrong/.test(line))).toBe(
        true,
      );
    }
    expect(found.length).toBeGreaterThan(0);
  });

  test("says how many entries a page of noise costs", async () => {
    const dir = await copy();
    const file = await readFile(dataOf(dir));
    const at = file.lastIndexOf("01ARZ3NDEKTSV4RRFF00000700");
    await overwrite(dataOf(dir), Math.floor(at / PAGE_BYTES), seededRandom(3).bytes(PAGE_BYTES));
    const { lines } = await checkStore(dir, runtime);
    expect(lines.join("\n")).toMatch(/DAMAGED \w+: \d+ of \d+ entries can be read/);
  });

  test("finds values that do not decode, contents with other bytes, and files without a way in", async () => {
    const dir = await copy();
    const content = join(dir, "tenants/matrix/blobs/contents", digest.slice(0, 2), digest);
    await writeFile(content, Buffer.from(await readFile(content)).fill(1, 0, 10));
    await truncate(dataOf(dir, "system"), 100);
    const { lines, faults } = await checkStore(dir, runtime);
    expect(faults).toBe(2);
    expect(lines.join("\n")).toMatch(/DAMAGED .*first meta page[^]*DAMAGED content .* is damaged on the disk/);
  });

  test("is refused while a controller works on it", async () => {
    const dir = await copy();
    const engine = await openEmbeddedEngine({ dir, runtime });
    await expect(checkStore(dir, runtime)).rejects.toMatchObject({ code: "conflict" });
    await engine.close();
  });
});
