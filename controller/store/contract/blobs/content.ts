import { createHash } from "node:crypto";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import type { BlobInfo, BlobStore, ByteRange } from "../../blobs.ts";
import { again, uniqueName } from "../harness.ts";

/** Content that never existed before, so that no test finds content of another one. */
export function unique(size: number): Uint8Array {
  const random = seededRandom(createHash("sha256").update(uniqueName("content")).digest().readUInt32LE());
  const content = random.bytes(Math.min(size, 4_096));
  return Uint8Array.from(
    { length: size },
    (_, i) => (content[i % content.length]! + Math.floor(i / 4_096) * 13) & 0xff,
  );
}

/** Puts content as a whole, for one owner. */
export function put(blobs: BlobStore, content: Uint8Array, owner: string): Promise<BlobInfo> {
  return again(() => blobs.put([content], owner));
}

export function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

/** Content in pieces of `size` bytes. */
export function* pieces(content: Uint8Array, size: number): Iterable<Uint8Array> {
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

/** Content, or a range of it, read whole. */
export async function readAll(blobs: BlobStore, digest: string, range?: ByteRange): Promise<Uint8Array> {
  return again(async () => {
    const parts: Uint8Array[] = [];
    for await (const part of blobs.read(digest, range)) parts.push(part);
    return new Uint8Array(Buffer.concat(parts));
  });
}

/** The bytes of a stream from `from` up to its end. */
export async function readWholeStream(blobs: BlobStore, stream: string, from = 0): Promise<Uint8Array> {
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
