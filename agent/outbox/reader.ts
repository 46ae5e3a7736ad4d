import type { Entry } from "../../proto/gen/agent/v1/agent.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import { decodeGroup, entryWeight, frameAt, frameEnd, type Segment } from "./segment.ts";

const READ_BYTES = 256 * 1024;

/** The part of the outbox that is read. */
export interface Readable {
  readonly segments: readonly Segment[];
  readonly nextSequence: number;
}

/** Goes through the entries of an outbox in order, each once, and ends at the last without waiting. */
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
   * At least one entry when any is there, at most `maxEntries`, and no more than `maxBytes` unless the first alone is
   * larger. `belongs` is asked of each, and may end them before it.
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
      bytes += entry.body ? entryWeight(entry.body) : 0;
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

  /** A deleted file takes space for as long as it is open. */
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

  /** The one being read; when it was deleted meanwhile, the oldest that is left. */
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
    // A length that makes no sense: nothing behind it can be found in this file.
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
