import { appendFile, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  LOG_ORDER_WAIT_MS,
  LOG_PACKED_JOBS_MAX,
  LOG_PACKED_KNOWN_MAX,
  LOG_PACKED_WAIT_MS,
  LOG_READ_BYTES,
} from "../../../common/limits.ts";
import { Unpacking, type UnpackingJob } from "./unpacking.ts";
import { LogLooks } from "../../../test/helpers/hosts/log-looks.ts";

/** A packed file of many looks: it is read in parts, and each look reads all other files. */

const COUNT = 45_000;
const LOOK_BYTES = LOG_READ_BYTES / 4;

function lines(count: number, from = 0): string {
  return Array.from({ length: count }, (_, at) => `line ${from + at} of a long log\n`).join("");
}

const ALL = lines(COUNT).trimEnd().split("\n");

/** A log of ten lines that were read. With a long rest, it is rotated by renaming and packed. A second log is beside it. */
async function packedAway(): Promise<LogLooks> {
  const log = await LogLooks.begin({ match: "^(app|other)\\.log$", bounds: { packedLookBytes: LOOK_BYTES } });
  await log.writer.appendFile(lines(10));
  await writeFile(`${log.folder}/other.log`, "");
  await log.looks(2);
  await log.writer.appendFile(lines(COUNT - 10, 10));
  await log.restart();
  await rename(log.log, `${log.log}.1`);
  await log.writer.close();
  await log.reopen();
  await writeFile(`${log.log}.1.gz`, gzipSync(await readFile(`${log.log}.1`), { level: 1 }));
  await rm(`${log.log}.1`);
  await log.writer.appendFile("next\n");
  return log;
}

async function rows(log: LogLooks): Promise<readonly string[]> {
  return (await log.lines()).filter((line) => !line.startsWith("other"));
}

/** Read positions in the lives of a log, oldest first. */
function offsets(log: LogLooks, home = "app.log"): readonly number[] {
  const states = log.marks().map(([, value]) => JSON.parse(value) as { home: string; offset: number; serial: number });
  return states
    .filter((state) => state.home === home)
    .toSorted((a, b) => a.serial - b.serial)
    .map(({ offset }) => offset);
}

function isNextRead(log: LogLooks): boolean {
  return offsets(log).at(-1) === "next\n".length;
}

/** Looks until the next life is read. Answers the number of looks. */
async function looksUntilRead(log: LogLooks): Promise<number> {
  for (let looks = 1; looks < 200; looks++) {
    await log.look();
    if (isNextRead(log)) return looks;
  }
  throw new Error(`The archive is not read: ${log.marks().join("\n")}`);
}

/** Looks until a part of the archive is read, and not all. */
async function looksUntilBegun(log: LogLooks): Promise<void> {
  const [before = 0] = offsets(log);
  for (let looks = 0; offsets(log)[0] === before && looks < 100; looks++) await log.look();
  expect(offsets(log)[0]).toBeGreaterThan(before);
  expect(offsets(log)[0]).toBeLessThan(lines(COUNT).length);
}

