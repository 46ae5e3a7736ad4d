import { createHook } from "node:async_hooks";
import { Type } from "typebox";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { endpoint } from "../interface/endpoint.ts";

/** Calls that are counted together, so that work for several calls, such as a read of a session, hardly counts. */
const CALLS = 100;
/**
 * Promises of a call that does nothing, beyond those of a probe. Most are those of `await`. A larger number is a
 * decision: each call pays for it.
 */
const PROMISES = 36;

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

/** Numbers of what was made for each of `CALLS` calls, one after the other. */
async function made(url: string): Promise<Readonly<Record<"promises" | "timers" | "signals", number>>> {
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  const signals = vi.spyOn(globalThis, "AbortController");
  for (let warm = 0; warm < 3; warm++) await http.app.inject({ url });
  const before = { timers, signals: signals.mock.calls.length };
  const hook = createHook({ init: (_id, type) => count(type) }).enable();
  for (let call = 0; call < CALLS; call++) await http.app.inject({ url });
  hook.disable();
  const controllers = signals.mock.calls.length - before.signals;
  signals.mockRestore();
  const of = (what: string): number => Math.round((counts.get(what) ?? 0) / CALLS);
  return {
    promises: of("PROMISE"),
    timers: Math.round((timers - before.timers) / CALLS),
    signals: Math.round(controllers / CALLS),
  };
}

test("a signed-in call that does nothing makes few promises, and no timer and no signal of its own", async () => {
  const session = await http.signIn("admin");
  const bare = await made("/healthz");
  const empty = await made(`/nothing?sessionid=${session}`);
  expect(empty.promises - bare.promises).toBeLessThanOrEqual(PROMISES);
  expect(empty).toMatchObject({ timers: 0, signals: 0 });
});
