import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { SCRIPT_LONG_RUN_MS } from "../../common/limits.ts";
import { TestClock } from "../../test/helpers/time/runtime.ts";
import { HOST } from "./contract/engine/subject.ts";
import { threadScripts } from "./contract/threads.ts";
import type { ScriptCall } from "./index.ts";

const FOR_EVER_MS = 3_600_000;
const BEGUN = "host.add(1, 1);";
const open = await threadScripts("javascript");

function callOf(source: string): ScriptCall {
  const call = { tenant: "mine", kind: "serverjs", user: "anna", language: "javascript", name: "/a.js" } as const;
  return { ...call, source, globals: {}, results: ["OUTPUT"], timeoutMs: FOR_EVER_MS };
}

test.runIf(process.platform === "linux").each([
  { lowers: true, left: 0, name: "its thread runs nothing afterwards" },
  { lowers: false, left: 1, name: "its thread stays where the system has no such priority" },
])("a run that uses the processor for long has a lower priority: $name", async ({ lowers, left }) => {
  const clock = new TestClock();
  const lowered: number[] = [];
  const engine = open({ clock, threads: 1, lowerPriority: (thread) => (lowered.push(thread), lowers) });
  try {
    await engine.run(callOf(BEGUN), HOST);
    expect(lowered).toEqual([]);
    let hasBegun = (): void => {};
    const begun = new Promise<void>((resolve) => (hasBegun = resolve));
    const host = { call: () => (hasBegun(), Promise.resolve(2)) };
    const abort = new AbortController();
    const call = { ...callOf(`${BEGUN} for (;;) {}`), signal: abort.signal };
    const answer = engine.run(call, host).catch(() => "stopped");
    await begun;
    while (lowered.length === 0) {
      clock.advance(SCRIPT_LONG_RUN_MS / 2);
      await turn();
    }
    abort.abort();
    expect(await answer).toBe("stopped");
    while (engine.threads > left) await turn();
    expect([engine.threads, engine.ended]).toEqual([left, 0]);
    expect(lowered).toHaveLength(1);
    await engine.run(callOf(BEGUN), HOST);
  } finally {
    await engine.close();
  }
});
