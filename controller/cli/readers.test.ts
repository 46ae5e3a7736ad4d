import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { PipeReaders } from "./readers.ts";

/** Writes the ids of a process that writes a pipe, and of the one that reads it. */
const PIPE = "sleep 600 | sleep 600 & echo $(jobs -p) $!; wait";

function endAll({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, "SIGKILL");
}

test.runIf(process.platform === "linux")("the reader of a pipe is gone once no process has its end", async () => {
  const shell = spawn("bash", ["-c", PIPE], { stdio: ["ignore", "pipe", "inherit"], detached: true });
  try {
    const [line] = (await once(createInterface(shell.stdout), "line")) as [string];
    const [writer = 0, reader = 0] = line.split(" ").map(Number);
    const [readers, late] = [new PipeReaders(writer), new PipeReaders(writer)];
    await expect.poll(() => readers.areGone()).toBe(false);
    process.kill(reader, "SIGKILL");
    await expect.poll(() => readers.areGone()).toBe(true);
    // Who never saw a reader cannot know: it may be a process of another user.
    expect([await late.areGone(), await late.areGone()]).toEqual([false, false]);
  } finally {
    endAll(shell);
  }
});

test("an output that is no pipe has no readers to lose", async () => {
  const readers = new PipeReaders(0);
  expect([await readers.areGone(), await readers.areGone()]).toEqual([false, false]);
});
