import { expect, test } from "vitest";
import { seededRandom } from "../../test/helpers/time/clock.ts";
import { decodeStored, encodePacked } from "./format.ts";
import { NO_SCALAR, PackedReader } from "./packed-reader.ts";

const SCALARS = [
  ...[
    "",
    "a",
    "é",
    "🙂".repeat(5),
    "x".repeat(31),
    "x".repeat(32),
    "x".repeat(255),
    "x".repeat(256),
    "y".repeat(70_000),
  ],
  ...[0, -1, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 1_764_000_000_000, 2 ** 53, -(2 ** 53)],
  ...[-32, -33, -128, -129, -32_768, -32_769, -(2 ** 31), -(2 ** 31) - 1, 0.1, -1.5, 1e300],
  ...[true, false, null],
];
const OTHERS = [[], ["a", [1]], { a: 1, b: ["c"] }, Buffer.from("bytes"), Array.from({ length: 70_000 }, () => 1)];

function bufferOf(value: unknown): Buffer {
  return Buffer.from(encodePacked(value));
}

test("every scalar is read as it was written, and any value is passed over", () => {
  const random = seededRandom(17);
  const all: readonly unknown[] = [...SCALARS, ...OTHERS];
  const values = Array.from({ length: 500 }, () => all[Math.floor(random.next() * all.length)]);
  const bytes = bufferOf(values);
  expect(decodeStored<unknown[]>(bytes)).toHaveLength(values.length);
  const reader = new PackedReader();
  reader.begin(bytes);
  expect(reader.list()).toBe(values.length);
  for (const value of values) {
    const isRead = random.next() < 0.5 && (SCALARS as readonly unknown[]).includes(value);
    if (isRead) expect(reader.scalar()).toBe(value);
    else expect(reader.skip()).toBe(true);
  }
  expect(reader.at).toBe(bytes.length);
});

test("what is no scalar, no list or no bytes is told apart", () => {
  const reader = new PackedReader();
  for (const value of OTHERS) {
    reader.begin(bufferOf(value));
    expect(reader.scalar()).toBe(NO_SCALAR);
  }
  reader.begin(bufferOf({ a: 1 }));
  expect(reader.list()).toBe(-1);
  reader.begin(bufferOf("text"));
  expect(reader.binary()).toBe(-1);
  reader.begin(bufferOf(Buffer.from("bytes")));
  expect(bufferOf(Buffer.from("bytes")).toString("latin1", reader.binary(), reader.at)).toBe("bytes");
  reader.begin(bufferOf(new Date(0)));
  expect(reader.skip()).toBe(false);
});
