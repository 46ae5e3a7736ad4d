import { copyFileSync, truncateSync } from "node:fs";
import { link, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  LOG_ENDED_LIVES_MAX,
  LOG_PACKED_KNOWN_MAX,
  LOG_PACKED_WAIT_MS,
  LOG_READ_BYTES,
} from "../../../../common/limits.ts";
import { LogLooks } from "../../../../test/helpers/hosts/log-looks.ts";

/** Lives of a log that began and were packed between two looks. */

const HEADING = `time;${"column;".repeat(100)}\n`;

async function pack(path: string, name = path): Promise<void> {
  const { atime, mtime } = await stat(path);
  await writeFile(`${name}.gz`, gzipSync(await readFile(path)));
  await utimes(`${name}.gz`, atime, mtime);
  await rm(path);
}

/** Files that were packed before get a higher number. */
async function shift({ log }: LogLooks): Promise<void> {
  for (let number = 9; number > 0; number--)
    await rename(`${log}.${number}.gz`, `${log}.${number + 1}.gz`).catch(() => undefined);
}

async function rotate(log: LogLooks, how: "rename" | "copy"): Promise<void> {
  await shift(log);
  if (how === "rename") {
    await rename(log.log, `${log.log}.1`);
    await log.writer.close();
    await log.reopen();
  } else {
    copyFileSync(log.log, `${log.log}.1`);
    truncateSync(log.log);
  }
  await pack(`${log.log}.1`);
}

/** One life that is read, and two that no look sees before they are packed. */
async function missed(how: "rename" | "copy", heading = ""): Promise<LogLooks> {
  const log = await LogLooks.begin();
  await log.writer.appendFile(`${heading}one\n`);
  await log.looks(2);
  for (const life of ["two", "three"]) {
    await rotate(log, how);
    await log.writer.appendFile(`${heading}${life}\n`);
  }
  await rotate(log, how);
  await log.writer.appendFile(`${heading}four\n`);
  return log;
}

async function rows(log: LogLooks): Promise<readonly string[]> {
  return (await log.lines()).filter((line) => !line.startsWith("time;"));
}

describe.each(["rename", "copy"] as const)("lives that a rotation by %s packed between two looks", (how) => {
  test.each([false, true])("are read in their order (the agent was stopped: %s)", async (isStopped) => {
    await using log = await missed(how);
    if (isStopped) await log.restart();
    await log.looks(8);
    expect(await log.lines()).toEqual(["one", "two", "three", "four"]);
  });

  test("also where all begin with the same heading", async () => {
    await using log = await missed(how, HEADING);
    await log.looks(8);
    expect(await rows(log)).toEqual(["one", "two", "three", "four"]);
  });

  test("are never read again: not after a restart, not under another name, not when their log is gone", async () => {
    await using log = await missed(how);
    await log.looks(8);
    await log.restart();
    await log.looks(8);
    await shift(log);
    await log.looks(8);
    await log.restart();
    await rotate(log, how);
    await log.looks(8);
    await rm(log.log);
    await log.writer.close();
    await log.looks(8);
    await log.reopen();
    await log.writer.appendFile("five\n");
    await log.looks(8);
    expect(await log.lines()).toEqual(["one", "two", "three", "four", "five"]);
  });
});

test("a packed file that gets another name while it is looked for is one life", async () => {
  await using log = await LogLooks.begin();
  await log.writer.appendFile("one\n");
  await log.looks(2);
  await writeFile(`${log.log}.1.gz`, gzipSync("two\n"));
  // The folder is listed while the name changes: both names are there.
  await link(`${log.log}.1.gz`, `${log.log}.2.gz`);
  await log.looks(2);
  await rm(`${log.log}.1.gz`);
  await log.looks(8);
  expect(await log.lines()).toEqual(["one", "two"]);
});

