import { truncateSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { LOG_HEAD_BYTES, LOG_READ_BYTES } from "../../../common/limits.ts";
import { LogLooks } from "../../../test/helpers/hosts/log-looks.ts";

const LONG = "x".repeat(LOG_HEAD_BYTES);
const LINES = [
  ["short", "one"],
  ["long", LONG],
] as const;
const KIB = 1_024;

/** A log with room behind its text, which the agent has read. */
async function withRoom(text: string, bytes: number): Promise<LogLooks> {
  const log = await LogLooks.begin({ flags: "w" });
  await log.writer.write(text);
  await log.writer.truncate(bytes);
  await log.looks(2);
  return log;
}

async function told(log: LogLooks) {
  await log.looks(8);
  return { lines: await log.lines(), gaps: await log.gaps() };
}

/** Room up to that size is seen in one read, or takes another one. */
describe.each([8 * KIB, 2 * LOG_READ_BYTES])("room reserved in a file, of %i bytes with its text", (bytes) => {
  test("which was all there was: its first line arrives without a gap", async () => {
    await using log = await withRoom("", bytes);
    await log.restart();
    await log.look();
    await log.writer.write("one\n", 0);
    expect(await told(log)).toEqual({ lines: ["one"], gaps: [] });
  });

  test.each(LINES)("behind a %s line is written: the line before it arrives once, without a gap", async (_, line) => {
    await using log = await withRoom(`${line}\n`, bytes);
    await log.restart();
    await log.look();
    await log.writer.write("two\n");
    expect(await told(log)).toEqual({ lines: [line, "two"], gaps: [] });
  });

  test.each(LINES)("behind a %s line is taken back: no gap, and no line twice", async (_, line) => {
    await using log = await withRoom(`${line}\n`, bytes);
    await log.writer.write("two\n");
    truncateSync(log.log, line.length + 5);
    expect(await told(log)).toEqual({ lines: [line, "two"], gaps: [] });
  });

  test.each(["begins again", "closed it"])(
    "and the file is gone after a rotation, as the agent %s: no gap",
    async (how) => {
      await using log = await withRoom("one\n", bytes);
      await rename(log.log, `${log.log}.1`);
      await log.look();
      await (how === "closed it" ? log.closeIdle() : log.restart());
      await rm(`${log.log}.1`);
      expect(await told(log)).toEqual({ lines: ["one"], gaps: [] });
    },
  );
});

test("room that was not looked through is counted when its file is gone", async () => {
  await using log = await LogLooks.begin({ flags: "w" });
  await log.writer.truncate(8 * KIB);
  await log.scan();
  await log.restart();
  await rm(log.log);
  expect((await told(log)).gaps).toMatchObject([{ reason: "vanished", count: 8 * KIB }]);
});

test("room in the mark of a former version is written, too", async () => {
  await using log = await withRoom("one\n", 8 * KIB);
  const head = Buffer.alloc(LOG_HEAD_BYTES);
  head.write("one\n");
  await log.withMarks(() => ({ head: head.toString("base64") }));
  await log.writer.write("two\n");
  expect(await told(log)).toEqual({ lines: ["one", "two"], gaps: [] });
});

test("room behind a line without its end is taken back: no gap, and what the line had is read", async () => {
  await using log = await withRoom("one\nhalf", 8 * KIB);
  truncateSync(log.log, 8);
  await log.looks(2);
  await log.writer.write(" and half\n");
  expect(await told(log)).toEqual({ lines: ["one", "half and half"], gaps: [] });
});

test("text behind the place read is counted where it is cut off, and room is not", async () => {
  await using log = await withRoom(`${LONG}\nhalf`, 8 * KIB);
  truncateSync(log.log, LONG.length + 1);
  const { lines, gaps } = await told(log);
  expect([lines, gaps.map(({ count }) => count)]).toEqual([[LONG], [4]]);
});

describe.each([LOG_HEAD_BYTES, LOG_HEAD_BYTES + 44])("a file that begins with a hole of %i bytes", (hole) => {
  test("is read on", async () => {
    await using log = await withRoom(`${"\0".repeat(hole)}one\n`, hole + 4);
    await log.restart();
    await log.looks(2);
    await log.writer.write("two\n");
    expect(await told(log)).toEqual({ lines: ["one", "two"], gaps: [] });
  });

  test("is not taken for an empty one", async () => {
    await using log = await withRoom(`${"\0".repeat(hole)}one\n`, hole + 4);
    truncateSync(log.log);
    await log.writer.write("two\n");
    const { lines, gaps } = await told(log);
    expect([lines, gaps.map(({ reason }) => reason)]).toEqual([["one", "two"], ["truncated"]]);
  });
});
