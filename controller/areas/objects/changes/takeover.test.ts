import { expect, test } from "vitest";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { ChangeDispatcher } from "./dispatcher.ts";
import type { Box, Intent, Outbox } from "./outbox.ts";
import { Takeover } from "./takeover.ts";

const PAGES = 50;

test("nothing is left behind of pages of changes that were taken over", async () => {
  const warnings: Error[] = [];
  const hear = (warning: Error): void => void warnings.push(warning);
  process.on("warning", hear);
  let released = (): void => undefined;
  const done = new Promise<void>((resolve) => (released = resolve));
  let dispatched = 0;
  const box = { lease: { held: () => true } } as Box;
  const outbox: Pick<Outbox, "orphans" | "intents" | "release" | "watch"> = {
    orphans: async function* () {
      yield await Promise.resolve(box);
    },
    intents: async function* () {
      for (let page = 0; page < PAGES; page += 1) yield await Promise.resolve([{} as Intent]);
    },
    release: () => Promise.resolve(released()),
    watch: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
  };
  const dispatcher: Pick<ChangeDispatcher, "dispatchParked" | "canDispatch" | "hold" | "dispatch"> = {
    dispatchParked: () => undefined,
    canDispatch: () => true,
    hold: () => undefined,
    dispatch: () => Promise.resolve(void (dispatched += 1)),
  };
  const takeover = new Takeover({
    runtime: testRuntime(new TestClock()),
    outbox: outbox as Outbox,
    dispatcher: dispatcher as ChangeDispatcher,
    committed: (intent) => Promise.resolve(intent),
  });
  takeover.start();
  await done;
  await takeover.close();
  // Node tells of signals with many listeners in a turn of its own.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", hear);
  expect([dispatched, warnings]).toEqual([PAGES, []]);
});
