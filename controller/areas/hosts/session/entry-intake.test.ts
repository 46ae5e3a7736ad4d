import { expect, test } from "vitest";
import type { Batch, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import { EntryIntake } from "./entry-intake.ts";
import { EntryRoom } from "./entry-room.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function batch(...sequences: readonly number[]): Batch {
  const entries = sequences.map((sequence): Entry => ({ sequence, timeMs: 0, traceparent: "", body: undefined }));
  return { streamId: "s", entries } as Batch;
}

/** An intake whose turn comes when the test says so. */
function openIntake() {
  const heard = { accepted: [] as number[], acknowledged: [] as number[], failures: [] as unknown[], isOver: false };
  const turns: (() => void)[] = [];
  const intake = new EntryIntake({
    sink: {
      accept: async (_source: unknown, batches: readonly Batch[]) =>
        void heard.accepted.push(...batches.flatMap(({ entries }) => entries.map(({ sequence }) => sequence))),
    } as never,
    room: new EntryRoom({ maxBytes: 100_000, sessionMaxBytes: 100_000 }),
    source: { tenant: "matrix", host: "h", streamId: "s" },
    slices: { isOverNow: () => true, pause: () => new Promise((resolve) => turns.push(resolve)) },
    send: (frame) => {
      if (frame?.$case === "acknowledge") heard.acknowledged.push(frame.value.throughSequence);
    },
    isOver: () => heard.isOver,
    failed: (error) => heard.failures.push(error),
  });
  const next = async (): Promise<void> => {
    turns.shift()?.();
    await turn();
  };
  return { intake, heard, next };
}

test("entries wait for their turn, and what came meanwhile is handed over with them", async () => {
  const { intake, heard, next } = openIntake();
  await intake.take(batch(1, 2));
  await intake.take(batch(3));
  await turn();
  expect(heard.accepted).toEqual([]);
  await next();
  expect([heard.accepted, heard.acknowledged]).toEqual([[1, 2, 3], [3]]);
  await intake.take(batch(4));
  await next();
  expect([heard.accepted, heard.failures]).toEqual([[1, 2, 3, 4], []]);
});

test("a session that ends while its entries wait hands none of them over", async () => {
  const { intake, heard, next } = openIntake();
  await intake.take(batch(1));
  heard.isOver = true;
  await next();
  expect([heard.accepted, heard.acknowledged, heard.failures]).toEqual([[], [], []]);
});
