import cassandra from "cassandra-driver";
import { expect, test } from "vitest";
import { correctListDecoding } from "./list-decoding.ts";

const { dataTypes } = cassandra.types;
const TYPE = { code: dataTypes.list, info: { code: dataTypes.int, info: null } };

interface Encoder {
  decode(bytes: Buffer | null, type: typeof TYPE): unknown;
}
const { Encoder } = cassandra as unknown as {
  readonly Encoder: new (version: number, options: object) => Encoder;
};

/** A list as Cassandra sends it: a count, then each item after its length; a null is only the length −1. */
function listOf(...items: readonly (number | null)[]): Buffer {
  const parts = items.map((item) => (item === null ? int(-1) : Buffer.concat([int(4), int(item)])));
  return Buffer.concat([int(items.length), ...parts]);
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

test("lists are read with their nulls, wherever these stand", () => {
  correctListDecoding();
  correctListDecoding();
  const encoder = new Encoder(5, {});
  for (const items of [[], [7], [null], [null, 7], [7, null, null, 8], [null, 1, null, 2, null]])
    expect(encoder.decode(listOf(...items), TYPE), JSON.stringify(items)).toEqual(items);
  expect(encoder.decode(null, TYPE)).toBeNull();
});
