import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BLOB_CHUNK_MAX_BYTES } from "../../../common/limits.ts";
import { seededRandom } from "../../../test/helpers/time/clock.ts";
import type { BlobStore, ByteRange } from "../blobs.ts";
import { again, bytes, same, seedOfRun, text, uniqueName, type ContractSubject, type OpenSubject } from "./harness.ts";

const HOUR_MS = 3_600_000;

/** All promises of `BlobStore`, for any engine. */
export function blobsContract(name: string, open: OpenSubject): void {
  describe(`BlobStore: ${name}`, () => {
    let subject: ContractSubject;
    let blobs: BlobStore;
    beforeAll(async () => {
      subject = await open();
      blobs = subject.store.blobs;
    });
    afterAll(async () => subject.close());

    const put = (content: Uint8Array, owner: string) => again(() => blobs.put([content], owner));

    test("content is named by its SHA-256 and read back whole", async () => {
      const content = unique(100);
      const info = await put(content, uniqueName("owner"));
      expect(info).toEqual({ digest: sha256(content), size: 100 });
      expect(await again(() => blobs.stat(info.digest))).toEqual(info);
      expect(same(await readAll(blobs, info.digest), content)).toBe(true);
    });

    test("content over several chunks, in pieces of any size", async () => {
      const content = unique(2 * BLOB_CHUNK_MAX_BYTES + 12_345);
      const info = await again(() => blobs.put(pieces(content, 300_001), uniqueName("owner")));
      expect(info).toEqual({ digest: sha256(content), size: content.length });
      expect((await put(content, uniqueName("owner"))).digest).toBe(info.digest);
      expect(same(await readAll(blobs, info.digest), content)).toBe(true);
    });

    test("any range of it", async () => {
      const content = unique(BLOB_CHUNK_MAX_BYTES + 1_000);
      const { digest } = await put(content, uniqueName("owner"));
      const edge = BLOB_CHUNK_MAX_BYTES;
      const ranges: ByteRange[] = [
        {},
        { start: 0, end: 1 },
        { start: 10 },
        { end: 10 },
        { start: edge - 5, end: edge + 5 },
        { start: edge },
        { start: edge, end: edge },
        { start: content.length - 1 },
        { start: content.length },
        { start: 5, end: content.length + 100 },
      ];
      for (const range of ranges) {
        expect(
          same(await readAll(blobs, digest, range), content.subarray(range.start ?? 0, range.end)),
          JSON.stringify(range),
        ).toBe(true);
      }
    });

    test("nothing is content, too", async () => {
      const info = await again(() => blobs.put([], uniqueName("owner")));
      expect(info).toEqual({ digest: sha256(new Uint8Array(0)), size: 0 });
      expect(await readAll(blobs, info.digest)).toHaveLength(0);
    });

    test("what is not there is absent", async () => {
      const digest = sha256(unique(10));
      expect(await again(() => blobs.stat(digest))).toBeUndefined();
      await expect(readAll(blobs, digest)).rejects.toMatchObject({ code: "not_found" });
      await expect(readAll(blobs, "../../etc/passwd")).rejects.toMatchObject({ code: "not_found" });
    });

    test("a source that fails leaves nothing behind", async () => {
      const content = unique(1_000);
      async function* failing(): AsyncIterable<Uint8Array> {
        yield content;
        throw new Error("the upload broke off");
      }
      await expect(again(() => blobs.put(failing(), uniqueName("owner")))).rejects.toThrow("the upload broke off");
      expect(await again(() => blobs.stat(sha256(content)))).toBeUndefined();
    });

    test("a sweep removes what nobody marks, and nothing else", async () => {
      const [first, second] = [uniqueName("first"), uniqueName("second")];
      const [kept, doomed] = [await put(unique(50), first), await put(unique(50), first)];
      await again(() => blobs.mark(kept.digest, second));
      await again(() => blobs.mark(kept.digest, second));
      await again(() => blobs.unmark(kept.digest, first));
      await again(() => blobs.unmark(doomed.digest, first));
      await again(() => blobs.unmark(doomed.digest, uniqueName("never")));
      await subject.advance?.(1_000);
      await again(() => blobs.sweep(HOUR_MS));
      expect(await again(() => blobs.stat(doomed.digest))).toBeDefined();
      expect(await again(() => blobs.sweep(0))).toBeGreaterThanOrEqual(1);
      expect(await again(() => blobs.stat(doomed.digest))).toBeUndefined();
      expect(await again(() => blobs.stat(kept.digest))).toEqual(kept);
      await again(() => blobs.unmark(kept.digest, second));
      await subject.advance?.(1_000);
      await again(() => blobs.sweep(0));
      expect(await again(() => blobs.stat(kept.digest))).toBeUndefined();
    });

    test("content that was swept can come again", async () => {
      const content = unique(70);
      const owner = uniqueName("owner");
      const { digest } = await put(content, owner);
      await again(() => blobs.unmark(digest, owner));
      await subject.advance?.(1_000);
      await again(() => blobs.sweep(0));
      await put(content, owner);
      await again(() => blobs.sweep(0));
      expect(same(await readAll(blobs, digest), content)).toBe(true);
    });

    test("a stream grows at its end; a repeat changes nothing, other bytes are refused", async () => {
      const stream = uniqueName("stream");
      expect(await again(() => blobs.readStream(stream, 0, 100))).toMatchObject({ size: 0 });
      expect(await again(() => blobs.append(stream, 0, bytes("hello ")))).toEqual({ size: 6 });
      expect(await again(() => blobs.append(stream, 6, bytes("world")))).toEqual({ size: 11 });
      expect(await again(() => blobs.append(stream, 6, bytes("world")))).toEqual({ size: 11 });
      expect(await again(() => blobs.append(stream, 0, bytes("hel")))).toEqual({ size: 11 });
      expect(await again(() => blobs.append(stream, 6, bytes("world!")))).toEqual({ size: 12 });
      const conflict = { code: "conflict" };
      await expect(again(() => blobs.append(stream, 6, bytes("World")))).rejects.toMatchObject(conflict);
      await expect(again(() => blobs.append(stream, 13, bytes("gap")))).rejects.toMatchObject(conflict);
      expect(text(await readWholeStream(blobs, stream))).toBe("hello world!");
    });

    test("a stream is read from anywhere, at most so much", async () => {
      const stream = uniqueName("stream");
      const content = unique(30_000);
      for (let at = 0; at < content.length; at += 7_000)
        await again(() => blobs.append(stream, at, content.subarray(at, at + 7_000)));
      const part = await again(() => blobs.readStream(stream, 6_990, 20));
      expect(part.size).toBe(30_000);
      expect(part.bytes.length).toBeGreaterThan(0);
      expect(part.bytes.length).toBeLessThanOrEqual(20);
      expect(same(part.bytes, content.subarray(6_990, 6_990 + part.bytes.length))).toBe(true);
      expect(same(await readWholeStream(blobs, stream, 25_000), content.subarray(25_000))).toBe(true);
      expect((await again(() => blobs.readStream(stream, 30_000, 10))).bytes).toHaveLength(0);
      expect((await again(() => blobs.readStream(stream, 40_000, 10))).bytes).toHaveLength(0);
    });

    test("a removed stream begins anew", async () => {
      const stream = uniqueName("stream");
      await again(() => blobs.append(stream, 0, bytes("old")));
      await again(() => blobs.removeStream(stream));
      await again(() => blobs.removeStream(stream));
      expect(await again(() => blobs.readStream(stream, 0, 10))).toMatchObject({ size: 0 });
      expect(await again(() => blobs.append(stream, 0, bytes("new")))).toEqual({ size: 3 });
      expect(text(await readWholeStream(blobs, stream))).toBe("new");
    });

    test("tenants do not see each other", async () => {
      const [stream, owner] = [uniqueName("stream"), uniqueName("owner")];
      const { digest } = await put(unique(20), owner);
      await again(() => blobs.append(stream, 0, bytes("mine")));
      expect(await again(() => subject.other.blobs.stat(digest))).toBeUndefined();
      await expect(readAll(subject.other.blobs, digest)).rejects.toMatchObject({ code: "not_found" });
      expect(await again(() => subject.other.blobs.readStream(stream, 0, 10))).toMatchObject({ size: 0 });
    });

    test("a stream holds exactly what was acknowledged, under random appends and repeats", async () => {
      const random = seededRandom(seedOfRun(`BlobStore ${name}`));
      const stream = uniqueName("model");
      let content = new Uint8Array(0);
      for (let step = 0; step < 120; step++) {
        // Starts a little before the end: existing bytes, followed by new ones.
        const from = Math.max(0, content.length - Math.floor(random.next() * 50));
        const more = random.bytes(Math.floor(random.next() * 2_000));
        const written = Buffer.concat([content.subarray(from), more]);
        const { size } = await again(() => blobs.append(stream, from, written));
        content = new Uint8Array(Buffer.concat([content.subarray(0, from), written]));
        expect(size).toBe(content.length);
      }
      expect(same(await readWholeStream(blobs, stream), content)).toBe(true);
    });
  });
}

/** Content that never existed before, so that no test finds content of another one. */
function unique(size: number): Uint8Array {
  const random = seededRandom(createHash("sha256").update(uniqueName("content")).digest().readUInt32LE());
  const content = random.bytes(Math.min(size, 4_096));
  return Uint8Array.from(
    { length: size },
    (_, i) => (content[i % content.length]! + Math.floor(i / 4_096) * 13) & 0xff,
  );
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

function* pieces(content: Uint8Array, size: number): Iterable<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

async function readAll(blobs: BlobStore, digest: string, range?: ByteRange): Promise<Uint8Array> {
  return again(async () => {
    const parts: Uint8Array[] = [];
    for await (const part of blobs.read(digest, range)) parts.push(part);
    return new Uint8Array(Buffer.concat(parts));
  });
}

async function readWholeStream(blobs: BlobStore, stream: string, from = 0): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let offset = from;
  for (;;) {
    const part = await again(() => blobs.readStream(stream, offset, 1_000_000));
    parts.push(part.bytes);
    offset += part.bytes.length;
    if (offset >= part.size) return new Uint8Array(Buffer.concat(parts));
    if (part.bytes.length === 0) throw new Error("A stream gave nothing although there is more.");
  }
}
