import type { BeforeMark, BlobInfo, BlobStore, ByteRange, StreamPart } from "../../blobs.ts";
import { Contents } from "./contents.ts";
import { Streams } from "./streams.ts";
import type { Tables } from "../tables.ts";

export class CassandraBlobStore implements BlobStore {
  readonly #contents: Contents;
  readonly #streams: Streams;

  constructor(tables: Tables) {
    this.#contents = new Contents(tables);
    this.#streams = new Streams(tables);
  }

  put(
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    owner: string,
    beforeMark?: BeforeMark,
  ): Promise<BlobInfo> {
    return this.#contents.put(bytes, owner, beforeMark);
  }

  stat(digest: string): Promise<BlobInfo | undefined> {
    return this.#contents.stat(digest);
  }

  read(digest: string, range?: ByteRange): AsyncIterable<Uint8Array> {
    return this.#contents.read(digest, range);
  }

  mark(digest: string, owner: string): Promise<void> {
    return this.#contents.mark(digest, owner);
  }

  unmark(digest: string, owner: string): Promise<void> {
    return this.#contents.unmark(digest, owner);
  }

  sweep(graceMs: number): Promise<number> {
    return this.#contents.sweep(graceMs);
  }

  append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    return this.#streams.append(stream, offset, bytes);
  }

  readStream(stream: string, offset: number, maxBytes: number): Promise<StreamPart> {
    return this.#streams.read(stream, offset, maxBytes);
  }

  removeStream(stream: string): Promise<void> {
    return this.#streams.remove(stream);
  }
}
