import { createHash } from "node:crypto";
import { AppError } from "../../../../common/errors.ts";
import type { Clock } from "../../../../common/time.ts";
import type { BeforeMark, BlobInfo, BlobStore, ByteRange, StreamPart } from "../../../../controller/store/blobs.ts";
import type { StoreCall } from "./call.ts";

const CHUNK_BYTES = 256 * 1024;

interface Content {
  readonly bytes: Buffer;
  readonly owners: ReadonlySet<string>;
  /** Time at which it lost its last mark. */
  readonly unmarkedMs: number | undefined;
}

export class MemoryBlobState {
  readonly #clock: Clock;
  readonly #contents = new Map<string, Content>();
  readonly #streams = new Map<string, Buffer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  fork(clock: Clock): MemoryBlobState {
    const copy = new MemoryBlobState(clock);
    for (const [digest, content] of this.#contents) copy.#contents.set(digest, content);
    for (const [name, bytes] of this.#streams) copy.#streams.set(name, bytes);
    return copy;
  }

  /** Number of contents with a mark. */
  get marked(): number {
    return [...this.#contents.values()].filter(({ owners }) => owners.size > 0).length;
  }

  get streams(): number {
    return this.#streams.size;
  }

  put(bytes: Buffer, owner: string): BlobInfo {
    const digest = createHash("sha256").update(bytes).digest("hex");
    if (!this.#contents.has(digest))
      this.#contents.set(digest, { bytes, owners: new Set(), unmarkedMs: this.#clock.nowMs() });
    this.mark(digest, owner);
    return { digest, size: bytes.length };
  }

  content(digest: string): Buffer | undefined {
    return this.#contents.get(digest)?.bytes;
  }

  mark(digest: string, owner: string): void {
    const content = this.#contents.get(digest);
    if (content)
      this.#contents.set(digest, { ...content, owners: new Set([...content.owners, owner]), unmarkedMs: undefined });
  }

  unmark(digest: string, owner: string): void {
    const content = this.#contents.get(digest);
    if (!content) return;
    const owners = new Set([...content.owners].filter((other) => other !== owner));
    this.#contents.set(digest, {
      ...content,
      owners,
      unmarkedMs: owners.size > 0 ? undefined : (content.unmarkedMs ?? this.#clock.nowMs()),
    });
  }

  sweep(graceMs: number): number {
    const untilMs = this.#clock.nowMs() - graceMs;
    const doomed = [...this.#contents].filter(
      ([, { unmarkedMs }]) => unmarkedMs !== undefined && unmarkedMs <= untilMs,
    );
    for (const [digest] of doomed) this.#contents.delete(digest);
    return doomed.length;
  }

  append(stream: string, offset: number, bytes: Uint8Array): { size: number } {
    const now = this.#streams.get(stream) ?? Buffer.alloc(0);
    const known = now.subarray(offset, offset + bytes.length);
    if (offset > now.length || !known.equals(bytes.subarray(0, known.length)))
      throw new AppError("conflict", "Other bytes are there.");
    const next = Buffer.concat([now, bytes.subarray(known.length)]);
    this.#streams.set(stream, next);
    return { size: next.length };
  }

  readStream(stream: string, offset: number, maxBytes: number): StreamPart {
    const now = this.#streams.get(stream) ?? Buffer.alloc(0);
    return { bytes: now.subarray(offset, offset + maxBytes), size: now.length };
  }

  removeStream(stream: string): void {
    this.#streams.delete(stream);
  }
}

/** One client of the store. */
export class MemoryBlobStore implements BlobStore {
  readonly #state: MemoryBlobState;
  readonly #call: StoreCall;

  constructor({ state, call }: { readonly state: MemoryBlobState; readonly call: StoreCall }) {
    this.#state = state;
    this.#call = call;
  }

  async put(
    bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
    owner: string,
    beforeMark?: BeforeMark,
  ): Promise<BlobInfo> {
    const pieces: Uint8Array[] = [];
    for await (const piece of bytes) pieces.push(piece);
    const whole = Buffer.concat(pieces);
    await beforeMark?.({ digest: createHash("sha256").update(whole).digest("hex"), size: whole.length });
    return this.#call.write("blobs.put", () => this.#state.put(whole, owner));
  }

  stat(digest: string): Promise<BlobInfo | undefined> {
    return this.#call.read("blobs.stat", () => {
      const bytes = this.#state.content(digest);
      return bytes && { digest, size: bytes.length };
    });
  }

  async *read(digest: string, { start = 0, end = Infinity }: ByteRange = {}): AsyncIterable<Uint8Array> {
    const bytes = await this.#call.read("blobs.read", () => this.#state.content(digest));
    if (bytes === undefined) throw new AppError("not_found", `There is no content ${digest}.`);
    const part = bytes.subarray(start, Math.min(end, bytes.length));
    for (let at = 0; at < part.length; at += CHUNK_BYTES) yield part.subarray(at, at + CHUNK_BYTES);
  }

  mark(digest: string, owner: string): Promise<void> {
    return this.#call.write("blobs.mark", () => this.#state.mark(digest, owner));
  }

  unmark(digest: string, owner: string): Promise<void> {
    return this.#call.write("blobs.unmark", () => this.#state.unmark(digest, owner));
  }

  sweep(graceMs: number): Promise<number> {
    return this.#call.read("blobs.sweep", () => this.#state.sweep(graceMs));
  }

  append(stream: string, offset: number, bytes: Uint8Array): Promise<{ readonly size: number }> {
    const given = Buffer.from(bytes);
    return this.#call.write("blobs.append", () => this.#state.append(stream, offset, given));
  }

  readStream(stream: string, offset: number, maxBytes: number): Promise<StreamPart> {
    return this.#call.read("blobs.readStream", () => this.#state.readStream(stream, offset, maxBytes));
  }

  removeStream(stream: string): Promise<void> {
    return this.#call.write("blobs.removeStream", () => this.#state.removeStream(stream));
  }
}
