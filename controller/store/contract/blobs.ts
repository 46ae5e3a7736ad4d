import { describe } from "vitest";
import type { BlobStore } from "../blobs.ts";
import { absentContentContract, contentContract } from "./blobs/reading.ts";
import { streamModelTest, streamsContract } from "./blobs/streams.ts";
import { sweepsContract } from "./blobs/sweeps.ts";
import { tenantsContract } from "./blobs/tenants.ts";
import type { OpenSubject } from "./harness.ts";
import { opened } from "./opened.ts";

/** All promises of `BlobStore`, for any engine. */
export function blobsContract(name: string, open: OpenSubject): void {
  describe(`BlobStore: ${name}`, () => {
    const subject = opened(open);
    const blobs = (): BlobStore => subject().store.blobs;
    contentContract(blobs);
    absentContentContract(blobs);
    sweepsContract(subject);
    streamsContract(blobs);
    tenantsContract(subject);
    streamModelTest(name, blobs);
  });
}
