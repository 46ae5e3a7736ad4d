import { expect, test } from "vitest";
import { HTTP_PIECE_BYTES } from "../../../common/limits.ts";
import { cut, whole } from "./stored.ts";

const CHUNK = HTTP_PIECE_BYTES + 1;

/** Chunks of `CHUNK` bytes. `events` gets the end of the source. */
async function* source(chunks: number, events: string[] = []): AsyncGenerator<Uint8Array> {
  try {
    for (let at = 0; at < chunks; at++) yield new Uint8Array(CHUNK).fill(at);
  } finally {
    await Promise.resolve();
    events.push("ended");
  }
}

test("bytes are sent in bounded pieces, and the source has ended before the last chunk of them", async () => {
  const events: string[] = [];
  let beats = 0;
  for await (const piece of cut(source(2, events), 2 * CHUNK, () => beats++))
    events.push(`${String(piece[0])}:${String(piece.length)}`);
  expect(events).toEqual([`0:${HTTP_PIECE_BYTES}`, "0:1", "ended", `1:${HTTP_PIECE_BYTES}`, "1:1"]);
  expect(beats).toBe(4);
});

test("content without bytes has no piece", async () => {
  expect(await cut(source(0), 0, () => undefined).next()).toEqual({ done: true, value: undefined });
});

test.each([1, -1])("content that differs from its size by %i byte fails before its last byte is sent", async (more) => {
  const events: string[] = [];
  let sent = 0;
  const sending = async (): Promise<void> => {
    for await (const piece of cut(source(2, events), 2 * CHUNK + more, () => undefined)) sent += piece.length;
  };
  await expect(sending()).rejects.toMatchObject({ code: "internal" });
  expect(sent).toBeLessThan(2 * CHUNK + more);
  expect(events).toEqual(["ended"]);
});

test.each([1, -1])("a small content that differs from its size by %i byte fails before it is sent", async (more) => {
  const events: string[] = [];
  expect((await whole(source(2, events), 2 * CHUNK)).length).toBe(2 * CHUNK);
  await expect(whole(source(2, events), 2 * CHUNK + more)).rejects.toMatchObject({ code: "internal" });
  expect(events).toEqual(["ended", "ended"]);
});
