import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { open } from "lmdb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isAlive } from "../../test/helpers/programs/processes.ts";
import { startSpawner } from "../../test/helpers/programs/spawner.ts";
import type { OnOutput, ProcessSpec, Spawner, StartedProcess } from "./index.ts";

const PIECES = 40;
const PIECE_BYTES = 100_000;

describe("the spawner", () => {
  let spawner: Spawner;
  beforeEach(async () => {
    spawner = await startSpawner();
  });
  afterEach(() => spawner.close());

  it("starts processes that have descriptors 0 to 2 alone, whatever the controller has open", async () => {
    const folder = await mkdtemp(join(tmpdir(), "odp-spawner-"));
    const store = open({ path: folder });
    const later = await startSpawner();
    try {
      for (const one of [spawner, later]) {
        const { text } = await outputOf(one, "for one in /proc/self/fd/*; do echo $one $(readlink $one); done");
        // The shell's own: what it expands the names from is closed by then.
        expect(text.split("\n").filter((line) => /fd\/([3-9]|\d\d+) ./.test(line))).toEqual([]);
        expect(text).not.toContain("data.mdb");
      }
    } finally {
      await later.close();
      await store.close();
      await rm(folder, { recursive: true });
    }
  });

  it("gives output piece by piece, the next one when the last is taken, and nothing is lost", async () => {
    let bytes = 0;
    let inHand = 0;
    const taken: OnOutput = async (piece) => {
      expect(++inHand).toBe(1);
      await new Promise(setImmediate);
      bytes += piece.length;
      inHand--;
    };
    const line = `i=0; while [ $i -lt ${PIECES} ]; do head -c ${PIECE_BYTES} /dev/zero; i=$((i+1)); done`;
    await started(spawner, line, taken).drained;
    expect(bytes).toBe(PIECES * PIECE_BYTES);
  });

  it("reports the end before output that another process still holds open is closed", async () => {
    const process = started(spawner, "sleep 600 & echo ready", () => undefined, { isGroup: true });
    expect(await process.ended).toEqual({ code: 0, signal: null });
    process.kill("SIGKILL");
    await process.drained;
  });

  it("reports codes, signals, and what cannot be started", async () => {
    expect(await started(spawner, "exit 7").ended).toEqual({ code: 7, signal: null });
    const hanging = started(spawner, "exec sleep 600");
    hanging.kill("SIGTERM");
    expect(await hanging.ended).toEqual({ code: null, signal: "SIGTERM" });
    const missing = spawner.start(spec("", { file: "/no/such/file" }), () => undefined);
    await expect(missing.ended).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("ENOENT"),
    });
    await expect(missing.drained).rejects.toMatchObject({ code: "unavailable" });
    const refused = spawner.start(spec("true", { cwd: "a\0b" }), () => undefined);
    await expect(refused.ended).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining("null bytes"),
    });
  });

  it("gives a process the variables it is given and no others", async () => {
    const { text } = await outputOf(spawner, "exec env", { env: { A: "1", B: undefined } });
    // The shell's own.
    expect(text.split("\n").filter((line) => line !== "" && !line.startsWith("PWD="))).toEqual(["A=1"]);
  });

  it("takes what still runs with it when the controller closes it", async () => {
    const { process, pid } = await running(spawner);
    await spawner.close();
    expect(isAlive(pid)).toBe(false);
    await expect(process.ended).rejects.toMatchObject({ code: "unavailable" });
  });

  it("ends a group that its leader has left behind, also where that ignores SIGTERM", async () => {
    const pid = await new Promise<number>((resolve) => {
      const line = `(trap "" TERM; sh -c 'echo $PPID'; exec sleep 600) & exit 0`;
      started(spawner, line, (piece) => resolve(Number(Buffer.from(piece).toString())), {
        isGroup: true,
      });
    });
    await spawner.close();
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  it("that is killed is reported as lost, ends what it had started, and starts nothing more", async () => {
    const { process: orphan, pid } = await running(spawner);
    process.kill(pidOf(spawner), "SIGKILL");
    await spawner.lost;
    await expect(orphan.ended).rejects.toMatchObject({ code: "unavailable" });
    await expect.poll(() => isAlive(pid)).toBe(false);
    await expect(started(spawner, "true").ended).rejects.toMatchObject({ code: "unavailable" });
  });

  it("goes on after the signals that a terminal or a service manager sends to all processes", async () => {
    await running(spawner);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(pidOf(spawner), signal);
    expect((await outputOf(spawner, "echo here")).text).toBe("here\n");
  });
});

function spec(line: string, changed: Partial<ProcessSpec> = {}): ProcessSpec {
  return { file: "/bin/sh", args: ["-c", line], env: process.env, stderr: "reported", isGroup: false, ...changed };
}

function started(
  spawner: Spawner,
  line: string,
  onOutput: OnOutput = () => undefined,
  changed: Partial<ProcessSpec> = {},
): StartedProcess {
  return spawner.start(spec(line, changed), onOutput);
}

async function outputOf(spawner: Spawner, line: string, changed: Partial<ProcessSpec> = {}): Promise<{ text: string }> {
  const pieces: Uint8Array[] = [];
  await started(spawner, line, (piece) => void pieces.push(piece), changed).drained;
  return { text: Buffer.concat(pieces).toString() };
}

/** A process that runs until it is ended. */
function running(spawner: Spawner): Promise<{ readonly process: StartedProcess; readonly pid: number }> {
  return new Promise((resolve) => {
    const process = started(spawner, "echo $$; exec sleep 600", (piece) =>
      resolve({ process, pid: Number(Buffer.from(piece).toString()) }),
    );
  });
}

function pidOf({ pid }: Spawner): number {
  // 0 would be the group of the tests themselves.
  if (pid === undefined) throw new Error("The spawner was not started.");
  return pid;
}
