import { truncateSync } from "node:fs";
import { copyFile, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  LOG_LAST_LINE_MS,
  LOG_PACKED_LOOK_MS,
  LOG_PACKED_REST_MAX_BYTES,
  LOG_PACKED_WAIT_MS,
  LOG_READ_BYTES,
} from "../../../common/limits.ts";
import { LogLooks } from "../../../test/helpers/log-looks.ts";
import { headOf, NO_TAIL } from "./content.ts";
import { packedRest } from "./packed.ts";

/** As gzip does: the packed file has the time of the other, which is gone then. */
async function pack(path: string, cutAt?: number): Promise<void> {
  const bytes = gzipSync(await readFile(path));
  const { atime, mtime } = await stat(path);
  await writeFile(`${path}.gz`, bytes.subarray(0, cutAt));
  await utimes(`${path}.gz`, atime, mtime);
  await rm(path);
}

function lines(count: number, from = 0): string {
  return Array.from({ length: count }, (_, at) => `line ${from + at}\n`).join("");
}

function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `line ${at}`);
}

/** A log of 100 lines that were read. It is copied, cut off and packed with `more`, which no look saw. */
async function packedAway(more: string, cutAt?: number): Promise<LogLooks> {
  const log = await LogLooks.begin();
  await log.writer.appendFile(lines(100));
  await log.look();
  await log.writer.appendFile(more);
  await copyFile(log.log, `${log.log}.1`);
  truncateSync(log.log);
  await pack(`${log.log}.1`, cutAt);
  return log;
}

describe("a log that is copied, cut off and packed before the next look", () => {
  test("is read to its end out of the packed file, in order", async () => {
    await using log = await packedAway(lines(20_000, 100));
    await log.writer.appendFile("next\n");
    await log.looks(8);
    expect((await log.lines()).filter((line) => line !== "next")).toEqual(numbered(20_100));
    expect(await log.lines()).toContain("next");
    expect(await log.gapCounts()).toEqual([0]);
    expect((await log.gaps()).map(({ unit }) => unit)).toEqual(["unknown"]);
  });

  test("and the agent was stopped meanwhile: the same", async () => {
    await using log = await packedAway(lines(100, 100));
    await log.writer.appendFile("next\n");
    await log.restart();
    await log.looks(8);
    await log.restart();
    await log.looks(8);
    expect((await log.lines()).filter((line) => line !== "next")).toEqual(numbered(200));
  });

  test.each([0, LOG_PACKED_WAIT_MS])(
    "a packed file without its end is waited for, also %i ms later",
    async (laterMs) => {
      await using log = await packedAway(lines(100, 100), 100);
      log.clock.advance(laterMs);
      await log.restart();
      await log.looks(8);
      expect(await log.lines()).toHaveLength(100);
      await writeFile(`${log.log}.1.gz`, gzipSync(lines(200)));
      await log.look();
      expect(await log.lines()).toHaveLength(100);
      log.clock.advance(LOG_PACKED_LOOK_MS);
      await log.looks(8);
      expect(await log.lines()).toEqual(numbered(200));
    },
  );

  test("and not for ever: then what it holds counts as lost", async () => {
    await using log = await packedAway("lost\n", 100);
    await log.looks(8);
    expect(await log.gaps()).toEqual([]);
    log.clock.advance(LOG_PACKED_WAIT_MS);
    await log.looks(8);
    expect((await log.gaps()).map(({ unit }) => unit)).toEqual([process.platform === "linux" ? "bytes" : "unknown"]);
  });

  test("another log's packed file is not taken for it", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(lines(100));
    await log.look();
    await writeFile(`${log.log}.1`, lines(300).replaceAll("line 9", "other 9"));
    truncateSync(log.log);
    await pack(`${log.log}.1`);
    await log.looks(8);
    expect(await log.lines()).toEqual(numbered(100));
  });
});

