/**
 * The seam for bytes: depots, files, job output, packages. Content lies in chunks of at most `BLOB_CHUNK_MAX_BYTES` and
 * is named by its SHA-256, so the same bytes lie once. A sweep removes unmarked content.
 */
export interface BlobStore {
  /** Takes in at most `BLOB_MAX_BYTES`; durable when it resolves. Marked for `owner` from the start. */
  put(bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, owner: string): Promise<BlobInfo>;
  stat(digest: string): Promise<BlobInfo | undefined>;
  /** Bytes `start` up to before `end`; `AppError("not_found")` when there is no such content. Checks what it reads. */
  read(digest: string, range?: ByteRange): AsyncIterable<Uint8Array>;

  /** An owner is any short text, such as `depot/web/1.0.0`. Marks are a set: marking twice is marking once. */
  mark(digest: string, owner: string): Promise<void>;
  unmark(digest: string, owner: string): Promise<void>;
  /** Removes content without a mark that is older than `graceMs`; answers how many. */
  sweep(graceMs: number): Promise<number>;

  /**
   * Appends at `offset`, which must be the stream's size (0 begins it). Appending the same bytes at an offset that is
   * already written changes nothing, so a repeat is safe; other bytes there are `AppError("conflict")`.
   */
  append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }>;
  /** At most `maxBytes` from `offset`; `size` tells how far the stream reaches now. An unknown stream has size 0. */
  readStream(stream: string, offset: number, maxBytes: number): Promise<StreamPart>;
  removeStream(stream: string): Promise<void>;
}

export interface BlobInfo {
  /** SHA-256 of the content, 64 lower-case hexadecimal digits. */
  readonly digest: string;
  readonly size: number;
}

export interface ByteRange {
  readonly start?: number;
  readonly end?: number;
}

export interface StreamPart {
  readonly bytes: Uint8Array;
  readonly size: number;
}
