import { createHook } from "node:async_hooks";
import { Type } from "typebox";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { endpoint } from "../interface/endpoint.ts";

const CALLS = 100;
/**
 * Promises of a call that does nothing, beyond those of a probe. Most are those of `await`. A larger number is a
 * decision: each call pays for it.
 */
const PROMISES = 32;

let http: TestHttp;
let timers = 0;

/** It stands still, so that nothing is read again meanwhile. */
class CountingClock extends TestClock {
  override after(delayMs: number, callback: () => void): () => void {
    timers++;
    return super.after(delayMs, callback);
  }
}

beforeEach(async () => {
  http = await openTestHttp({
    runtime: testRuntime(new CountingClock()),
    endpoints: [
      endpoint({
        method: "GET",
        path: "/nothing",
        permission: "objects:read",
        summary: "Does nothing",
        input: Type.Object({}),
        output: Type.Array(Type.String()),
        handler: () => Promise.resolve({ message: [] }),
      }),
    ],
  });
});
afterEach(() => http[Symbol.asyncDispose]());

type Made = Readonly<Record<"promises" | "timers" | "signals", number>>;

/**
 * Counts of one call: the least of `CALLS` calls, one after the other. Other work of this process only adds to some of
 * them.
 */
async function made(url: string): Promise<Made> {
  const signals = vi.spyOn(globalThis, "AbortController");
  const counts: Made[] = [];
  let promises = 0;
  const hook = createHook({ init: (_id, type) => void (type === "PROMISE" && promises++) }).enable();
  for (let call = 0; call < CALLS; call++) {
    // In its own turn of the event loop, a call begins at once.
    await new Promise((resolve) => setImmediate(resolve));
    const before = { promises, timers, signals: signals.mock.calls.length };
    await http.app.inject({ url });
    counts.push({
      promises: promises - before.promises,
      timers: timers - before.timers,
      signals: signals.mock.calls.length - before.signals,
    });
  }
  hook.disable();
  signals.mockRestore();
  const least = (what: keyof Made): number => Math.min(...counts.map((count) => count[what]));
  return { promises: least("promises"), timers: least("timers"), signals: least("signals") };
}

test("a signed-in call that does nothing makes few promises, and no timer and no signal of its own", async () => {
  const session = await http.signIn("admin");
  const bare = await made("/healthz");
  const empty = await made(`/nothing?sessionid=${session}`);
  expect(empty.promises - bare.promises).toBeLessThanOrEqual(PROMISES);
  expect(empty).toMatchObject({ timers: 0, signals: 0 });
});