describe("a packed file", () => {
  const CONTENT = Buffer.from(lines(100));
  const LOST = { home: "app.log", mtimeMs: 0, head: headOf(CONTENT), offset: 0, tail: NO_TAIL };

  async function search(lost: Partial<typeof LOST>, { content = CONTENT, signal = new AbortController().signal } = {}) {
    await using log = await LogLooks.begin();
    await writeFile(`${log.log}.1.gz`, gzipSync(content, { level: 1 }));
    return packedRest({ root: log.folder, packed: ["app.log.1.gz"], signal }, { ...LOST, ...lost });
  }

  test("holds the rest of a life that begins as it does", async () => {
    expect(await search({})).toEqual({ rest: CONTENT });
  });

  test.each([
    ["of another log's name", { home: "other.log" }],
    ["that begins in another way", { head: headOf(Buffer.from("line 1")) }],
    ["that is shorter than what was read", { offset: CONTENT.length + 1 }],
    ["that is older than what was read", { mtimeMs: 9e12 }],
  ])("%s holds none", async (_, lost) => {
    expect(await search(lost)).toBeUndefined();
  });

  test("with a larger rest than memory is given holds none", async () => {
    const content = Buffer.alloc(LOG_PACKED_REST_MAX_BYTES + 1, CONTENT);
    expect(await search({}, { content })).toBeUndefined();
  });

  test("is searched no longer when the agent ends", async () => {
    expect(await search({}, { signal: AbortSignal.abort() })).toBeUndefined();
  });
});

describe("a log that was renamed and packed while the agent was stopped", () => {
  async function packedMeanwhile(more: string): Promise<LogLooks> {
    const log = await LogLooks.begin();
    await log.writer.appendFile(lines(10));
    await log.look();
    await log.writer.appendFile(more);
    await rename(log.log, `${log.log}.1`);
    await pack(`${log.log}.1`);
    await writeFile(log.log, "next\n");
    await log.restart();
    return log;
  }

  test("is read to its end: no gap", async () => {
    await using log = await packedMeanwhile(lines(10, 10));
    await log.looks(8);
    expect((await log.lines()).toSorted()).toEqual([...numbered(20), "next"].toSorted());
    expect((await log.gaps()).filter(({ reason }) => reason === "truncated")).toEqual([]);
  });

  test("after a silence, with a rest of several pieces: no line is sent in two", async () => {
    const count = Math.ceil((3 * LOG_READ_BYTES) / "line 100000\n".length);
    await using log = await packedMeanwhile(lines(count, 10));
    await log.look();
    log.clock.advance(LOG_LAST_LINE_MS);
    await log.looks(8);
    expect((await log.lines()).filter((line) => line !== "next")).toEqual(numbered(count + 10));
  });
});

describe("a file that is cut off when all of it was read", () => {
  test.runIf(process.platform === "linux")("by one whose writer has written nothing since: no gap", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(lines(10));
    await log.look();
    truncateSync(log.log);
    await log.looks(8);
    expect(await log.gaps()).toEqual([]);
    await log.writer.appendFile("next\n");
    await log.looks(2);
    expect(await log.lines()).toEqual([...numbered(10), "next"]);
  });

  test.runIf(process.platform === "linux")("what was not read is counted to the byte", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(lines(10));
    await log.look();
    await log.writer.appendFile("lost\n");
    truncateSync(log.log);
    await log.looks(8);
    expect(await log.gaps()).toMatchObject([{ count: 5, unit: "bytes", reason: "truncated" }]);
  });
});

describe("a place beyond the end of the file", () => {
  test.each([false, true])(
    "is another life's: what is there is read from its beginning (begins alike: %s)",
    async (alike) => {
      await using log = await LogLooks.begin();
      await log.writer.appendFile(`${"#".repeat(300)}\n${lines(100)}`);
      await log.look();
      const before = (await log.lines()).length;
      await log.writer.close();
      await rm(log.log);
      await writeFile(log.log, `${alike ? "#".repeat(300) : "short"}\nnew\n`);
      await log.reopen();
      await log.restart();
      await log.looks(8);
      expect((await log.lines()).slice(before)).toEqual([alike ? "#".repeat(300) : "short", "new"]);
    },
  );
});
