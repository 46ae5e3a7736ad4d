import { join } from "node:path";
import { AppError } from "../../common/errors.ts";
import {
  OUTBOX_BALLAST_BYTES,
  OUTBOX_MAX_BYTES,
  OUTBOX_PINS_SLOT_BYTES,
  OUTBOX_RESERVE_BYTES,
  OUTBOX_SEGMENT_BYTES,
} from "../../common/limits.ts";
import type { Files } from "../../common/files.ts";
import { nodeFiles } from "../disk/files.ts";
import { AppendQueue, type Append } from "./append-queue.ts";
import { Changes } from "./changes.ts";
import { EntryTimes } from "./entry-times.ts";
import { OutboxPins } from "./pins.ts";
import { OutboxReader } from "./reader.ts";
import { SegmentFiles } from "./segment-files.ts";
import { applyMarks, encodeGroup, type Segment } from "./segment.ts";
import type { AppendOptions, Emission, OutboxOptions } from "./types.ts";

export type { AppendOptions, Emission, OutboxOptions };

/**
 * Keeps everything the agent produces on disk until a controller has stored it. An append is durable when it resolves.
 * Entries get increasing sequence numbers without gaps. Marks are small named texts that live as long as the outbox.
 * They are written together with entries, so records and the position in their file are one atomic write.
 *
 * When the outbox has reached its maximum size or the disk is full, `append` fails with `AppError("limited")` and
 * changes nothing. `room` waits for space.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #maxBytes: number;
  readonly #reserveBytes: number;
  readonly #files: Files;
  readonly #segmentFiles: SegmentFiles;
  readonly #queue: AppendQueue;
  readonly #changes = new Changes();
  readonly #stream = { id: "", nextSequence: 1, acknowledged: 0, marks: new Map<string, string>() };
  #times: EntryTimes;
  #pins: OutboxPins | undefined;
  #closed = false;
  #sender: Promise<unknown> = Promise.resolve();

  /** Damaged frames found when the outbox was opened, and bytes of an incomplete write that were cut off. */
  damagedFrames = 0;
  tornBytes = 0;

  private constructor(options: OutboxOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? OUTBOX_MAX_BYTES;
    this.#reserveBytes = Math.min(OUTBOX_RESERVE_BYTES, Math.floor(this.#maxBytes / 8));
    this.#files = options.files ?? nodeFiles;
    this.#times = new EntryTimes(options.clock, 0);
    this.#segmentFiles = new SegmentFiles({
      folder: options.folder,
      files: this.#files,
      clock: options.clock,
      segmentBytes: Math.min(OUTBOX_SEGMENT_BYTES, Math.floor(this.#maxBytes / 16)),
      reserve: options.random.bytes(Math.min(OUTBOX_BALLAST_BYTES, Math.floor(this.#maxBytes / 4))),
      stream: this.#stream,
      saveAcknowledged: () => this.pins.save(),
      changed: () => this.#changes.note(),
    });
    this.#queue = new AppendQueue(
      (appends) => this.#commit(appends),
      () => this.#changes.note(),
    );
  }

  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options);
    await outbox.#load();
    await outbox.#openPins();
    await outbox.#segmentFiles.takeReserve();
    return outbox;
  }

  get streamId(): string {
    return this.#stream.id;
  }

  /** Pins of the batches that are not acknowledged yet. */
  get pins(): OutboxPins {
    if (!this.#pins) throw new AppError("cancelled", "The outbox is closed.");
    return this.#pins;
  }

  /** The controllers have stored every entry up to this sequence. Just after opening, they may have stored more. */
  get acknowledged(): number {
    return this.#stream.acknowledged;
  }

  /** Sequence of the oldest entry that is not acknowledged; that of the next entry when all are. */
  get firstSequence(): number {
    return Math.min(this.nextSequence, Math.max(this.segments[0]?.base ?? 1, this.acknowledged + 1));
  }

  get nextSequence(): number {
    return this.#stream.nextSequence;
  }

  get bytes(): number {
    return this.#segmentFiles.bytes;
  }

  /** In the order of their entries. The last one is being written. */
  get segments(): readonly Segment[] {
    return this.#segmentFiles.segments;
  }

  mark(key: string): string | undefined {
    return this.#stream.marks.get(key);
  }

  /** Marks whose key begins with `prefix`. */
  marks(prefix: string): [key: string, value: string][] {
    return [...this.#stream.marks].filter(([key]) => key.startsWith(prefix));
  }

  /** Writes entries and marks, or marks alone, atomically. Resolves with the last sequence when they are durable. */
  append(emissions: readonly Emission[], options: AppendOptions = {}): Promise<number> {
    const refusal = this.#refusal(options.reserve ?? false);
    if (refusal) return Promise.reject(refusal);
    return this.#queue.add({ emissions, marks: options.marks ?? [] });
  }

  hasRoom(reserve = false): boolean {
    return this.#refusal(reserve) === undefined;
  }

  /** Resolves when an append may succeed again, or the signal fires. */
  async room(signal: AbortSignal | undefined, reserve = false): Promise<void> {
    while (!signal?.aborted && !this.#segmentFiles.broken && !this.#closed && !this.hasRoom(reserve)) {
      // The version is read before files are deleted. So a change during the deletion, such as the close of the outbox,
      // ends the wait below.
      const { version } = this;
      await this.#segmentFiles.tryDeleting();
      if (!this.hasRoom(reserve)) await this.changed(version, signal);
    }
  }

  /** Increases with every append, acknowledgement and change of room, and when the outbox is closed. */
  get version(): number {
    return this.#changes.version;
  }

  /** Resolves when `version` is above `since`, or the signal fires. */
  changed(since: number, signal?: AbortSignal): Promise<void> {
    return this.#changes.after(since, signal);
  }

  /** Runs senders one after another. Two at the same time could pin overlapping batches. */
  inTurn(send: () => Promise<void>): Promise<void> {
    const turn = this.#sender.then(send);
    this.#sender = turn.catch(() => undefined);
    return turn;
  }

  reader(from: number): OutboxReader {
    return new OutboxReader(this, from, this.#files);
  }

  /** The controllers have all entries up to `sequence`. Files with only such entries are deleted, except the last. */
  async acknowledge(sequence: number): Promise<void> {
    if (sequence <= this.acknowledged || sequence >= this.nextSequence) return;
    this.#stream.acknowledged = sequence;
    this.pins.acknowledge(sequence);
    await this.#segmentFiles.deleteAcknowledged();
    this.#changes.note();
  }

  /**
   * Gives the stream a new id, because the controllers know later entries of it than the outbox has. The folder was
   * restored from an older copy, or its end was damaged. Entries may be sent twice, but are not mistaken for others.
   */
  async renewStream(): Promise<void> {
    await this.#queue.between(async () => {
      const streamId = this.#newStreamId();
      await this.#segmentFiles.begin(streamId);
      this.#stream.id = streamId;
      this.#stream.acknowledged = (this.segments[0]?.base ?? 1) - 1;
      await this.pins.begin(streamId, this.acknowledged);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#queue.between(async () => {
      this.#changes.note();
      await this.#segmentFiles.close();
      // If this fails, acknowledged entries are sent once more after the next start.
      await this.#pins?.save().catch(() => undefined);
      await this.#pins?.close();
      this.#pins = undefined;
    });
  }

  #refusal(reserve: boolean): AppError | undefined {
    if (this.#closed) return this.#segmentFiles.broken ?? new AppError("cancelled", "The outbox is closed.");
    const limit = reserve ? this.#maxBytes : this.#maxBytes - this.#reserveBytes;
    if (this.#segmentFiles.refusal || this.bytes < limit) return this.#segmentFiles.refusal;
    return new AppError("limited", `The outbox is full (${this.#maxBytes} bytes).`, {
      details: { reason: "outbox_full" },
    });
  }

  async #commit(appends: readonly Append[]): Promise<readonly number[]> {
    await this.#segmentFiles.prepare();
    let sequence = this.#stream.nextSequence;
    const lasts: number[] = [];
    const entries = appends.flatMap(({ emissions }) => {
      const own = emissions.map(({ body, traceparent }) => ({
        sequence: sequence++,
        timeMs: this.#times.next(body),
        traceparent: traceparent ?? "",
        body,
      }));
      lasts.push(sequence - 1);
      return own;
    });
    // One frame for everything that one sync makes durable: of two, a power cut could lose only the first.
    await this.#segmentFiles.write(encodeGroup({ entries, marks: appends.flatMap(({ marks }) => marks) }));
    this.#stream.nextSequence = sequence;
    for (const { marks } of appends) applyMarks(this.#stream.marks, marks);
    return lasts;
  }

  /** Takes over what the previous process left, or begins a new stream. */
  async #load(): Promise<void> {
    const left = await this.#segmentFiles.load();
    if (!left) {
      this.#stream.id = this.#newStreamId();
      return this.#segmentFiles.begin();
    }
    for (const [key, value] of left.marks) this.#stream.marks.set(key, value);
    this.#stream.id = left.streamId;
    this.#stream.nextSequence = left.nextSequence;
    this.#times = new EntryTimes(this.#options.clock, left.lastTimeMs);
    this.damagedFrames = left.damagedFrames;
    this.tornBytes = left.tornBytes;
  }

  /** Opens the pins. If more was sent than the outbox has, its end was damaged, and the stream gets a new id. */
  async #openPins(): Promise<void> {
    const { folder } = this.#options;
    const slotBytes = Math.min(OUTBOX_PINS_SLOT_BYTES, Math.floor(this.#maxBytes / 16));
    this.#pins = await OutboxPins.open({ path: join(folder, "pins"), files: this.#files, slotBytes });
    if (this.#pins.stream !== this.streamId) return this.#pins.begin(this.streamId, (this.segments[0]?.base ?? 1) - 1);
    this.#stream.acknowledged = this.#pins.acknowledged;
    if (this.#pins.knownThrough >= this.nextSequence) await this.renewStream();
  }

  #newStreamId(): string {
    return Buffer.from(this.#options.random.bytes(16)).toString("hex");
  }
}
