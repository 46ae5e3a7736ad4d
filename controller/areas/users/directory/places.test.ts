import { expect, test } from "vitest";
import { ROOT_ID } from "./organizations.ts";
import { newNodeId } from "./places.ts";

const ROOT = BigInt(ROOT_ID);
const LARGEST = 2n ** 64n - 1n;

test.each([0n, 1n, LARGEST - ROOT - 1n, LARGEST - ROOT, LARGEST])(
  "an id is above that of the root and fits 64 bits, also when %s is drawn",
  (drawn) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(drawn);
    const id = BigInt(newNodeId({ next: () => 0, bytes: () => bytes }));
    expect(id > ROOT && id <= LARGEST).toBe(true);
  },
);