describe("a long packed file", () => {
  test("is read in parts: each look reads the lines of other files", async () => {
    await using log = await packedAway();
    let looks = 0;
    for (; !isNextRead(log); looks++) {
      await appendFile(`${log.folder}/other.log`, "other\n");
      await log.look();
      expect(offsets(log, "other.log")).toEqual(["other\n".length * (looks + 1)]);
    }
    expect(looks).toBeGreaterThan(10);
    expect(await rows(log)).toEqual([...ALL, "next"]);
    expect((await log.gapCounts()).filter((count) => count > 0)).toEqual([]);
  });

  test("comes before the lines of later files, however long it takes", async () => {
    await using log = await packedAway();
    await log.looks(8);
    log.clock.advance(LOG_ORDER_WAIT_MS);
    await looksUntilBegun(log);
    log.clock.advance(LOG_ORDER_WAIT_MS);
    await looksUntilRead(log);
    expect(await rows(log)).toEqual([...ALL, "next"]);
  });

  test("goes on where the agent was stopped or killed: no line is lost or doubled", async () => {
    await using log = await packedAway();
    await looksUntilBegun(log);
    await log.restart();
    await log.looks(3);
    await log.killedAfter(0);
    await looksUntilRead(log);
    expect(await rows(log)).toEqual([...ALL, "next"]);
    expect((await log.gapCounts()).filter((count) => count > 0)).toEqual([]);
  });

  test("goes on when it is renamed or removed meanwhile", async () => {
    await using log = await packedAway();
    await log.looks(3);
    await rename(`${log.log}.1.gz`, `${log.log}.2.gz`);
    await looksUntilBegun(log);
    await rm(`${log.log}.2.gz`);
    await looksUntilRead(log);
    expect(await rows(log)).toEqual([...ALL, "next"]);
  });

  test("that no look saw before it was packed: the same", async () => {
    await using log = await LogLooks.begin({ bounds: { packedLookBytes: LOOK_BYTES } });
    await log.writer.appendFile("first\n");
    await log.looks(2);
    await writeFile(`${log.log}.1.gz`, gzipSync(lines(COUNT), { level: 1 }));
    await rename(log.log, `${log.log}.2`);
    await writeFile(log.log, "next\n");
    await log.look();
    expect(log.needsLook).toBe(true);
    expect(await looksUntilRead(log)).toBeGreaterThan(10);
    await log.look();
    expect(log.needsLook).toBe(false);
    expect(await rows(log)).toEqual(["first", ...ALL, "next"]);
    expect((await log.gapCounts()).filter((count) => count > 0)).toEqual([]);
  });

  test("that changes for ever holds its log up for a while, and is told", async () => {
    await using log = await LogLooks.begin({ bounds: { packedLookBytes: LOOK_BYTES } });
    await log.writer.appendFile("first\n");
    await log.looks(2);
    await writeFile(`${log.log}.1.gz`, gzipSync(lines(COUNT), { level: 1 }));
    await rename(log.log, `${log.log}.2`);
    await writeFile(log.log, "next\n");
    for (let looks = 0; looks < 8; looks++) await lookAfterChange(log);
    expect(isNextRead(log)).toBe(false);
    log.clock.advance(LOG_PACKED_WAIT_MS);
    for (let looks = 0; looks < 8; looks++) await lookAfterChange(log);
    expect(await rows(log)).toEqual(["first", "next"]);
    expect(await log.gaps()).toMatchObject([{ reason: "vanished", count: 0 }]);
    await log.look();
    expect(log.needsLook).toBe(false);
  });

  test("into which a followed life may have been packed, and that changes for ever: the same", async () => {
    await using log = await packedAway();
    for (let looks = 0; looks < 8; looks++) await lookAfterChange(log);
    for (let seconds = 0; seconds < LOG_PACKED_WAIT_MS / 1_000 + 10; seconds++) {
      log.clock.advance(1_000);
      await lookAfterChange(log);
    }
    expect((await rows(log)).at(-1)).toBe("next");
    expect(await log.gaps()).toMatchObject([{ reason: "vanished", count: 0 }]);
  });
});

let changes = 0;

/** A look at an archive that has got another time since the last one. */
async function lookAfterChange(log: LogLooks): Promise<void> {
  const seconds = Date.now() / 1_000 + ++changes;
  await utimes(`${log.log}.1.gz`, seconds, seconds);
  await log.look();
}

test("an archive that changes often does not push others out of the memory", async () => {
  await using log = await LogLooks.begin();
  await log.writer.appendFile("first\n");
  await log.looks(2);
  await writeFile(`${log.log}.1.gz`, "no archive");
  log.clock.advance(LOG_PACKED_WAIT_MS);
  for (let looks = 0; looks <= LOG_PACKED_KNOWN_MAX; looks++) await lookAfterChange(log);
  await writeFile(`${log.log}.2.gz`, gzipSync("second\n"));
  await log.looks(2);
  expect(await rows(log)).toEqual(["first", "second"]);
});

describe("jobs", () => {
  async function* job(result: number): UnpackingJob<number> {
    yield await Promise.resolve(1);
    return result;
  }

  test("beyond LOG_PACKED_JOBS_MAX wait for one that ends", async () => {
    const unpacking = new Unpacking(1);
    const run = (number: number) => unpacking.run(`${number}`, () => job(number));
    const numbers = Array.from({ length: LOG_PACKED_JOBS_MAX + 1 }, (_, number) => number);
    const look = async () => {
      unpacking.beginLook();
      const results = [];
      for (const number of numbers) results.push(await run(number));
      await unpacking.endLook();
      return results;
    };
    expect(await look()).toEqual(numbers.map(() => "more"));
    expect(await look()).toEqual([...numbers.slice(0, -1), "more"]);
    expect(await look()).toEqual(numbers);
  });

  test("that fail begin again", async () => {
    const unpacking = new Unpacking(9);
    async function* failing(): UnpackingJob<number> {
      throw await Promise.resolve(new Error("damaged"));
    }
    await expect(unpacking.run("a", failing)).rejects.toThrow("damaged");
    expect(await unpacking.run("a", () => job(1))).toBe(1);
  });
});
