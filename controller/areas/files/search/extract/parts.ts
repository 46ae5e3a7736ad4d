import type { Readable } from "node:stream";
import { fromBufferPromise, type Entry, type ZipFile } from "yauzl";
import { AppError, errorText, isAppError } from "../../../../../common/errors.ts";
import {
  FILE_PARTS_MAX,
  FILE_UNPACK_RATIO_FREE_BYTES,
  FILE_UNPACK_RATIO_MAX,
  FILE_UNPACKED_MAX_BYTES,
} from "../../../../../common/limits.ts";
import { UTF8 } from "../../../../../common/text/encodings.ts";
import { MarkupReader, type Markup } from "../../../../../common/text/markup.ts";
import { refusing, TextStream } from "../../../../../common/text/text-stream.ts";

/**
 * The XML parts of a docx or xlsx. The declared sizes of all parts are checked before one is unpacked, and a part that
 * unpacks to more than it declares is an error. No entity is expanded: see `MarkupReader`.
 */
export class DocumentParts {
  readonly #zip: ZipFile;
  readonly #entries: ReadonlyMap<string, Entry>;

  private constructor(zip: ZipFile, entries: ReadonlyMap<string, Entry>) {
    this.#zip = zip;
    this.#entries = entries;
  }

  /** `AppError("invalid")` if the bytes are no package, `too_large` if it unpacks to too much. */
  static async open(bytes: Buffer): Promise<DocumentParts> {
    try {
      const zip = await fromBufferPromise(bytes, { strictFileNames: true });
      return new DocumentParts(zip, await checkedEntries(zip));
    } catch (error) {
      throw unreadable(error);
    }
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  /** The tokens of a part, in pieces. None if there is no such part. */
  async *read(name: string): AsyncGenerator<readonly Markup[]> {
    const entry = this.#entries.get(name);
    if (!entry) return;
    const markup = new MarkupReader();
    const text = new TextStream(UTF8, { refuse: refusing(`The part ${name}`, "save the document again") });
    let stream: Readable | undefined;
    try {
      stream = await this.#zip.openReadStreamPromise(entry);
      for await (const bytes of stream as AsyncIterable<Uint8Array>) yield markup.take(text.take(bytes));
      yield markup.take(text.end());
      markup.end();
    } catch (error) {
      throw unreadable(error);
    } finally {
      stream?.destroy();
    }
  }
}

async function checkedEntries(zip: ZipFile): Promise<ReadonlyMap<string, Entry>> {
  if (zip.entryCount > FILE_PARTS_MAX)
    throw new AppError("too_large", `The document has more than ${FILE_PARTS_MAX} parts.`);
  const entries = new Map<string, Entry>();
  let [unpacked, packed] = [0, 0];
  for await (const entry of zip.eachEntry()) {
    if (entry.isEncrypted()) throw new AppError("invalid", "The document is encrypted.");
    unpacked += entry.uncompressedSize;
    packed += entry.compressedSize;
    entries.set(entry.fileName, entry);
  }
  const most = Math.min(FILE_UNPACKED_MAX_BYTES, packed * FILE_UNPACK_RATIO_MAX + FILE_UNPACK_RATIO_FREE_BYTES);
  if (unpacked > most)
    throw new AppError("too_large", `The document unpacks to ${unpacked} bytes; at most ${most} are read.`);
  return entries;
}

function unreadable(error: unknown): AppError {
  if (isAppError(error)) return error;
  return new AppError("invalid", `The document cannot be unpacked: ${errorText(error)}.`, { cause: error });
}
