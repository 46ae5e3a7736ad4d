import { mkdtempSync, readdirSync, readFileSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import {
  LOG_FILE_GENERATIONS,
  LOG_FILE_MAX_BYTES,
  LOG_LATER_MAX_CHARACTERS,
  LOG_LATER_MS,
} from "../../common/limits.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { callLog } from "./calls.ts";
import { LogFile } from "./file.ts";

/** Bytes that the next writes store, before the disk is full; no limit if absent. */
const disk: { freeBytes: number | undefined } = { freeBytes: undefined };

function writeToDisk(descriptor: number, bytes: Uint8Array, from: number): number {
  const { freeBytes = Infinity } = disk;
  if (freeBytes === 0) throw new Error("ENOSPC");
  const stored = writeSync(descriptor, bytes, from, Math.min(bytes.length - from, freeBytes));
  if (disk.freeBytes !== undefined) disk.freeBytes -= stored;
  return stored;
}

it("keeps every line, rotates at its bound, and lets the oldest generation go", () => {
  const folder = mkdtempSync(join(tmpdir(), "odp-log-"));
  const file = new LogFile(join(folder, "log", "controller.log"));
  const line = `${"x".repeat(1_023)}\n`;
  const linesPerFile = LOG_FILE_MAX_BYTES / line.length;
  for (let n = 0; n < linesPerFile * LOG_FILE_GENERATIONS + 1; n += 1) file.write(line);
  const names = readdirSync(join(folder, "log")).sort();
  expect(names).toEqual([
    "controller.log",
    ...Array.from({ length: LOG_FILE_GENERATIONS - 1 }, (_, index) => `controller.log.${index + 1}`),
  ]);
  expect(readFileSync(file.path, "utf8")).toBe(line);
  expect(statSync(`${file.path}.1`).size).toBe(LOG_FILE_MAX_BYTES);
});

describe("lines that may be written later", () => {
  const opened = () => {
    const clock = new TestClock();
    const file = new LogFile(join(mkdtempSync(join(tmpdir(), "odp-log-")), "a.log"), clock);
    return { clock, file, stored: () => readFileSync(file.path, "utf8") };
  };

  it("are stored within LOG_LATER_MS", () => {
    const { clock, file, stored } = opened();
    file.writeLater("one\n");
    file.writeLater("two\n");
    expect(stored()).toBe("");
    clock.advance(LOG_LATER_MS);
    expect(stored()).toBe("one\ntwo\n");
    file.writeLater("three\n");
    clock.advance(LOG_LATER_MS);
    expect(stored()).toBe("one\ntwo\nthree\n");
  });

  it("are stored before every line that is written at once", () => {
    const { file, stored } = opened();
    file.writeLater("a call\n");
    file.write("a fault\n");
    expect(stored()).toBe("a call\na fault\n");
  });

  it("wait in at most LOG_LATER_MAX_CHARACTERS of memory", () => {
    const { file, stored } = opened();
    const line = `${"x".repeat(1_023)}\n`;
    for (let n = 1; n < LOG_LATER_MAX_CHARACTERS / line.length; n += 1) file.writeLater(line);
    expect(stored()).toBe("");
    file.writeLater(line);
    expect(stored()).toHaveLength(LOG_LATER_MAX_CHARACTERS);
  });

  it("about calls have the form of all other lines", () => {
    const lines: string[] = [];
    const call = { method: "GET", path: "/a", route: "/:b", status: 200, code: "ok", elapsedMs: 1.5 };
    const caller = { tenant: "t", user: 'a "name"', remote: "::1", traceparent: "00-1-2-01" };
    const clock = new TestClock();
    callLog({ writeLater: (line) => lines.push(line) }, clock)({ ...call, ...caller });
    const sink = { write: (line: string) => void lines.push(line) };
    pino({ timestamp: () => `,"time":${String(clock.nowMs())}` }, sink).info({ ...call, ...caller }, "request");
    expect(lines[0]).toBe(lines[1]);
  });
});

it.each([
  [0, "", 2],
  [2, "on\n", 2],
  [4, "one\n", 1],
  [6, "one\ntw\n", 1],
])("counts what a disk with room for %i bytes does not take", (freeBytes, stored, lines) => {
  const file = new LogFile(join(mkdtempSync(join(tmpdir(), "odp-log-")), "a.log"), new TestClock(), writeToDisk);
  file.writeLater("one\n");
  file.writeLater("two\n");
  disk.freeBytes = freeBytes;
  file.flush();
  disk.freeBytes = undefined;
  file.write("again\n");
  const told = JSON.stringify({ msg: "lines of this log could not be written", lines });
  expect(readFileSync(file.path, "utf8")).toBe(`${stored}${told}\nagain\n`);
});

it("goes on where an earlier run ended", () => {
  const path = join(mkdtempSync(join(tmpdir(), "odp-log-")), "a.log");
  new LogFile(path).write("one\n");
  new LogFile(path).write("two\n");
  expect(readFileSync(path, "utf8")).toBe("one\ntwo\n");
});
