import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import {
  SHEET_ENTRIES_MAX,
  SHEET_RATIO_FREE_BYTES,
  SHEET_RATIO_MAX,
  SHEET_UNPACKED_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { ArchiveBounds } from "../../../archives/bounds.ts";
import type { ZipEntry } from "../../../archives/zip-entries.ts";
import { ZipArchive } from "../../../archives/zip-reading.ts";
import { UTF8 } from "../../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../../common/text/text-stream.ts";
import { MarkupReader, type Markup } from "../../../../common/text/markup.ts";

const BOUNDS: ArchiveBounds = {
  entriesMax: SHEET_ENTRIES_MAX,
  unpackedMaxBytes: SHEET_UNPACKED_MAX_BYTES,
  ratioMax: SHEET_RATIO_MAX,
  ratioFreeBytes: SHEET_RATIO_FREE_BYTES,
};

/** A spreadsheet file: a zip archive of parts. */
export class Archive implements AsyncDisposable {
  readonly #zip: ZipArchive;
  readonly #entries: ReadonlyMap<string, ZipEntry>;

  private constructor(zip: ZipArchive) {
    this.#zip = zip;
    this.#entries = new Map(zip.entries.map((entry) => [entry.path, entry]));
  }

  static async open(path: string): Promise<Archive> {
    const zip = await ZipArchive.open(path, { bounds: BOUNDS }).catch((error: unknown) => {
      throw unreadable(error);
    });
    return new Archive(zip);
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
    for await (const bytes of this.#bytes(entry)) yield reader.take(text.take(bytes));
    yield reader.take(text.end());
    reader.end();
  }

  async *#bytes(entry: ZipEntry): AsyncGenerator<Uint8Array> {
    try {
      yield* this.#zip.read(entry);
    } catch (error) {
      throw unreadable(error);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#zip[Symbol.asyncDispose]();
  }
}

function unreadable(error: unknown): AppError {
  const code = isAppError(error) ? error.code : "invalid";
  return new AppError(code, `[Format] The file is no spreadsheet that can be read: ${errorText(error)}`, {
    cause: error,
  });
}
