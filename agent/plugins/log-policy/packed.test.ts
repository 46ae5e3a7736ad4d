import { truncateSync } from "node:fs";
import { copyFile, readFile, rename, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  LOG_LAST_LINE_MS,
  LOG_ORDER_WAIT_MS,
  LOG_PACKED_LOOK_MS,
  LOG_PACKED_WAIT_MS,
  LOG_READ_BYTES,
} from "../../../common/limits.ts";
import { LogLooks } from "../../../test/helpers/hosts/log-looks.ts";
import { headOf, NO_TAIL } from "./rotation/content.ts";
import { contentOf, packedRest } from "./packed.ts";
import { Unpacking } from "./unpacking.ts";

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
    expect(await log.lines()).toEqual([...numbered(20_100), "next"]);
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
    expect(await log.lines()).toEqual([...numbered(200), "next"]);
  });

  test.each([0, LOG_PACKED_WAIT_MS])(
    "a packed file without its end is waited for, also %i ms later",
    async (laterMs) => {
      await using log = await packedAway(lines(100, 100), 100);
      await log.writer.appendFile("next\n");
      log.clock.advance(laterMs);
      await log.restart();
      await log.looks(8);
      expect(await log.lines()).toHaveLength(100);
      await writeFile(`${log.log}.1.gz`, gzipSync(lines(200)));
      await log.look();
      expect(await log.lines()).toHaveLength(100);
      log.clock.advance(LOG_PACKED_LOOK_MS);
      await log.looks(8);
      expect(await log.lines()).toEqual([...numbered(200), "next"]);
    },
  );

  test("and not for ever: then what it holds counts as lost", async () => {
    await using log = await packedAway("lost\n", 100);
    await log.writer.appendFile("next\n");
    await log.looks(8);
    expect(await log.gaps()).toEqual([]);
    expect(await log.lines()).toEqual(numbered(100));
    log.clock.advance(LOG_PACKED_WAIT_MS);
    await log.looks(8);
    expect((await log.gaps()).map(({ unit }) => unit)).toEqual(["unknown"]);
    expect(await log.lines()).toEqual([...numbered(100), "next"]);
  });

  test("lines wait no longer than the bound for what no look settles", async () => {
    await using log = await packedAway("more\n", 100);
    await log.writer.appendFile("next\n");
    await log.look();
    log.clock.advance(LOG_ORDER_WAIT_MS - 1);
    await log.read();
    expect(await log.lines()).toHaveLength(100);
    log.clock.advance(1);
    await log.read();
    expect((await log.lines()).at(-1)).toBe("next");
  });

  test("a link that leads nowhere is not waited for", async () => {
    await using log = await LogLooks.begin();
    await symlink("nowhere", `${log.log}.9.gz`);
    await log.writer.appendFile(lines(2));
    await log.look();
    truncateSync(log.log);
    await log.writer.appendFile("next\n");
    await log.looks(8);
    expect(await log.lines()).toEqual([...numbered(2), "next"]);
  });

  test.runIf(process.platform === "linux")(
    "and whose writer has written nothing since: no gap, as all of it is in the packed file",
    async () => {
      await using log = await packedAway(lines(10, 100));
      await log.looks(8);
      expect(await log.lines()).toEqual(numbered(110));
      expect(await log.gaps()).toEqual([]);
    },
  );

  test("is read at the first look: later rotations may remove the packed file", async () => {
    await using log = await packedAway(lines(10, 100));
    await log.look();
    expect(await log.lines()).toEqual(numbered(110));
  });

  test("with a hole in what no look saw: the line before it and the one behind it arrive whole, the hole does not", async () => {
    const hole = "\0".repeat(3 * LOG_READ_BYTES + 5);
    await using log = await packedAway(`before\n${hole}behind\nhalf${"\0".repeat(7)}way\nlast${"\0".repeat(9)}`);
    await log.looks(8);
    expect((await log.lines()).slice(100)).toEqual(["before", "behind", `half${"\0".repeat(7)}way`, "last"]);
  });

  test("the same in an encoding of two bytes", async () => {
    await using log = await LogLooks.begin({ attrs: { encoding: "utf-16le" } });
    const text = (content: string) => Buffer.from(content, "utf16le");
    await log.writer.appendFile(text("read\n"));
    await log.look();
    await log.writer.appendFile(text(`before\n${"\0".repeat(LOG_READ_BYTES)}behind\n`));
    await copyFile(log.log, `${log.log}.1`);
    truncateSync(log.log);
    await pack(`${log.log}.1`);
    await log.looks(8);
    expect(await log.lines()).toEqual(["read", "before", "behind"]);
  });

  test("a packed file that goes on otherwise is not its rest, but a life by itself", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(lines(100));
    await log.look();
    const other = lines(300).replaceAll("line 9", "other 9");
    await writeFile(`${log.log}.1`, other);
    truncateSync(log.log);
    await pack(`${log.log}.1`);
    await log.looks(8);
    expect(await log.lines()).toEqual([...numbered(100), ...other.trimEnd().split("\n")]);
  });
});

