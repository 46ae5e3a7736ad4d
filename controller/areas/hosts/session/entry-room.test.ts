import { expect, test } from "vitest";
import type { Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import { EntryRoom } from "./entry-room.ts";

const KIB = 1_024;

function entryOf(bytes: number): Entry {
  const value = { commandId: "c", stderr: false, offset: 0, data: Buffer.alloc(bytes) };
  return { sequence: 1, timeMs: 0, traceparent: "", body: { $case: "output", value } };
}

/** Reports if the batch has been admitted yet. */
function watched(taking: Promise<void>): { admitted: boolean } {
  const state = { admitted: false };
  void taking.then(() => (state.admitted = true));
  return state;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("a session that has sent much waits for itself and holds up nobody", async () => {
  const room = new EntryRoom({ maxBytes: 100 * KIB, sessionMaxBytes: 10 * KIB });
  const [greedy, modest] = [room.open(), room.open()];
  const first = [entryOf(9 * KIB)];
  await greedy.take(first);
  const second = watched(greedy.take([entryOf(9 * KIB)]));
  await modest.take([entryOf(9 * KIB)]);
  expect(second.admitted).toBe(false);
  greedy.give(first);
  await turn();
  expect(second.admitted).toBe(true);
  expect(room.heldBytes).toBeLessThan(20 * KIB);
});

test("when all together have sent too much, they go on in their order", async () => {
  const room = new EntryRoom({ maxBytes: 10 * KIB, sessionMaxBytes: 10 * KIB });
  const [first, large, small] = [room.open(), room.open(), room.open()];
  const entries = [entryOf(6 * KIB)];
  await first.take(entries);
  const waiting = [watched(large.take([entryOf(8 * KIB)])), watched(small.take([entryOf(KIB)]))];
  await turn();
  expect(waiting.map(({ admitted }) => admitted)).toEqual([false, false]);
  first.give(entries);
  await turn();
  expect(waiting.map(({ admitted }) => admitted)).toEqual([true, true]);
});

test("a batch larger than the bound goes alone", async () => {
  const room = new EntryRoom({ maxBytes: 10 * KIB, sessionMaxBytes: 5 * KIB });
  const place = room.open();
  await place.take([entryOf(50 * KIB)]);
  const next = watched(place.take([entryOf(1)]));
  await turn();
  expect(next.admitted).toBe(false);
});

test("what fills a bound to the last byte has room, of a session and of all", async () => {
  const weighed = new EntryRoom({ maxBytes: 100 * KIB, sessionMaxBytes: 100 * KIB });
  await weighed.open().take([entryOf(KIB)]);
  const entryBytes = weighed.heldBytes;
  for (const sessionMaxBytes of [2 * entryBytes, 2 * entryBytes - 1]) {
    const room = new EntryRoom({ maxBytes: 100 * KIB, sessionMaxBytes });
    const place = room.open();
    const taken = [watched(place.take([entryOf(KIB)])), watched(place.take([entryOf(KIB)]))];
    await turn();
    expect(taken.map(({ admitted }) => admitted)).toEqual([true, sessionMaxBytes === 2 * entryBytes]);
  }
  for (const maxBytes of [2 * entryBytes, 2 * entryBytes - 1]) {
    const room = new EntryRoom({ maxBytes, sessionMaxBytes: 100 * KIB });
    const taken = [watched(room.open().take([entryOf(KIB)])), watched(room.open().take([entryOf(KIB)]))];
    await turn();
    expect(taken.map(({ admitted }) => admitted)).toEqual([true, maxBytes === 2 * entryBytes]);
  }
});

test("a session that ends gives back what it held, and lets go who waits for it", async () => {
  const room = new EntryRoom({ maxBytes: 10 * KIB, sessionMaxBytes: 10 * KIB });
  const [gone, other] = [room.open(), room.open()];
  await gone.take([entryOf(9 * KIB)]);
  const waiting = [watched(gone.take([entryOf(9 * KIB)])), watched(other.take([entryOf(9 * KIB)]))];
  gone.leave();
  await turn();
  expect(waiting.map(({ admitted }) => admitted)).toEqual([true, true]);
  gone.give([entryOf(9 * KIB)]);
  other.leave();
  expect(room.heldBytes).toBe(0);
});
