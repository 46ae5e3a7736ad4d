import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { LOG_FILE_GENERATIONS, LOG_FILE_MAX_BYTES } from "../../common/limits.ts";
import { LogFile } from "./file.ts";

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

it("goes on where an earlier run ended", () => {
  const path = join(mkdtempSync(join(tmpdir(), "odp-log-")), "a.log");
  new LogFile(path).write("one\n");
  new LogFile(path).write("two\n");
  expect(readFileSync(path, "utf8")).toBe("one\ntwo\n");
});
