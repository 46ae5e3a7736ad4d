/**
 * The seam for bytes: depots, files, job output, packages. Contents are stored in chunks of at most
 * `BLOB_CHUNK_MAX_BYTES` and named by their SHA-256, so equal bytes are stored once. A sweep removes unmarked content.
 */
export interface BlobStore {
  /**
   * Stores at most `BLOB_MAX_BYTES`; durable when it resolves. The content is marked for `owner` from the start.
   * `beforeMark` is called when all bytes have arrived and none of them is marked. If it fails, the put fails with its
   * error and sets no mark.
   */
  put(
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    owner: string,
    beforeMark?: BeforeMark,
  ): Promise<BlobInfo>;
  stat(digest: string): Promise<BlobInfo | undefined>;
  /**
   * Bytes from `start` (inclusive) to `end` (exclusive). `AppError("not_found")` if there is no such content. Verifies
   * the bytes that it reads.
   */
  read(digest: string, range?: ByteRange): AsyncIterable<Uint8Array>;

  /** `owner` is any short text, such as `depot/web/1.0.0`. Marks are a set: marking twice is like marking once. */
  mark(digest: string, owner: string): Promise<void>;
  unmark(digest: string, owner: string): Promise<void>;
  /** Removes unmarked content older than `graceMs`; returns the number of removed contents. */
  sweep(graceMs: number): Promise<number>;

  /**
   * Appends at `offset`, which must be the stream's size (0 begins it). Appending the same bytes again at an offset
   * that is already written changes nothing, so a repetition is safe. Other bytes there are `AppError("conflict")`.
   */
  append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }>;
  /** At most `maxBytes` from `offset`. `size` is the current size of the stream; 0 for an unknown stream. */
  readStream(stream: string, offset: number, maxBytes: number): Promise<StreamPart>;
  removeStream(stream: string): Promise<void>;
}

export type BeforeMark = (content: BlobInfo) => Promise<void>;

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
