import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environmentWith, eventsOf, leftFor, report, type Plan, type TrialEvent } from "./trials.ts";

/** A test that takes longer than this, and this many times longer than without a change, never ends. */
const DEADLINE_MIN_MS = 120_000;
const DEADLINE_FACTOR = 10;
const LOOK_EVERY_MS = 1_000;
/** Time for all near tests of a change that is tried in a process of its own. */
const ALONE_DEADLINE_MS = 900_000;

/** Tries all changes of a plan. A new process follows when one has to be stopped, or a test in it is broken. */
export async function tryAll(plan: Plan): Promise<void> {
  for (;;) {
    const events = eventsOf(plan.events);
    const tests = plan.tests.filter((test) => leftFor(test, plan.near, events).length > 0);
    if (tests.length === 0) return;
    await vitest({ ...plan, tests }, async (child) => {
      const timer = setInterval(() => stopOverdue(child, plan.events), LOOK_EVERY_MS);
      await ended(child);
      clearInterval(timer);
    });
    if (eventsOf(plan.events).length === events.length) throw new Error(`These tests do not run: ${tests.join(" ")}`);
  }
}

/** Tries one change in a process of its own, and returns true when its tests pass. */
export async function passesAlone(plan: Plan & { readonly number: number }): Promise<boolean> {
  return vitest(plan, async (child) => {
    const timer = setTimeout(() => stop(child), ALONE_DEADLINE_MS);
    const code = await ended(child);
    clearTimeout(timer);
    return code === 0;
  });
}

async function vitest<T>(plan: Plan, use: (child: ChildProcess) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "odp-mutants-"));
  const path = join(folder, "plan.json");
  writeFileSync(path, JSON.stringify(plan));
  const config = "test/tools/mutants/vitest.mutants.ts";
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", "--config", config, "--root", "."], {
    env: environmentWith(path),
    stdio: "ignore",
    // A separate process group, so that the processes that run the tests end with it.
    detached: true,
  });
  try {
    return await use(child);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function stopOverdue(child: ChildProcess, path: string): void {
  const events = eventsOf(path);
  const last = events.at(-1);
  if (last?.kind !== "begun" || Date.now() - statSync(path).mtimeMs <= deadlineMs(last.test, events)) return;
  const { test, number } = last;
  const why = "does not end";
  report(path, number === undefined ? { kind: "broken", test, why } : { kind: "noticed", test, number, why });
  stop(child);
}

function deadlineMs(test: string, events: readonly TrialEvent[]): number {
  const measured = events.find((event) => event.kind === "measured" && event.test === test);
  return Math.max(DEADLINE_MIN_MS, measured?.kind === "measured" ? measured.ms * DEADLINE_FACTOR : 0);
}

function stop(child: ChildProcess): void {
  process.kill(-(child.pid ?? 0), "SIGKILL");
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((done, failed) => {
    child.once("error", failed);
    child.once("close", done);
  });
}
