import { expect, test } from "vitest";
import { BLOB_CHUNK_MAX_BYTES } from "../../../common/limits.ts";
import { chunksAhead } from "./chunks.ts";

/** Chunks that resolve when the test says so. `events` gets the begin of each read. */
function source() {
  const events: string[] = [];
  const open = new Map<number, PromiseWithResolvers>();
  const readAt = (index: number): Promise<Uint8Array> => {
    events.push(`read ${String(index)}`);
    return new Promise((resolve, reject) => open.set(index, { resolve, reject }));
  };
  const done = (index: number): void => open.get(index)?.resolve(new Uint8Array(BLOB_CHUNK_MAX_BYTES).fill(index));
  const failed = (index: number): void => open.get(index)?.reject(new Error(`no chunk ${String(index)}`));
  return { events, readAt, done, failed };
}

interface PromiseWithResolvers {
  readonly resolve: (chunk: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

const THREE = { start: 0, end: 3 * BLOB_CHUNK_MAX_BYTES };

test("while a chunk is used the next one is read, and no other", async () => {
  const { events, readAt, done } = source();
  const chunks = chunksAhead(readAt, THREE);
  const first = chunks.next();
  expect(events).toEqual(["read 0"]);
  done(0);
  await first;
  expect(events).toEqual(["read 0", "read 1"]);
  done(1);
  await Promise.resolve();
  expect(events).toEqual(["read 0", "read 1"]);
  await chunks.next();
  done(2);
  expect((await chunks.next()).value?.[0]).toBe(2);
  expect(await chunks.next()).toEqual({ done: true, value: undefined });
  expect(events).toEqual(["read 0", "read 1", "read 2"]);
});

test("a reader that leaves waits for the read that is open, and its failure is not thrown", async () => {
  const { readAt, done, failed } = source();
  const chunks = chunksAhead(readAt, THREE);
  const first = chunks.next();
  done(0);
  await first;
  let isOver = false;
  const left = chunks.return(undefined).then(() => (isOver = true));
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  failed(1);
  expect(await left).toBe(true);
});

test("a chunk that cannot be read fails after the chunks before it were used", async () => {
  const { readAt, done, failed } = source();
  const chunks = chunksAhead(readAt, THREE);
  const first = chunks.next();
  done(0);
  await first;
  failed(1);
  await new Promise(setImmediate);
  await expect(chunks.next()).rejects.toThrow("no chunk 1");
});

test("a part begins and ends inside chunks, and a part without bytes reads none", async () => {
  const { events, readAt } = source();
  const sizes: number[] = [];
  const read = (index: number): Promise<Uint8Array> => {
    void readAt(index);
    return Promise.resolve(new Uint8Array(BLOB_CHUNK_MAX_BYTES));
  };
  for await (const part of chunksAhead(read, { start: BLOB_CHUNK_MAX_BYTES - 1, end: 2 * BLOB_CHUNK_MAX_BYTES + 2 }))
    sizes.push(part.length);
  expect(sizes).toEqual([1, BLOB_CHUNK_MAX_BYTES, 2]);
  expect(events).toEqual(["read 0", "read 1", "read 2"]);
  expect((await chunksAhead(read, { start: 5, end: 5 }).next()).done).toBe(true);
  expect(events).toHaveLength(3);
});