describe("a packed file is not read", () => {
  test("that was there before the policy, whatever its time", async () => {
    await using log = await LogLooks.begin();
    await writeFile(`${log.log}.1.gz`, gzipSync("old\n"));
    await log.writer.appendFile("new\n");
    await log.looks(2);
    await log.restart();
    await shift(log);
    await log.looks(8);
    expect(await log.lines()).toEqual(["new"]);
  });

  test("whose last line is older than the policy", async () => {
    await using log = await LogLooks.begin();
    await log.looks(2);
    await writeFile(`${log.log}.1`, "old\n");
    await utimes(`${log.log}.1`, 1, 1);
    await pack(`${log.log}.1`);
    await log.looks(8);
    expect(await log.lines()).toEqual([]);
  });

  test("that holds a life which was read before it was packed, however late that is", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("one\n");
    await log.look();
    await rename(log.log, `${log.log}.1`);
    await log.writer.close();
    await log.reopen();
    await log.writer.appendFile("two\n");
    await log.looks(2);
    await rename(`${log.log}.1`, `${log.folder}/away`);
    await log.looks(8);
    await rename(`${log.folder}/away`, `${log.folder}/../${process.pid}.away`);
    await log.looks(8);
    await log.restart();
    await pack(`${log.folder}/../${process.pid}.away`, `${log.log}.1`);
    await log.looks(8);
    expect(await log.lines()).toEqual(["one", "two"]);
  });

  test("that is somebody's copy of the log, or the log's file before its packer removes it", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("one\n");
    await log.look();
    await writeFile(`${log.log}-20261129.gz`, gzipSync("one\n"));
    await log.writer.appendFile("two\n");
    await log.looks(2);
    await rename(log.log, `${log.log}.1`);
    await writeFile(`${log.log}.1.gz`, gzipSync("one\ntwo\n"));
    await log.looks(8);
    await rm(`${log.log}.1`);
    await log.looks(8);
    expect(await log.lines()).toEqual(["one", "two"]);
  });

  test("that has another name than a rotation gives", async () => {
    await using log = await LogLooks.begin();
    await log.looks(2);
    await writeFile(`${log.folder}/other.log.1.gz`, gzipSync("other\n"));
    await writeFile(`${log.log}.backup.gz`, gzipSync("backup\n"));
    await log.looks(8);
    expect(await log.lines()).toEqual([]);
  });

  test("that may be of a life which is forgotten", async () => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("life 0\n");
    await log.looks(2);
    await rotate(log, "rename");
    await rename(`${log.log}.1.gz`, `${log.folder}/away`);
    for (let life = 1; life <= LOG_ENDED_LIVES_MAX; life++) {
      await log.writer.appendFile(`life ${life}\n`);
      await log.looks(2);
      await rm(log.log);
      await log.writer.close();
      await log.reopen();
    }
    await log.looks(8);
    const before = await log.lines();
    expect(before).toHaveLength(LOG_ENDED_LIVES_MAX + 1);
    await rename(`${log.folder}/away`, `${log.log}.1.gz`);
    await log.looks(8);
    expect(await log.lines()).toEqual(before);
  });
});

describe("a packed file is not read again", () => {
  test("that is a log of its own, though its name is that of a generation of another", async () => {
    await using log = await LogLooks.begin({ match: "^app(-\\d+)?\\.log$" });
    await log.writer.appendFile("one\n");
    await writeFile(`${log.folder}/app-1.log`, "two\n");
    await log.looks(2);
    await pack(`${log.folder}/app-1.log`);
    await log.looks(8);
    await log.restart();
    await log.looks(8);
    expect((await log.lines()).toSorted()).toEqual(["one", "two"]);
  });

  test("that was read before it was packed, and has more bytes than are read: no gap", async () => {
    await using log = await LogLooks.begin({ bounds: { packedMaxBytes: 1_000 } });
    const line = "x".repeat(1_000);
    await log.writer.appendFile(`${line}\n`);
    await log.look();
    await rename(log.log, `${log.log}.1`);
    await log.writer.close();
    await log.reopen();
    await log.looks(2);
    await pack(`${log.log}.1`);
    await log.looks(8);
    await log.restart();
    await log.looks(8);
    expect(await log.lines()).toEqual([line]);
    expect(await log.gaps()).toEqual([]);
  });

  test("when more lives end at once than are remembered, and the packer gave it the time of its packing", async () => {
    await using log = await LogLooks.begin({ match: "^x\\d+\\.log$" });
    const names = Array.from({ length: LOG_ENDED_LIVES_MAX + 1 }, (_, at) => `x${at}.log`);
    for (const name of names) await writeFile(`${log.folder}/${name}`, `line of ${name}\n`);
    await log.looks(2);
    const laterSeconds = Date.now() / 1_000 + 60;
    for (const name of names) {
      await pack(`${log.folder}/${name}`, `${log.folder}/${name}.1`);
      await utimes(`${log.folder}/${name}.1.gz`, laterSeconds, laterSeconds);
    }
    await log.looks(8);
    expect((await log.lines()).toSorted()).toEqual(names.map((name) => `line of ${name}`).toSorted());
  });
});

test.each([false, true])(
  "packed files are old to a policy that takes their log in later (the log comes later still: %s)",
  async (isLate) => {
    await using log = await LogLooks.begin();
    await log.writer.appendFile("one\n");
    await log.looks(2);
    await writeFile(`${log.folder}/web.log.1.gz`, gzipSync("archived\n"));
    log.clock.advance(Date.now() + 60_000 - log.clock.nowMs());
    if (!isLate) await writeFile(`${log.folder}/web.log`, "two\n");
    await log.restart({ match: "^(app|web)\\.log$" });
    await log.looks(2);
    if (isLate) await writeFile(`${log.folder}/web.log`, "two\n");
    await log.looks(8);
    await log.restart();
    await log.looks(8);
    expect(await log.lines()).toEqual(["one", "two"]);
  },
);

