import { expect, test } from "vitest";
import type { BlobStore } from "../../blobs.ts";
import { again, bytes, type ContractSubject, uniqueName } from "../harness.ts";
import { put, readAll, unique } from "./content.ts";

/** Another tenant of the same engine. */
export function tenantsContract(subject: () => ContractSubject): void {
  const blobs = (): BlobStore => subject().store.blobs;

  test("tenants do not see each other", async () => {
    const [stream, owner] = [uniqueName("stream"), uniqueName("owner")];
    const { digest } = await put(blobs(), unique(20), owner);
    await again(() => blobs().append(stream, 0, bytes("mine")));
    expect(await again(() => subject().other.blobs.stat(digest))).toBeUndefined();
    await expect(readAll(subject().other.blobs, digest)).rejects.toMatchObject({ code: "not_found" });
    expect(await again(() => subject().other.blobs.readStream(stream, 0, 10))).toMatchObject({ size: 0 });
  });
}
