import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { TestClock, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { Etcd } from "./etcd.ts";
import { grantLease } from "./lease.ts";

const TTL_MS = 9_000;
const INTERVAL_MS = TTL_MS / 3;
const MARGIN_MS = TTL_MS / 10;

/** An etcd that answers when the test says so, with a clock that only the test advances. */
function openScene({ grantTakesMs = 0 } = {}) {
  const clock = new TestClock();
  const renewals: EventEmitter[] = [];
  const etcd = {
    runtime: testRuntime(clock),
    leases: {
      leaseGrant: () => {
        clock.advance(grantTakesMs);
        return Promise.resolve({ ID: "7" });
      },
    },
    call: (_kind: string, work: (options: object) => unknown) => work({}),
    open: () => {
      const stream = Object.assign(new EventEmitter(), { write: () => true });
      renewals.push(stream);
      return Promise.resolve({ stream, end: () => undefined, giveUp: () => stream.emit("close") });
    },
  };
  return { clock, renewals, lease: grantLease(etcd as unknown as Etcd, TTL_MS) };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a lease that is not renewed is lost before etcd, which counts from a later moment, could give it away", async () => {
  const { clock, lease } = openScene();
  const held = await lease;
  for (let passedMs = 0; passedMs < TTL_MS - MARGIN_MS - 1; passedMs += 1) {
    clock.advance(1);
    if (passedMs % 100 === 0) await turn();
  }
  expect([held.held(), held.lost.aborted]).toEqual([true, false]);
  clock.advance(1);
  expect([held.held(), held.lost.aborted]).toEqual([false, true]);
});

test("its time is counted from the sending of the request, however long the answer takes", async () => {
  const { clock, lease } = openScene({ grantTakesMs: 2_000 });
  const held = await lease;
  clock.advance(TTL_MS - MARGIN_MS - 2_000 - 1);
  expect(held.lost.aborted).toBe(false);
  clock.advance(1);
  expect(held.lost.aborted).toBe(true);
});

test("an answer makes it last from the sending of the renewal that it answers", async () => {
  const { clock, renewals, lease } = openScene();
  const held = await lease;
  clock.advance(INTERVAL_MS);
  await turn();
  expect(renewals).toHaveLength(1);
  clock.advance(1_000);
  renewals[0]?.emit("data", { TTL: "9" });
  await turn();
  clock.advance(TTL_MS - MARGIN_MS - 1_000 - 1);
  expect(held.lost.aborted).toBe(false);
  clock.advance(1);
  expect(held.lost.aborted).toBe(true);
});

test("a lease that etcd does not know any more is lost at once", async () => {
  const { clock, renewals, lease } = openScene();
  const held = await lease;
  clock.advance(INTERVAL_MS);
  await turn();
  renewals[0]?.emit("data", { TTL: "0" });
  await turn();
  expect(held.lost.aborted).toBe(true);
});
