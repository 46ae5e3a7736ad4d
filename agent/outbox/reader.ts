import type { Entry } from "../../proto/gen/agent/v1/agent.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import { entryWeight } from "./entries.ts";
import { decodeGroup, frameAt, frameEnd, type Segment } from "./segment.ts";

const READ_BYTES = 256 * 1024;

/** The parts of an outbox that a reader needs. */
export interface Readable {
  readonly segments: readonly Segment[];
  readonly nextSequence: number;
}

/**
 * Reads the entries of an outbox in order, each once. At the last entry it answers an empty list; it does not wait for
 * more.
 */
export class OutboxReader {
  readonly #outbox: Readable;
  readonly #files: Files;
  #nextSequence: number;
  #serial = 0;
  #position = 0;
  #file: OpenFile | undefined;
  #ready: Entry[] = [];

  constructor(outbox: Readable, from: number, files: Files) {
    this.#outbox = outbox;
    this.#nextSequence = from;
    this.#files = files;
  }

  /**
   * Answers at most `maxEntries` entries with at most `maxBytes` in total. A first entry that is larger is answered
   * alone. An empty list means that no entry is there, or that `belongs` refused the first one. `belongs` is called for
   * each entry; at the first false, the list ends before that entry.
   */
  async next(
    maxEntries: number,
    maxBytes: number,
    belongs: (entry: Entry, last: Entry | undefined) => boolean = () => true,
  ): Promise<Entry[]> {
    await this.#letGo();
    if (this.#nextSequence >= this.#outbox.nextSequence) return [];
    const taken: Entry[] = [];
    let bytes = 0;
    while (taken.length < maxEntries) {
      const entry = this.#ready[0] ?? (await this.#fill());
      if (!entry) break;
      bytes += entryWeight(entry);
      const last = taken.at(-1);
      if ((last && bytes > maxBytes) || !belongs(entry, last)) break;
      taken.push(entry);
      this.#ready.shift();
      this.#nextSequence = entry.sequence + 1;
    }
    return taken;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  /** Closes the file if it was deleted: an open deleted file still takes disk space. */
  async #letGo(): Promise<void> {
    if (this.#file && !this.#outbox.segments.some(({ serial }) => serial === this.#serial)) await this.close();
  }

  async #fill(): Promise<Entry | undefined> {
    while (this.#ready.length === 0) {
      const segment = this.#segment();
      if (!segment) return undefined;
      if (this.#position >= segment.bytes) {
        if (!(await this.#leave(segment))) return undefined;
        continue;
      }
      await this.#read(segment);
    }
    return this.#ready[0];
  }

  /** The segment that is being read. If it was deleted, the oldest later one. */
  #segment(): Segment | undefined {
    const { segments } = this.#outbox;
    if (this.#serial === 0) return this.#enter(startFor(segments, this.#nextSequence));
    return (
      segments.find(({ serial }) => serial === this.#serial) ??
      this.#enter(segments.find(({ serial }) => serial > this.#serial))
    );
  }

  #enter(segment: Segment | undefined): Segment | undefined {
    if (segment) {
      this.#serial = segment.serial;
      this.#position = 0;
    }
    return segment;
  }

  async #leave(segment: Segment): Promise<boolean> {
    const next = this.#outbox.segments.find(({ serial }) => serial > segment.serial);
    if (!next) return false;
    await this.close();
    this.#enter(next);
    return true;
  }

  async #read(segment: Segment): Promise<void> {
    if (this.#position === 0) await this.close();
    this.#file ??= await this.#files.open(segment.path, "r");
    let bytes = await this.#bytes(segment, READ_BYTES);
    const whole = frameEnd(bytes, 0);
    if (whole !== undefined && whole > bytes.length) bytes = await this.#bytes(segment, whole);
    let at = 0;
    for (let end = frameEnd(bytes, at); end !== undefined && end <= bytes.length; end = frameEnd(bytes, at)) {
      const sound = frameAt(bytes, at);
      // The first frame of a file is its header; a damaged frame shows as a hole in the sequence.
      if (sound && this.#position + at > 0) this.#take(sound.payload);
      at = end;
    }
    // If the length of the first frame is invalid, the next frames of this file cannot be found, so the rest is
    // skipped.
    this.#position = at === 0 ? segment.bytes : this.#position + at;
  }

  #take(payload: Buffer): void {
    for (const entry of decodeGroup(payload).entries) if (entry.sequence >= this.#nextSequence) this.#ready.push(entry);
  }

  async #bytes(segment: Segment, wanted: number): Promise<Buffer> {
    const length = Math.min(wanted, segment.bytes - this.#position);
    const bytes = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = (await this.#file?.read(bytes, done, length - done, this.#position + done)) ?? {
        bytesRead: 0,
      };
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return bytes.subarray(0, done);
  }
}

function startFor(segments: readonly Segment[], sequence: number): Segment | undefined {
  return segments.findLast(({ base }) => base <= sequence) ?? segments[0];
}
