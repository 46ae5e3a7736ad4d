/** Records of zip archives that are written (APPNOTE 6.3.10). Sizes and offsets of more than 32 bits are zip64. */

export interface PartName {
  /** Relative path; that of a folder ends with a slash. */
  readonly path: string;
  readonly modified: Date;
  /** True: the time is written only as local time without a zone, so that equal contents give equal archives. */
  readonly isPlainTime: boolean;
  readonly isFolder: boolean;
  readonly isPacked: boolean;
  /** True: the sizes after the content have 64 bits. */
  readonly isLarge: boolean;
}

export interface PartContent {
  readonly crc: number;
  readonly size: number;
  readonly packedSize: number;
}

export interface ListEnd {
  readonly count: number;
  readonly offset: number;
  readonly size: number;
}

/** The largest number of 32 bits says that the number is in the zip64 field. */
export const ZIP_MAX_32 = 0xffff_ffff;
const MAX_16 = 0xffff;

const SIGNATURES = {
  local: 0x0403_4b50,
  descriptor: 0x0807_4b50,
  central: 0x0201_4b50,
  end: 0x0605_4b50,
  end64: 0x0606_4b50,
  locator64: 0x0706_4b50,
} as const;
const VERSIONS = { packed: 20, zip64: 45 } as const;
/** Made on Unix, so that modes apply, by version 6.3. */
const MADE_BY = (3 << 8) | 63;
const FLAGS = { sizesFollow: 1 << 3, utf8: 1 << 11 } as const;
const DEFLATE = 8;
const FIELDS = { zip64: 0x0001, time: 0x5455 } as const;
const MODES = { file: 0o100644, folder: 0o040755 } as const;
const MODE_SHIFT = 2 ** 16;

type Field = readonly [bytes: 2 | 4 | 8, value: number];

/** The record before a content. */
export function localHeader(part: PartName): Buffer {
  const name = Buffer.from(part.path);
  // The sizes are 0 until they follow. The field says only that they will have 64 bits.
  const fields = Buffer.concat([part.isLarge ? zip64Field([0, 0]) : NOTHING, timeField(part)]);
  const placeholder = part.isLarge ? ZIP_MAX_32 : 0;
  return Buffer.concat([
    record([4, SIGNATURES.local], [2, part.isLarge ? VERSIONS.zip64 : VERSIONS.packed], ...common(part)),
    record([4, 0], [4, placeholder], [4, placeholder], [2, name.length], [2, fields.length]),
    name,
    fields,
  ]);
}

/** The record after a content; empty for a folder. */
export function descriptor({ isFolder, isLarge }: PartName, { crc, size, packedSize }: PartContent): Buffer {
  if (isFolder) return NOTHING;
  const bytes = isLarge ? 8 : 4;
  return record([4, SIGNATURES.descriptor], [4, crc], [bytes, packedSize], [bytes, size]);
}

/** The record in the list at the end of the archive. */
export function centralRecord(part: PartName, { crc, size, packedSize }: PartContent, offset: number): Buffer {
  const name = Buffer.from(part.path);
  const large = [size, packedSize, offset].filter((value) => value >= ZIP_MAX_32);
  const fields = Buffer.concat([large.length > 0 ? zip64Field(large) : NOTHING, timeField(part)]);
  const version = large.length > 0 || part.isLarge ? VERSIONS.zip64 : VERSIONS.packed;
  const mode = part.isFolder ? MODES.folder : MODES.file;
  return Buffer.concat([
    record([4, SIGNATURES.central], [2, MADE_BY], [2, version], ...common(part)),
    record([4, crc], [4, within32(packedSize)], [4, within32(size)], [2, name.length], [2, fields.length]),
    // No comment, on the first disk, no internal attributes.
    record([2, 0], [2, 0], [2, 0], [4, mode * MODE_SHIFT], [4, within32(offset)]),
    name,
    fields,
  ]);
}

/** The end of the archive, after its list. */
export function endRecords({ count, offset, size }: ListEnd): Buffer {
  const counts = Math.min(count, MAX_16);
  const end = Buffer.concat([
    record([4, SIGNATURES.end], [2, 0], [2, 0], [2, counts], [2, counts]),
    record([4, within32(size)], [4, within32(offset)], [2, 0]),
  ]);
  if (count < MAX_16 && offset < ZIP_MAX_32 && size < ZIP_MAX_32) return end;
  return Buffer.concat([
    record([4, SIGNATURES.end64], [8, 44], [2, MADE_BY], [2, VERSIONS.zip64], [4, 0], [4, 0]),
    record([8, count], [8, count], [8, size], [8, offset]),
    record([4, SIGNATURES.locator64], [4, 0], [8, offset + size], [4, 1]),
    end,
  ]);
}

const NOTHING = Buffer.alloc(0);

/** Flags, packing and time, as both the local header and the list state them. */
function common({ isFolder, isPacked, modified }: PartName): readonly Field[] {
  const flags = FLAGS.utf8 | (isFolder ? 0 : FLAGS.sizesFollow);
  const [time, date] = dosTime(modified);
  return [
    [2, flags],
    [2, isPacked ? DEFLATE : 0],
    [2, time],
    [2, date],
  ];
}

function zip64Field(values: readonly number[]): Buffer {
  return record([2, FIELDS.zip64], [2, 8 * values.length], ...values.map((value) => [8, value] as const));
}

/** The time in seconds since 1970, of 32 bits with a sign (extended timestamp of Info-ZIP). */
function timeField({ modified, isPlainTime }: PartName): Buffer {
  if (isPlainTime) return NOTHING;
  const seconds = Math.floor(modified.getTime() / 1_000);
  const field = Buffer.alloc(9);
  field.writeUInt16LE(FIELDS.time, 0);
  field.writeUInt16LE(5, 2);
  // Only the time of the last change.
  field.writeUInt8(1, 4);
  field.writeInt32LE(Math.min(Math.max(seconds, -(2 ** 31)), 2 ** 31 - 1), 5);
  return field;
}

const DOS_YEARS = { first: 1980, last: 2107 } as const;

/** Local time in steps of two seconds. */
function dosTime(at: Date): readonly [time: number, date: number] {
  const year = at.getFullYear();
  if (year < DOS_YEARS.first) return [0, (1 << 5) | 1];
  const years = Math.min(year, DOS_YEARS.last) - DOS_YEARS.first;
  const time = (at.getHours() << 11) | (at.getMinutes() << 5) | (at.getSeconds() >> 1);
  return [time, (years << 9) | ((at.getMonth() + 1) << 5) | at.getDate()];
}

function within32(value: number): number {
  return Math.min(value, ZIP_MAX_32);
}

/** Numbers in the order of little-endian bytes. */
function record(...fields: readonly Field[]): Buffer {
  const bytes = Buffer.alloc(fields.reduce((length, [size]) => length + size, 0));
  let at = 0;
  for (const [size, value] of fields) {
    if (size === 8) bytes.writeBigUInt64LE(BigInt(value), at);
    else bytes.writeUIntLE(value, at, size);
    at += size;
  }
  return bytes;
}
