import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import type { BlobStore } from "../../blobs.ts";
import { again, bytes, same, seedOfRun, text, uniqueName } from "../harness.ts";
import { readWholeStream, unique } from "./content.ts";

/** Streams that grow at their end. */
export function streamsContract(blobs: () => BlobStore): void {
  test("a stream grows at its end; a repeat changes nothing, other bytes are refused", async () => {
    const stream = uniqueName("stream");
    expect(await again(() => blobs().readStream(stream, 0, 100))).toMatchObject({ size: 0 });
    expect(await again(() => blobs().append(stream, 0, bytes("hello ")))).toEqual({ size: 6 });
    expect(await again(() => blobs().append(stream, 6, bytes("world")))).toEqual({ size: 11 });
    expect(await again(() => blobs().append(stream, 6, bytes("world")))).toEqual({ size: 11 });
    expect(await again(() => blobs().append(stream, 0, bytes("hel")))).toEqual({ size: 11 });
    expect(await again(() => blobs().append(stream, 6, bytes("world!")))).toEqual({ size: 12 });
    const conflict = { code: "conflict" };
    await expect(again(() => blobs().append(stream, 6, bytes("World")))).rejects.toMatchObject(conflict);
    await expect(again(() => blobs().append(stream, 13, bytes("gap")))).rejects.toMatchObject(conflict);
    expect(text(await readWholeStream(blobs(), stream))).toBe("hello world!");
  });

  test("a stream is read from anywhere, at most so much", async () => {
    const stream = uniqueName("stream");
    const content = unique(30_000);
    for (let at = 0; at < content.length; at += 7_000)
      await again(() => blobs().append(stream, at, content.subarray(at, at + 7_000)));
    const part = await again(() => blobs().readStream(stream, 6_990, 20));
    expect(part.size).toBe(30_000);
    expect(part.bytes.length).toBeGreaterThan(0);
    expect(part.bytes.length).toBeLessThanOrEqual(20);
    expect(same(part.bytes, content.subarray(6_990, 6_990 + part.bytes.length))).toBe(true);
    expect(same(await readWholeStream(blobs(), stream, 25_000), content.subarray(25_000))).toBe(true);
    expect((await again(() => blobs().readStream(stream, 30_000, 10))).bytes).toHaveLength(0);
    expect((await again(() => blobs().readStream(stream, 40_000, 10))).bytes).toHaveLength(0);
  });

  test("a removed stream begins anew", async () => {
    const stream = uniqueName("stream");
    await again(() => blobs().append(stream, 0, bytes("old")));
    await again(() => blobs().removeStream(stream));
    await again(() => blobs().removeStream(stream));
    expect(await again(() => blobs().readStream(stream, 0, 10))).toMatchObject({ size: 0 });
    expect(await again(() => blobs().append(stream, 0, bytes("new")))).toEqual({ size: 3 });
    expect(text(await readWholeStream(blobs(), stream))).toBe("new");
  });
}

/** Compares a stream with the bytes that were appended to it in random pieces. */
export function streamModelTest(name: string, blobs: () => BlobStore): void {
  test("a stream holds exactly what was acknowledged, under random appends and repeats", async () => {
    const random = seededRandom(seedOfRun(`BlobStore ${name}`));
    const stream = uniqueName("model");
    let content = new Uint8Array(0);
    for (let step = 0; step < 120; step++) {
      // Starts a little before the end: existing bytes, followed by new ones.
      const from = Math.max(0, content.length - Math.floor(random.next() * 50));
      const more = random.bytes(Math.floor(random.next() * 2_000));
      const written = Buffer.concat([content.subarray(from), more]);
      const { size } = await again(() => blobs().append(stream, from, written));
      content = new Uint8Array(Buffer.concat([content.subarray(0, from), written]));
      expect(size).toBe(content.length);
    }
    expect(same(await readWholeStream(blobs(), stream), content)).toBe(true);
  });
}
