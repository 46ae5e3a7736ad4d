import { truncateSync } from "node:fs";
import { appendFile, copyFile, readFile, rename, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { LogLooks } from "../../../../test/helpers/hosts/log-looks.ts";

/** Each look is taken by the test, so that it knows what was compared when the file is cut off. */

const LINE = `${"x".repeat(99)}\n`;

/** A log of 50 lines that was copied; the last look saw 20 lines of the copy. */
async function copied(): Promise<LogLooks> {
  const log = await LogLooks.begin();
  await log.writer.appendFile(LINE.repeat(50));
  await log.look();
  await writeFile(`${log.log}.1`, LINE.repeat(20));
  await log.look();
  await appendFile(`${log.log}.1`, LINE.repeat(30));
  return log;
}

/** Seven more lines are written, and the file is cut off before the last four are read. */
async function cutOff(log: LogLooks): Promise<void> {
  await log.writer.appendFile(LINE.repeat(3));
  await log.read();
  await log.writer.appendFile(LINE.repeat(4));
  truncateSync(log.log);
  await log.look();
  await log.look();
}

test("what is written between a copy and the truncation is counted to the byte when the copy was compared to its end", async () => {
  await using log = await copied();
  await log.compareCopies();
  await cutOff(log);
  expect(await log.gapCounts()).toEqual([4 * LINE.length]);
});

test("what of a copy was not compared counts as well, and no byte less", async () => {
  await using log = await copied();
  await cutOff(log);
  const [count, ...others] = await log.gapCounts();
  expect(others).toEqual([]);
  expect(count).toBeGreaterThanOrEqual(4 * LINE.length);
  expect(count).toBeLessThanOrEqual((30 + 4) * LINE.length);
});

test("a life that was cut off is not read on in the next one, though that begins alike", async () => {
  await using log = await LogLooks.begin();
  const heading = `${"#".repeat(99)}\n`.repeat(5);
  await log.writer.appendFile(heading);
  await log.look();
  truncateSync(log.log);
  // Its copy was made and is in no look yet.
  await log.scan();
  await writeFile(`${log.log}.1`, heading);
  await log.writer.appendFile(`${heading}one\ntwo\n`);
  await log.read();
  for (let count = 0; count < 5; count++) await log.look();
  expect((await log.lines()).filter((line) => !line.startsWith("#"))).toEqual(["one", "two"]);
});

test.runIf(process.platform === "linux").each([false, true])(
  "a log that is cut off twice between two looks: the place of its writer says nothing of its first life (packed: %s)",
  async (isPacked) => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile(LINE.repeat(3));
    await log.look();
    await log.writer.appendFile(LINE);
    await rotate(log, isPacked);
    await log.writer.appendFile("second\n".repeat(100));
    await rotate(log, isPacked);
    await log.looks(8);
    expect((await log.lines()).map((line) => line.slice(0, 6))).toEqual([
      ...Array<string>(4).fill("xxxxxx"),
      ...Array<string>(100).fill("second"),
    ]);
    expect((await log.gaps()).map(({ count, unit }) => ({ count, unit }))).toEqual([{ count: 0, unit: "unknown" }]);
  },
);

async function rotate({ log }: LogLooks, isPacked: boolean): Promise<void> {
  for (const end of ["", ".gz"]) await rename(`${log}.1${end}`, `${log}.2${end}`).catch(() => undefined);
  await copyFile(log, `${log}.1`);
  truncateSync(log);
  if (isPacked) await pack(`${log}.1`);
}

/** As gzip does: the packed file has the time of the other. */
async function pack(path: string): Promise<void> {
  const { atime, mtime } = await stat(path);
  await writeFile(`${path}.gz`, gzipSync(await readFile(path)));
  await utimes(`${path}.gz`, atime, mtime);
  await rm(path);
}

test("a truncation that is seen while the log is empty is one gap, though nobody knows the place of its writer", async () => {
  await using log = await LogLooks.begin();
  await log.looks(2);
  await log.writer.appendFile("one\n");
  await log.looks(2);
  await log.writer.close();
  await truncate(log.log, 0);
  await log.looks();
  expect(await log.gaps()).toMatchObject([{ reason: "truncated", count: 0, unit: "unknown" }]);
  await log.reopen();
  await log.writer.appendFile("two\n");
  await log.looks(2);
  expect(await log.lines()).toEqual(["one", "two"]);
  expect(await log.gaps()).toHaveLength(1);
});

test("a truncation while the agent was stopped is one gap as well", async () => {
  await using log = await LogLooks.begin();
  log.clock.advance(Date.now() - log.clock.nowMs());
  await log.looks(2);
  await log.writer.appendFile("one\n");
  await log.looks(2);
  await log.writer.close();
  await truncate(log.log, 0);
  await log.restart();
  await log.looks();
  expect(await log.gaps()).toMatchObject([{ reason: "truncated", count: 0, unit: "unknown" }]);
  await log.reopen();
  await log.writer.appendFile("two\n");
  await log.looks(2);
  expect(await log.lines()).toEqual(["one", "two"]);
  expect(await log.gaps()).toHaveLength(1);
});

test("an empty log that has changed has no gap while its only writer writes nothing", async () => {
  await using log = await LogLooks.begin();
  await log.looks(2);
  for (const text of ["", "one\n"]) {
    await log.writer.appendFile(text);
    await log.looks(2);
    await truncate(log.log, 0);
    await log.looks();
    await utimes(log.log, 1, 1);
    await log.looks(2);
  }
  expect(await log.lines()).toEqual(["one"]);
  expect(await log.gaps()).toEqual([]);
});

test("a life that was renamed and packed before a look is no copy of the next one: no truncation is told", async () => {
  await using log = await LogLooks.begin();
  await log.looks(2);
  await log.writer.appendFile("one\n");
  await log.looks(2);
  for (const [text, number] of [
    ["two\n", 2],
    ["three\n", 1],
  ] as const) {
    await rename(log.log, `${log.log}.${number}`);
    await log.writer.close();
    await log.reopen();
    await log.writer.appendFile(text);
  }
  // The times of files are coarse: the packed file is made after the log.
  const { birthtimeMs } = await stat(log.log);
  do await writeFile(`${log.folder}/probe`, "x");
  while ((await stat(`${log.folder}/probe`)).mtimeMs <= birthtimeMs);
  await pack(`${log.log}.1`);
  await log.looks(10);
  expect(await log.lines()).toEqual(["one", "two", "three"]);
  expect((await log.gaps()).filter(({ reason }) => reason === "truncated")).toEqual([]);
});
