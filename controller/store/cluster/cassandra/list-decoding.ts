import cassandra from "cassandra-driver";

interface ListType {
  readonly code: number;
  readonly info: unknown;
}

interface Encoder {
  decode(bytes: Buffer | null, type: ListType): unknown;
}

const LENGTH_BYTES = 4;
const { prototype } = (cassandra as unknown as { readonly Encoder: { readonly prototype: Encoder } }).Encoder;
const { list } = cassandra.types.dataTypes;
let isCorrected = false;

/**
 * Makes the driver read lists with nulls, such as the `TTL` of a map in which some cells never expire. Without this
 * correction, the driver takes a null for an item of −1 bytes, steps back by one, and misreads everything that follows
 * (cassandra-driver 4.10.0, `decodeList`). Call it once per process.
 */
export function correctListDecoding(): void {
  if (isCorrected) return;
  isCorrected = true;
  const decode = prototype.decode;
  prototype.decode = function (bytes, type) {
    if (bytes === null || bytes.length === 0 || type.code !== list) return decode.call(this, bytes, type);
    return itemsOf(bytes, (item) => decode.call(this, item, type.info as ListType));
  };
}

/** The items of a `list` since version 3 of the native protocol: a count, then length and bytes of each item. */
function itemsOf(bytes: Buffer, decode: (item: Buffer | null) => unknown): readonly unknown[] {
  let offset = LENGTH_BYTES;
  return Array.from({ length: bytes.readInt32BE(0) }, () => {
    const length = bytes.readInt32BE(offset);
    const from = offset + LENGTH_BYTES;
    offset = from + Math.max(0, length);
    return decode(length < 0 ? null : bytes.subarray(from, offset));
  });
}
