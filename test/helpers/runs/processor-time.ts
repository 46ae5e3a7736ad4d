import { readFileSync } from "node:fs";
import { afterAll } from "vitest";

/**
 * Notes the processor time of each test file: of this process with its threads, and of the programs that it started and
 * that have ended. Unlike its duration, it says what a file costs beside others. Only Linux tells it.
 */
declare module "vitest" {
  interface TaskMeta {
    processorSeconds?: number;
  }
}

/** USER_HZ of every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;
/** Fields of `/proc/<pid>/stat` after the name of the program: utime, stime, and both of ended children. */
const TIMES = [11, 12, 13, 14];

const before = processorSeconds();
// The first hook of a file is the last that runs.
afterAll(({}, suite) => {
  suite.meta.processorSeconds = processorSeconds() - before;
});

function processorSeconds(): number {
  if (process.platform !== "linux") return 0;
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return TIMES.reduce((sum, at) => sum + Number(fields[at]), 0) / TICKS_PER_SECOND;
}
