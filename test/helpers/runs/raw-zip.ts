import { crc32, deflateRawSync } from "node:zlib";

/** An entry of a zip archive of which every field can lie. */
export interface RawEntry {
  readonly name: string | Buffer;
  readonly content?: string | Buffer;
  readonly isPacked?: boolean;
  /** Fields as they are written instead of the true ones. */
  readonly size?: number;
  readonly packedSize?: number;
  readonly crc?: number;
  readonly flags?: number;
  readonly method?: number;
  readonly mode?: number;
  /** Index of an earlier entry whose bytes this entry names as its own. */
  readonly shares?: number;
  /** Bytes that the offset in the list is moved by. */
  readonly shift?: number;
  /** Writes the sizes as 64-bit numbers. */
  readonly isZip64?: boolean;
}

export const UTF8_NAME = 0x800;
export const ENCRYPTED = 0x1;
const ZIP64 = 0xffffffff;

interface Written {
  readonly local: Buffer;
  readonly record: (offset: number) => Buffer;
}

/** Creates a zip archive by APPNOTE 4.3. Nothing is checked. */
export function rawZip(entries: readonly RawEntry[], { isZip64 = false } = {}): Buffer {
  const written = entries.map(writtenEntry);
  const offsets: number[] = [];
  const locals: Buffer[] = [];
  let end = 0;
  for (const [at, { local }] of written.entries()) {
    const { shares, shift = 0 } = entries[at] ?? { name: "" };
    offsets.push((shares === undefined ? end : (offsets[shares] ?? 0)) + shift);
    if (shares !== undefined) continue;
    locals.push(local);
    end += local.length;
  }
  const list = Buffer.concat(written.map(({ record }, at) => record(offsets[at] ?? 0)));
  return Buffer.concat([...locals, list, ...endOf({ count: entries.length, size: list.length, offset: end }, isZip64)]);
}

function writtenEntry(entry: RawEntry): Written {
  const name = Buffer.from(entry.name);
  const content = Buffer.from(entry.content ?? "");
  const packed = entry.isPacked ? deflateRawSync(content) : content;
  const size = entry.size ?? content.length;
  const packedSize = entry.packedSize ?? packed.length;
  const head = Buffer.alloc(26);
  head.writeUInt16LE(entry.isZip64 ? 45 : 20, 0);
  head.writeUInt16LE(entry.flags ?? UTF8_NAME, 2);
  head.writeUInt16LE(entry.method ?? (entry.isPacked ? 8 : 0), 4);
  head.writeUInt16LE(0x21, 8);
  head.writeUInt32LE(entry.crc ?? crc32(content), 10);
  head.writeUInt32LE(entry.isZip64 ? ZIP64 : packedSize, 14);
  head.writeUInt32LE(entry.isZip64 ? ZIP64 : size, 18);
  head.writeUInt16LE(name.length, 22);
  const sizes = entry.isZip64 ? sizesField(size, packedSize) : Buffer.alloc(0);
  head.writeUInt16LE(sizes.length, 24);
  return {
    local: Buffer.concat([Buffer.from("PK\u0003\u0004", "latin1"), head, name, sizes, packed]),
    record: (offset) => {
      const tail = Buffer.alloc(14);
      tail.writeUInt32LE(((entry.mode ?? 0o100644) << 16) >>> 0, 6);
      tail.writeUInt32LE(offset, 10);
      return Buffer.concat([Buffer.from("PK\u0001\u0002\u003f\u0003", "latin1"), head, tail, name, sizes]);
    },
  };
}

/** The zip64 extended information (APPNOTE 4.5.3). */
function sizesField(size: number, packedSize: number): Buffer {
  const field = Buffer.alloc(20);
  field.writeUInt16LE(1, 0);
  field.writeUInt16LE(16, 2);
  field.writeBigUInt64LE(BigInt(size), 4);
  field.writeBigUInt64LE(BigInt(packedSize), 12);
  return field;
}

function endOf(
  { count, size, offset }: { readonly count: number; readonly size: number; readonly offset: number },
  isZip64: boolean,
): readonly Buffer[] {
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  end.writeUInt16LE(isZip64 ? 0xffff : count, 8);
  end.writeUInt16LE(isZip64 ? 0xffff : count, 10);
  end.writeUInt32LE(isZip64 ? ZIP64 : size, 12);
  end.writeUInt32LE(isZip64 ? ZIP64 : offset, 16);
  if (!isZip64) return [end];
  const record = Buffer.alloc(56);
  record.write("PK\u0006\u0006", "latin1");
  record.writeBigUInt64LE(44n, 4);
  record.writeUInt16LE(45, 12);
  record.writeUInt16LE(45, 14);
  for (const [at, value] of [count, count, size, offset].entries()) record.writeBigUInt64LE(BigInt(value), 24 + 8 * at);
  const locator = Buffer.alloc(20);
  locator.write("PK\u0006\u0007", "latin1");
  locator.writeBigUInt64LE(BigInt(offset + size), 8);
  locator.writeUInt32LE(1, 16);
  return [record, locator, end];
}
