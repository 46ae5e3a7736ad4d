import { Readable } from "node:stream";
import { ZipFile } from "yazl";

export interface ZipPartOptions {
  readonly modified: Date;
  /** True: the content is stored as it is, because packing would not make it smaller. */
  readonly isStored?: boolean;
  /** Bytes of the content. The archive breaks off if the content has another size. */
  readonly size?: number;
  /** True: the time is written only as local time without a zone, so that equal contents give equal archives. */
  readonly isPlainTime?: boolean;
}

const [FILE_MODE, FOLDER_MODE] = [0o100644, 0o040755];

/**
 * A zip archive that is written while it is read. Names are UTF-8; sizes and offsets of more than 32 bits are written
 * as zip64. If a content fails, `output` fails, so no archive looks complete without being so. If `output` is destroyed,
 * the content that is being read is destroyed, too.
 */
export class ZipWriting {
  readonly output: Readable;
  readonly #zip = new ZipFile();
  #content: Readable | undefined;

  constructor() {
    this.output = this.#zip.outputStream as Readable;
    // A pipe passes on neither errors of the content nor the end of its reader.
    this.#zip.on("error", (error: Error) => this.output.destroy(error));
    this.output.once("close", () => this.#content?.destroy());
  }

  /** Call it before the first file: yazl writes folders after a file by recursion. */
  addFolder(path: string, { modified }: ZipPartOptions): void {
    this.#zip.addEmptyDirectory(path, { mtime: modified, mode: FOLDER_MODE });
  }

  addBytes(path: string, bytes: Buffer, { modified, isPlainTime = false }: ZipPartOptions): void {
    this.#zip.addBuffer(bytes, path, { mtime: modified, forceDosTimestamp: isPlainTime });
  }

  /** Resolves when all parts before this one are written and its content is opened. */
  addContent(
    path: string,
    { modified, isStored = false, isPlainTime = false, size }: ZipPartOptions,
    open: () => AsyncIterable<Uint8Array | string>,
  ): Promise<void> {
    const known = size === undefined ? {} : { size };
    const options = { mtime: modified, mode: FILE_MODE, compress: !isStored, forceDosTimestamp: isPlainTime, ...known };
    return new Promise((resolve) => {
      this.#zip.addReadStreamLazy(path, options, (take) => {
        const content = Readable.from(open(), { objectMode: false });
        content.once("error", (error) => this.output.destroy(error));
        this.#content = content;
        if (this.output.destroyed) content.destroy();
        take(null, content);
        resolve();
      });
    });
  }

  end(): void {
    this.#zip.end();
  }
}
