import { webcrypto } from "node:crypto";
import { BLOB_CHUNK_MAX_BYTES } from "../../../common/limits.ts";
import type { ByteRange } from "../blobs.ts";

export type Digest = (bytes: Uint8Array) => Promise<Uint8Array>;

/** SHA-256, computed by a thread of Node, so that the main thread is free meanwhile. */
export async function sha256OnThread(bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await webcrypto.subtle.digest("SHA-256", bytes));
}

/**
 * The bytes from `start` to `end` of a content whose chunks `readAt` reads by their index. The next chunk is read while
 * its predecessor is used. No read is open when the iteration has ended.
 */
export async function* chunksAhead(
  readAt: (index: number) => Promise<Uint8Array>,
  { start, end }: Required<ByteRange>,
): AsyncGenerator<Uint8Array> {
  const begin = (index: number): Promise<Uint8Array> | undefined => {
    const reading = index * BLOB_CHUNK_MAX_BYTES < end ? readAt(index) : undefined;
    // Its error is thrown when its chunk is used.
    reading?.catch(() => undefined);
    return reading;
  };
  let index = Math.floor(start / BLOB_CHUNK_MAX_BYTES);
  let next = start < end ? begin(index) : undefined;
  try {
    for (; next !== undefined; index++) {
      const chunk = await next;
      next = begin(index + 1);
      const at = index * BLOB_CHUNK_MAX_BYTES;
      yield chunk.subarray(Math.max(0, start - at), Math.min(chunk.length, end - at));
    }
  } finally {
    await next?.catch(() => undefined);
  }
}