describe("a packed file", () => {
  const CONTENT = Buffer.from(lines(100));
  const LOST = { home: "app.log", id: "1:1", mtimeMs: 0, head: headOf(CONTENT), offset: 0, tail: NO_TAIL };

  async function search(
    lost: Partial<typeof LOST>,
    { maxBytes = CONTENT.length, signal = new AbortController().signal } = {},
  ) {
    await using log = await LogLooks.begin();
    await writeFile(`${log.log}.1.gz`, gzipSync(CONTENT, { level: 1 }));
    const found = await packedRest(
      { root: log.folder, packed: ["app.log.1.gz"], signal, maxBytes, unpacking: new Unpacking() },
      { ...LOST, ...lost },
    );
    if (typeof found !== "object") return found;
    const chunks: Buffer[] = [];
    for await (const { bytes } of found.chunks(lost.offset ?? 0)) chunks.push(bytes);
    return Buffer.concat(chunks);
  }

  test("holds the rest of a life that begins as it does", async () => {
    expect(await search({})).toEqual(CONTENT);
  });

  test.each([
    ["of another log's name", { home: "other.log" }],
    ["that begins in another way", { head: headOf(Buffer.from("line 1")) }],
    ["that is shorter than what was read", { offset: CONTENT.length + 1 }],
    ["that is older than what was read", { mtimeMs: 9e12 }],
  ])("%s holds none", async (_, lost) => {
    expect(await search(lost)).toBeUndefined();
  });

  test("of more unpacked bytes than the bound holds none", async () => {
    expect(await search({}, { maxBytes: CONTENT.length - 1 })).toBeUndefined();
  });

  test("of more bytes than the bound is a gap", async () => {
    await using log = await LogLooks.begin({ bounds: { packedMaxBytes: lines(101).length } });
    await log.writer.appendFile(lines(100));
    await log.look();
    await log.writer.appendFile(lines(2, 100));
    await rename(log.log, `${log.log}.1`);
    await pack(`${log.log}.1`);
    await writeFile(log.log, "next\n");
    await log.restart();
    await log.looks(8);
    expect(await log.lines()).toEqual([...numbered(100), "next"]);
    expect((await log.gaps()).map(({ reason }) => reason)).toContain("vanished");
  });

  test("that gets another name while it is looked for may hold one: the next look finds it", async () => {
    await using log = await LogLooks.begin();
    const { signal } = new AbortController();
    const search = { root: log.folder, packed: ["app.log.1.gz"], signal, unpacking: new Unpacking() };
    expect(await packedRest(search, LOST)).toBe("growing");
    await writeFile(`${log.log}.1.gz`, gzipSync(CONTENT));
    const other = { path: "app.log.1.gz", id: "1:1", size: 1, mtimeMs: 1 };
    expect(await contentOf(other, search, [], { isWhole: true })).toBe("moved");
    expect(await contentOf({ ...other, path: "app.log.2.gz" }, search, [], { isWhole: true })).toBe("moved");
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

test("a file that is cut off behind a line without its end, and whose copy is gone, is given up", async () => {
  await using log = await LogLooks.begin();
  await log.writer.appendFile("half");
  await log.looks(2);
  truncateSync(log.log);
  await log.looks(8);
  expect((await log.gaps()).map(({ reason }) => reason)).toEqual(["truncated"]);
  await log.writer.appendFile("next\n");
  await log.looks(2);
  expect(await log.lines()).toEqual(["next"]);
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
