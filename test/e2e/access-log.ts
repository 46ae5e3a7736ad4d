import { open, rename, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** An access log as a busy server writes it: many lines at a time, rotated by rename while it is being written. */
export interface AccessLogOptions {
  readonly folder: string;
  readonly lines: number;
  readonly rotateEveryLines: number;
  readonly linesPerBurst: number;
  readonly pauseMs: number;
  /** Called between bursts with the number of lines written so far. */
  readonly onProgress?: (written: number) => Promise<void>;
}

const GENERATIONS_KEPT = 20;

/** Line `n` holds its number, so that sums and counts tell whether each arrived exactly once. */
export function accessLine(n: number): string {
  return `10.0.${(n >> 8) & 255}.${n & 255} - - [21/Nov/2026:13:55:36 +0000] "GET /item/${n} HTTP/1.1" 200 ${n}\n`;
}

export async function writeAccessLog(options: AccessLogOptions): Promise<void> {
  const path = join(options.folder, "access.log");
  let file: FileHandle = await open(path, "a");
  let inFile = 0;
  for (let written = 0; written < options.lines; ) {
    const count = Math.min(options.linesPerBurst, options.lines - written);
    await file.appendFile(Array.from({ length: count }, (_, index) => accessLine(written + index)).join(""));
    written += count;
    inFile += count;
    if (inFile >= options.rotateEveryLines) {
      await rotate(path);
      await file.close();
      file = await open(path, "a");
      inFile = 0;
    }
    await options.onProgress?.(written);
    await pause(options.pauseMs);
  }
  await file.close();
}

async function rotate(path: string): Promise<void> {
  for (let generation = GENERATIONS_KEPT; generation > 1; generation -= 1) {
    await rename(`${path}.${generation - 1}`, `${path}.${generation}`).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
  }
  await rename(path, `${path}.1`);
}
