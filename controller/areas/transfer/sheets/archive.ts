import type { Readable } from "node:stream";
import { openPromise, type Entry, type ZipFile } from "yauzl";
import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import {
  SHEET_ENTRIES_MAX,
  SHEET_RATIO_FREE_BYTES,
  SHEET_RATIO_MAX,
  SHEET_UNPACKED_MAX_BYTES,
} from "../../../../common/limits.ts";
import { UTF8 } from "../../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../../common/text/text-stream.ts";
import { MarkupReader, type Markup } from "../../../../common/text/markup.ts";

/**
 * A spreadsheet file. The declared sizes of its parts are checked before they are unpacked. If a part unpacks to more,
 * this is an error.
 */
export class Archive implements AsyncDisposable {
  readonly #zip: ZipFile;
  readonly #entries: ReadonlyMap<string, Entry>;

  private constructor(zip: ZipFile, entries: ReadonlyMap<string, Entry>) {
    this.#zip = zip;
    this.#entries = entries;
  }

  static async open(path: string): Promise<Archive> {
    const zip = await openPromise(path, { strictFileNames: true, autoClose: false }).catch((error: unknown) => {
      throw unreadable(error);
    });
    try {
      return new Archive(zip, await checkedEntries(zip));
    } catch (error) {
      zip.close();
      throw unreadable(error);
    }
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  async *read(name: string): AsyncGenerator<readonly Markup[]> {
    const entry = this.#entries.get(name);
    if (!entry) throw new AppError("invalid", `[Format] The spreadsheet has no part ${name}.`);
    const reader = new MarkupReader();
    const text = new TextStream(UTF8, {
      refuse: refusing(`[Format] The part ${name} of the spreadsheet`, "save it again"),
    });
    const stream = await this.#zip
      .openReadStreamPromise(entry)
      .catch((error: unknown) => Promise.reject(unreadable(error)));
    try {
      for await (const bytes of stream as AsyncIterable<Uint8Array>) yield reader.take(text.take(bytes));
      yield reader.take(text.end());
      reader.end();
    } catch (error) {
      throw unreadable(error);
    } finally {
      (stream as Readable).destroy();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#zip.close();
    return Promise.resolve();
  }
}

async function checkedEntries(zip: ZipFile): Promise<ReadonlyMap<string, Entry>> {
  if (zip.entryCount > SHEET_ENTRIES_MAX)
    throw new AppError("too_large", `[Format] A spreadsheet has at most ${SHEET_ENTRIES_MAX} parts.`);
  const entries = new Map<string, Entry>();
  let [unpacked, packed] = [0, 0];
  for await (const entry of zip.eachEntry()) {
    if (entry.isEncrypted()) throw new AppError("invalid", "[Format] The spreadsheet is encrypted.");
    unpacked += entry.uncompressedSize;
    packed += entry.compressedSize;
    entries.set(entry.fileName, entry);
  }
  if (unpacked > Math.min(SHEET_UNPACKED_MAX_BYTES, packed * SHEET_RATIO_MAX + SHEET_RATIO_FREE_BYTES)) {
    throw new AppError(
      "too_large",
      `[Format] The spreadsheet unpacks to more than ${SHEET_UNPACKED_MAX_BYTES} bytes, or to more than ${SHEET_RATIO_MAX} times its size.`,
    );
  }
  return entries;
}

function unreadable(error: unknown): AppError {
  if (isAppError(error)) return error;
  return new AppError("invalid", `[Format] The file is no spreadsheet that can be read: ${errorText(error)}.`, {
    cause: error,
  });
}
