import { crc32 } from "node:zlib";
import { validateFileName, type Entry } from "yauzl";
import { AppError } from "../../common/errors.ts";
import { encodingNamed, UTF8, type Encoding } from "../../common/text/encodings.ts";
import { decodeText, refusing } from "../../common/text/text-stream.ts";

/** General purpose flag of a zip entry: its name is UTF-8 (APPNOTE 4.4.4, bit 11). */
const UTF8_FLAG = 0x800;
/** Info-ZIP Unicode Path Extra Field (APPNOTE 4.6.9): version, CRC-32 of the name in the header, the name as UTF-8. */
const UNICODE_PATH = { id: 0x7075, version: 1, nameAt: 5 } as const;

/**
 * Encoding of names in archives that do not state their own. `AppError("invalid")` for an encoding with units of more
 * than one byte.
 */
export function nameEncoding(name: string | undefined): Encoding | undefined {
  if (name === undefined || name === "") return undefined;
  const encoding = encodingNamed(name);
  if (encoding.unitBytes > 1) throw new AppError("invalid", `encoding=${encoding.name} is none of names in archives.`);
  return encoding;
}

/** Decodes a name in an archive by the request's encoding, by default UTF-8. Refuses bytes that are invalid in it. */
export function archiveName(bytes: Uint8Array, encoding: Encoding = UTF8): string {
  const shown = JSON.stringify(Buffer.from(bytes).toString("latin1"));
  const refuse = refusing(`The name ${shown} in the archive`);
  return decodeText(bytes, encoding, { refuse, isWithin: true }).text;
}

/** The name of a zip entry from its raw bytes. If the archive states their encoding, that encoding applies. */
export function zipName(entry: Entry, encoding: Encoding | undefined): string {
  const unicode = unicodePath(entry);
  const isUtf8 = unicode !== undefined || (entry.generalPurposeBitFlag & UTF8_FLAG) !== 0;
  const name = archiveName(unicode ?? entry.fileNameRaw, isUtf8 ? UTF8 : encoding);
  const fault = validateFileName(name);
  if (fault !== null)
    throw new AppError("invalid", `The archive's entry ${JSON.stringify(name)} is refused: ${fault}.`);
  return name;
}

/**
 * `undefined` if the field's checksum is of another name: an archiver that does not know the field renamed the entry.
 */
function unicodePath({ extraFields, fileNameRaw }: Entry): Buffer | undefined {
  const { id, version, nameAt } = UNICODE_PATH;
  const field = extraFields.find((one) => one.id === id && one.data.length > nameAt && one.data[0] === version);
  if (field === undefined || field.data.readUInt32LE(1) !== crc32(fileNameRaw)) return undefined;
  return field.data.subarray(nameAt);
}
