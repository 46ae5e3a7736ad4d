import { expect, test } from "vitest";
import { BLOB_CHUNK_MAX_BYTES } from "../../../../common/limits.ts";
import type { BlobStore, ByteRange } from "../../blobs.ts";
import { again, same, uniqueName } from "../harness.ts";
import { pieces, put, readAll, sha256, unique } from "./content.ts";

/** Content that is put and read, whole and in ranges. */
export function contentContract(blobs: () => BlobStore): void {
  test("content is named by its SHA-256 and read back whole", async () => {
    const content = unique(100);
    const info = await put(blobs(), content, uniqueName("owner"));
    expect(info).toEqual({ digest: sha256(content), size: 100 });
    expect(await again(() => blobs().stat(info.digest))).toEqual(info);
    expect(same(await readAll(blobs(), info.digest), content)).toBe(true);
  });

  test("content over several chunks, in pieces of any size", async () => {
    const content = unique(2 * BLOB_CHUNK_MAX_BYTES + 12_345);
    const info = await again(() => blobs().put(pieces(content, 300_001), uniqueName("owner")));
    expect(info).toEqual({ digest: sha256(content), size: content.length });
    expect((await put(blobs(), content, uniqueName("owner"))).digest).toBe(info.digest);
    expect(same(await readAll(blobs(), info.digest), content)).toBe(true);
  });

  test("any range of it", async () => {
    const content = unique(BLOB_CHUNK_MAX_BYTES + 1_000);
    const { digest } = await put(blobs(), content, uniqueName("owner"));
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
        same(await readAll(blobs(), digest, range), content.subarray(range.start ?? 0, range.end)),
        JSON.stringify(range),
      ).toBe(true);
    }
  });

  test("nothing is content, too", async () => {
    const info = await again(() => blobs().put([], uniqueName("owner")));
    expect(info).toEqual({ digest: sha256(new Uint8Array(0)), size: 0 });
    expect(await readAll(blobs(), info.digest)).toHaveLength(0);
  });
}

/** Content that does not exist. */
export function absentContentContract(blobs: () => BlobStore): void {
  test("what is not there is absent", async () => {
    const digest = sha256(unique(10));
    expect(await again(() => blobs().stat(digest))).toBeUndefined();
    await expect(readAll(blobs(), digest)).rejects.toMatchObject({ code: "not_found" });
    await expect(readAll(blobs(), "../../etc/passwd")).rejects.toMatchObject({ code: "not_found" });
  });

  test("a source that fails leaves nothing behind", async () => {
    const content = unique(1_000);
    async function* failing(): AsyncIterable<Uint8Array> {
      yield content;
      throw new Error("the upload broke off");
    }
    await expect(again(() => blobs().put(failing(), uniqueName("owner")))).rejects.toThrow("the upload broke off");
    expect(await again(() => blobs().stat(sha256(content)))).toBeUndefined();
  });
}
