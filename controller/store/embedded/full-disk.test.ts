import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { encodeTime } from "ulid";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { mountSmallDisk, type SmallDisk } from "../../../test/helpers/programs/small-disk.ts";
import { LogFile } from "../../log/file.ts";
import { openEmbeddedEngine, type EmbeddedEngine } from "./index.ts";

/** Rejections without a handler, which would end the program. */
const unhandled: unknown[] = [];
const collect = (reason: unknown): number => unhandled.push(reason);

const SMALL_DISK_KIB = 4_096;
const VALUE = new Uint8Array(20_000).fill(1);
const disk: SmallDisk | undefined = await mountSmallDisk(SMALL_DISK_KIB);
const open = (folder: string): Promise<EmbeddedEngine> =>
  openEmbeddedEngine({ dir: folder, runtime: { clock: realClock, random: seededRandom(7) } });

afterAll(async () => disk?.[Symbol.asyncDispose]());

describe.skipIf(disk === undefined)("a store on a disk without room", () => {
  const { folder, fill, makeRoom } = disk!;
  let engine: EmbeddedEngine;

  beforeAll(async () => {
    process.on("unhandledRejection", collect);
    engine = await open(folder);
    await engine.createTenant("matrix");
    const { kv, objects } = await engine.tenant("matrix");
    await kv.put("before", VALUE);
    await objects.change([{ key: { cid: 1, id: "before" }, timeUs: 1, birth: true, addTerms: ["t"] }]);
  });

  beforeEach(async () => {
    await makeRoom();
    unhandled.length = 0;
  });

  afterAll(async () => {
    await makeRoom();
    await engine.close();
    process.off("unhandledRejection", collect);
  });

  test("refuses writes as unavailable, names the disk, reads what there is and writes again when there is room", async () => {
    const { kv, objects } = await engine.tenant("matrix");
    await fill();
    const writes = await Promise.allSettled(Array.from({ length: 8 }, (_, i) => kv.put(`full-${i}`, VALUE)));
    for (const write of writes) {
      expect(write).toMatchObject({
        status: "rejected",
        reason: { code: "unavailable", message: expect.stringContaining("disk is full") },
      });
    }
    const changes = Array.from({ length: 64 }, (_, i) => ({
      key: { cid: 1, id: `o${i}` },
      timeUs: 1,
      birth: true as const,
      cells: new Map([["1", VALUE]]),
    }));
    await expect(objects.change(changes)).rejects.toMatchObject({ code: "unavailable" });
    expect((await kv.get("before"))?.value).toEqual(VALUE);
    expect(await kv.get("full-0")).toBeUndefined();
    expect((await objects.find({ terms: ["t"] }, { limit: 5 })).items).toHaveLength(1);
    await makeRoom();
    await kv.put("after", VALUE);
    expect((await kv.get("after"))?.value).toEqual(VALUE);
    expect(unhandled).toEqual([]);
  });

  test("a change and the records of its commit are both written, or neither is", async () => {
    const { objects } = await engine.tenant("matrix");
    const write = (name: string): Promise<void> => {
      const key = { cid: 1, id: name };
      const cells = new Map([["1", new Uint8Array(500_000)]]);
      const record = { cid: 2, id: encodeTime(1, 10) + name.padStart(16, "0"), value: VALUE, terms: [] };
      return objects.change([{ key, timeUs: 1, birth: true, cells }], { records: () => [record], failed: () => {} });
    };
    const there = async (name: string): Promise<readonly boolean[]> => {
      const found = await objects.getRecords([{ cid: 2, id: encodeTime(1, 10) + name.padStart(16, "0") }]);
      return [...(await objects.get([{ cid: 1, id: name }])), ...found].map((one) => one !== undefined);
    };
    await fill();
    await expect(write("0")).rejects.toMatchObject({ code: "unavailable" });
    expect(await there("0")).toEqual([false, false]);
    await makeRoom();
    await write("1");
    expect(await there("1")).toEqual([true, true]);
    expect(await there("0")).toEqual([false, false]);
    expect(unhandled).toEqual([]);
  });

  test("refuses contents and streams as unavailable", async () => {
    const { blobs } = await engine.tenant("matrix");
    await fill();
    await expect(blobs.put([new Uint8Array(1_000_000)], "owner")).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("disk is full"),
    });
    await expect(blobs.append("stream", 0, VALUE)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("disk is full"),
    });
    await makeRoom();
    await blobs.append("stream", 0, VALUE);
    expect((await blobs.readStream("stream", 0, 10)).size).toBe(VALUE.length);
    expect(unhandled).toEqual([]);
  });

  test("a tenant that is new is refused while there is no room, and made afterwards", async () => {
    await fill();
    await expect(engine.createTenant("late").then(() => engine.tenant("late"))).rejects.toMatchObject({
      code: "unavailable",
    });
    await makeRoom();
    await engine.createTenant("late");
    await (await engine.tenant("late")).kv.put("a", VALUE);
  });

  test("the start on a full disk is refused, and the next one with room begins at once", async () => {
    const own = join(folder, "own");
    await (await open(own)).close();
    const lock = join(own, "controller.lock");
    await writeFile(lock, JSON.stringify({ pid: 2 ** 22 + 1, started: "1", boot: "x" }));
    await fill();
    await expect(open(own)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("disk is full"),
    });
    expect(existsSync(`${lock}.takeover`)).toBe(false);
    await makeRoom();
    await (await open(own)).close();
  });

  test("a log that cannot be written leaves the program running, and says later how many lines are missing", async () => {
    const log = new LogFile(join(folder, "controller.log"));
    await fill();
    for (let i = 0; i < 300; i += 1) log.write(`{"n":${i},"text":"${"x".repeat(100)}"}\n`);
    await makeRoom();
    log.write('{"msg":"room again"}\n');
    const lines = (await readFile(log.path, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { msg?: string; lines?: number });
    expect(lines.at(-1)).toEqual({ msg: "room again" });
    expect(lines.at(-2)).toMatchObject({ msg: "lines of this log could not be written", lines: expect.any(Number) });
  });
});
