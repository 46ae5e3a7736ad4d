import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { isAlive } from "../../../../../test/helpers/programs/processes.ts";
import type { TargetSubject } from "./subject.ts";

/** Longer than a busy machine takes to begin a command, which the deadline includes. */
const DEADLINE_MS = 10_000;
const STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.2; done";

/** Tests of commands that are ended by their deadline or by a cancel. */
export function endingsContract({ folder, exec }: TargetSubject): void {
  // These tests run concurrently because they wait for deadlines and for processes to end.
  it.concurrent("ends a command at its deadline, with all it started", async () => {
    const { outcome, out } = await exec("sleep 300 & echo $!; sleep 300", { timeoutMs: DEADLINE_MS });
    expect(outcome.state).toBe("timeout");
    expect(out).toMatch(/^\d+\n$/);
    await gone(Number(out));
  });

  it.concurrent("says that a command ran out of time when it is dead, also one that ignores TERM", async () => {
    const late = await exec(STUBBORN, { timeoutMs: DEADLINE_MS });
    expect([late.outcome.state, isAlive(Number(late.out))]).toEqual(["timeout", false]);
  });

  it.concurrent("says that a command is cancelled when it is dead, also one that ignores TERM", async () => {
    const stop = new AbortController();
    let pid = 0;
    const cancelled = await exec(STUBBORN, {
      signal: stop.signal,
      onOutput: ({ data }) => {
        pid = Number(Buffer.from(data).toString());
        stop.abort();
      },
    });
    expect([cancelled.outcome.state, isAlive(pid)]).toEqual(["cancelled", false]);
  });

  it.concurrent("ends a whole tree of processes that is cancelled, also those that ignore TERM", async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    const { outcome } = await exec(TREE, {
      signal: stop.signal,
      onOutput: ({ data }) => {
        seen.push(Buffer.from(data).toString());
        if (pidsIn(seen).length === TREE_PROCESSES) stop.abort();
      },
    });
    expect([outcome.state, pidsIn(seen).length]).toEqual(["cancelled", TREE_PROCESSES]);
    await Promise.all(pidsIn(seen).map(gone));
  });

  it("ends a command that is cancelled, and does not begin one that already was", async () => {
    const mark = join(folder(), "cancelled");
    const stop = new AbortController();
    const { outcome } = await exec(`echo began; sleep 30; touch ${mark}`, {
      signal: stop.signal,
      onOutput: () => stop.abort(),
    });
    expect(outcome.state).toBe("cancelled");
    expect((await exec(`touch ${mark}`, { signal: stop.signal })).outcome.state).toBe("cancelled");
    expect(existsSync(mark)).toBe(false);
  });
}

/** Each process starts two more, four levels deep. Every second one ignores TERM. */
const TREE = `grow='echo $$; [ $1 = 0 ] && exec sleep 300
sh -c "$0" "$0" $(($1-1)) &
(trap "" TERM; sh -c "$0" "$0" $(($1-1))) &
wait'
sh -c "$grow" "$grow" 4`;
const TREE_PROCESSES = 31;

function pidsIn(pieces: readonly string[]): readonly number[] {
  const lines = pieces.join("").split("\n");
  return lines.slice(0, -1).map(Number);
}

/** Waits until a process of this machine no longer exists. */
async function gone(pid: number): Promise<void> {
  const untilMs = Date.now() + 10_000;
  while (isAlive(pid)) {
    if (Date.now() > untilMs) throw new Error(`The process ${pid} is still there.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