test("looks that find nothing new write nothing, however many packed files there are", async () => {
  await using log = await LogLooks.begin();
  await log.writer.appendFile("one\n");
  for (let at = 1; at <= LOG_PACKED_KNOWN_MAX + 1; at++) await writeFile(`${log.log}.${at}.gz`, gzipSync("old\n"));
  await log.looks(2);
  const { version } = log;
  await log.looks(3);
  expect(log.version).toBe(version);
  expect(await log.lines()).toEqual(["one"]);
});

describe("a packed life that cannot be read", () => {
  async function unreadable(bytes: Buffer, packedMaxBytes?: number): Promise<LogLooks> {
    const log = await LogLooks.begin(packedMaxBytes === undefined ? {} : { bounds: { packedMaxBytes } });
    await log.writer.appendFile("one\n");
    await log.looks(2);
    await writeFile(`${log.log}.1.gz`, bytes);
    return log;
  }

  test.each([
    ["as it is damaged", Buffer.from("no gzip at all")],
    ["as it has more bytes than the bound", gzipSync(Buffer.alloc(1_001, "x")), 1_000],
  ])("%s is a gap, once", async (_, bytes, packedMaxBytes?: number) => {
    await using log = await unreadable(bytes, packedMaxBytes);
    await log.looks(8);
    await log.restart();
    await log.looks(8);
    expect(await log.gaps()).toMatchObject([{ reason: "vanished", count: 0, unit: "unknown", source: log.log }]);
  });

  test("as it has no end yet is waited for, and so are the lines of a newer life", async () => {
    const whole = gzipSync("two\n");
    await using log = await unreadable(whole.subarray(0, 20));
    await rename(log.log, `${log.log}.2`);
    await writeFile(log.log, "three\n");
    await log.looks(8);
    expect(await log.lines()).toEqual(["one"]);
    await writeFile(`${log.log}.1.gz`, whole);
    await log.looks(2);
    expect(await log.lines()).toEqual(["one", "two", "three"]);
  });

  test("as it never has an end is a gap, and the newer lines go on", async () => {
    await using log = await unreadable(gzipSync("two\n").subarray(0, 20));
    await rename(log.log, `${log.log}.2`);
    await writeFile(log.log, "three\n");
    await log.looks(8);
    log.clock.advance(LOG_PACKED_WAIT_MS);
    await log.looks(8);
    expect(await log.lines()).toEqual(["one", "three"]);
    expect(await log.gaps()).toMatchObject([{ reason: "vanished", count: 0, unit: "unknown" }]);
  });

  test("as its packer takes longer than it is waited for is one gap, and read once it is whole", async () => {
    const whole = gzipSync("two\n");
    await using log = await unreadable(whole.subarray(0, 12));
    await log.looks(2);
    log.clock.advance(LOG_PACKED_WAIT_MS);
    for (let bytes = 13; bytes < 18; bytes++) {
      await writeFile(`${log.log}.1.gz`, whole.subarray(0, bytes));
      await log.look();
    }
    expect(await log.gaps()).toHaveLength(1);
    await writeFile(`${log.log}.1.gz`, whole);
    await log.looks(2);
    expect(await log.lines()).toEqual(["one", "two"]);
  });
});

test("a packed life for which there is no room, as too many files are followed, is a gap of its length", async () => {
  await using log = await LogLooks.begin({ bounds: { filesMax: 1 } });
  await log.writer.appendFile("one\n");
  await log.looks(2);
  await writeFile(`${log.log}.1.gz`, gzipSync("missed\n"));
  await log.looks(3);
  await log.restart();
  await log.looks(3);
  expect(await log.lines()).toEqual(["one"]);
  expect(await log.gaps()).toMatchObject([{ reason: "vanished", count: 7, unit: "bytes", source: log.log }]);
});

test("a long packed life is read in pieces, and goes on where the agent was killed", async () => {
  await using log = await LogLooks.begin();
  await log.writer.appendFile("one\n");
  await log.looks(2);
  const lines = Array.from({ length: Math.ceil((4 * LOG_READ_BYTES) / 20) }, (_, at) => `line ${at} of many lines`);
  await writeFile(`${log.log}.1.gz`, gzipSync(lines.map((line) => `${line}\n`).join("")));
  await log.killedAfter(3);
  await log.looks(8);
  expect(await log.lines()).toEqual(["one", ...lines]);
});
