import type { Readable } from "node:stream";
import { stat } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { openPromise, type Entry, type ZipFile } from "yauzl";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import type { Encoding } from "../../common/text/encodings.ts";
import { tooManyEntries, unpackedByRatio, unpacksTooMuch, type ArchiveBounds } from "./bounds.ts";
import { zipName } from "./entry-names.ts";
import { ArchivePaths } from "./paths.ts";
import { damagedEntry, modeOf, refuseOddEntry, refuseOverlaps, type ZipEntry } from "./zip-entries.ts";

export interface ZipOptions {
  readonly bounds: ArchiveBounds;
  /** Encoding of names for which the archive states none. Default: UTF-8. */
  readonly names?: Encoding | undefined;
}

interface CheckedEntry extends ZipEntry {
  readonly raw: Entry;
}

/**
 * A zip archive in a local file. All its entries are checked before the first one is read: names, kinds, number, and
 * the sizes that the archive states. An error names the entry.
 */
export class ZipArchive implements AsyncDisposable {
  readonly #zip: ZipFile;
  /** In the order of the archive's list. */
  readonly entries: readonly ZipEntry[];
  /** Sum of the sizes of all entries. */
  readonly unpackedBytes: number;

  private constructor(zip: ZipFile, entries: readonly CheckedEntry[]) {
    this.#zip = zip;
    this.entries = entries;
    this.unpackedBytes = entries.reduce((bytes, { size }) => bytes + size, 0);
  }

  /**
   * `AppError("invalid")` if the file is no zip archive, or if it has an entry that is not accepted: a link, an
   * encrypted entry, a name that leaves the folder or that comes twice. `AppError("too_large")` beyond a bound.
   */
  static async open(path: string, options: ZipOptions): Promise<ZipArchive> {
    // By default yauzl decodes names without the UTF-8 flag as code page 437.
    const zip = await openPromise(path, { decodeStrings: false, autoClose: false }).catch((error: unknown) => {
      throw unreadable(error);
    });
    // Errors of a call reach its promise. Without a listener, an error while the file is closed would end the process.
    zip.on("error", () => undefined);
    try {
      return new ZipArchive(zip, await checkedEntries(zip, (await stat(path)).size, options));
    } catch (error) {
      zip.close();
      throw isAppError(error) ? error : unreadable(error);
    }
  }

  /** The bytes of a file. `AppError("invalid")` if they are damaged, or differ from the size or checksum of the entry. */
  async *read(entry: ZipEntry): AsyncGenerator<Uint8Array> {
    const { raw, path } = entry as CheckedEntry;
    const stream = await this.#zip.openReadStreamPromise(raw).catch((error: unknown) => {
      throw damagedEntry(path, error);
    });
    let sum = 0;
    try {
      for await (const bytes of stream as AsyncIterable<Uint8Array>) {
        sum = crc32(bytes, sum);
        yield bytes;
      }
    } catch (error) {
      throw isAppError(error) ? error : damagedEntry(path, error);
    } finally {
      (stream as Readable).destroy();
    }
    if (sum !== raw.crc32) throw damagedEntry(path, "its checksum is that of another content");
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#zip.close();
    return Promise.resolve();
  }
}

async function checkedEntries(
  zip: ZipFile,
  packedBytes: number,
  { bounds, names }: ZipOptions,
): Promise<readonly CheckedEntry[]> {
  if (zip.entryCount > bounds.entriesMax) throw tooManyEntries(bounds);
  const maxBytes = Math.min(bounds.unpackedMaxBytes, unpackedByRatio(bounds, packedBytes));
  const paths = new ArchivePaths();
  const entries: CheckedEntry[] = [];
  let bytes = 0;
  for await (const raw of zip.eachEntry()) {
    const name = zipName(raw, names);
    refuseOddEntry(raw, name);
    bytes += raw.uncompressedSize;
    if (bytes > maxBytes) throw unpacksTooMuch(bounds);
    const isFolder = name.endsWith("/");
    if (isOwnFolder(name)) continue;
    const path = isFolder ? paths.addFolder(name) : paths.addFile(name);
    entries.push({ path, isFolder, mode: modeOf(raw), size: raw.uncompressedSize, raw: withoutTexts(raw) });
  }
  refuseOverlaps(entries);
  return entries;
}

const NOTHING = Buffer.alloc(0);

/** The entry without its name, fields and comment, which may have megabytes together and are not needed to read it. */
function withoutTexts(raw: Entry): Entry {
  const texts = { fileNameRaw: NOTHING, extraFieldRaw: NOTHING, fileCommentRaw: NOTHING, extraFields: [] };
  return Object.assign(raw, texts, { fileName: "", fileComment: "", comment: "" });
}

/** True for the folder into which the archive is unpacked. */
function isOwnFolder(name: string): boolean {
  return name === "./";
}

function unreadable(error: unknown): AppError {
  return new AppError("invalid", `The zip archive cannot be read: ${errorText(error)}.`, { cause: error });
}
