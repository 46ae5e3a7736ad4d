import { join } from "node:path";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import {
  OUTBOX_BALLAST_BYTES,
  OUTBOX_FRAME_MAX_BYTES,
  OUTBOX_MAX_BYTES,
  OUTBOX_PINS_SLOT_BYTES,
  OUTBOX_RESERVE_BYTES,
  OUTBOX_RETRY_MS,
  OUTBOX_SEGMENT_BYTES,
  OUTBOX_TIME_AHEAD_MAX_MS,
} from "../../common/limits.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import { isDiskFull, makeFolder, nodeFiles, syncFolder, writeWholly } from "../disk/files.ts";
import { Ballast } from "./ballast.ts";
import { Changes } from "./changes.ts";
import { entryWeight } from "./entries.ts";
import { loadOutbox } from "./load.ts";
import { OutboxPins } from "./pins.ts";
import { OutboxReader } from "./reader.ts";
import {
  applyMarks,
  encodeGroup,
  encodeHeader,
  makesRows,
  segmentName,
  type EntryBody,
  type Mark,
  type Segment,
} from "./segment.ts";
import type { AppendOptions, Emission, OutboxOptions } from "./types.ts";

export type { AppendOptions, Emission, OutboxOptions };

interface Waiting {
  readonly emissions: readonly Emission[];
  readonly marks: readonly Mark[];
  resolve(last: number): void;
  reject(error: unknown): void;
}

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
  readonly #segmentBytes: number;
  readonly #files: Files;
  readonly #ballast: Ballast;
  readonly #marks = new Map<string, string>();
  readonly #segments: Segment[] = [];
  readonly #changes = new Changes();
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Deletions of files run one after another. */
  #dropping: Promise<void> = Promise.resolve();
  #file: OpenFile | undefined;
  #pins: OutboxPins | undefined;
  #streamId = "";
  #nextSequence = 1;
  #acknowledged = 0;
  /** Time of the last entry that becomes rows (`makesRows`). */
  #lastTimeMs = 0;
  #diskFull = false;
  #broken: AppError | undefined;
  #closed = false;
  #sender: Promise<unknown> = Promise.resolve();

  /** Damaged frames found when the outbox was opened, and bytes of an incomplete write that were cut off. */
  damagedFrames = 0;
  tornBytes = 0;

  private constructor(options: OutboxOptions) {
    this.#options = options;
    this.#maxBytes = options.maxBytes ?? OUTBOX_MAX_BYTES;
    this.#reserveBytes = Math.min(OUTBOX_RESERVE_BYTES, Math.floor(this.#maxBytes / 8));
    this.#segmentBytes = Math.min(OUTBOX_SEGMENT_BYTES, Math.floor(this.#maxBytes / 16));
    this.#files = options.files ?? nodeFiles;
    const bytes = options.random.bytes(Math.min(OUTBOX_BALLAST_BYTES, Math.floor(this.#maxBytes / 4)));
    this.#ballast = new Ballast({ path: join(options.folder, "reserve"), files: this.#files, bytes });
  }

  static async open(options: OutboxOptions): Promise<Outbox> {
    const outbox = new Outbox(options);
    await makeFolder(outbox.#files, options.folder);
    await outbox.#load();
    if (outbox.#segments.length === 0) {
      outbox.#streamId = Buffer.from(options.random.bytes(16)).toString("hex");
      await outbox.#roll();
    }
    await outbox.#openPins();
    await outbox.#ballast.take();
    return outbox;
  }

  get streamId(): string {
    return this.#streamId;
  }

  /** Pins of the batches that are not acknowledged yet. */
  get pins(): OutboxPins {
    if (!this.#pins) throw new AppError("cancelled", "The outbox is closed.");
    return this.#pins;
  }

  /** The controllers have stored every entry up to this sequence. Just after opening, they may have stored more. */
  get acknowledged(): number {
    return this.#acknowledged;
  }

  /** Sequence of the oldest entry that is not acknowledged; that of the next entry when all are. */
  get firstSequence(): number {
    return Math.min(this.#nextSequence, Math.max(this.#segments[0]?.base ?? 1, this.#acknowledged + 1));
  }

  get nextSequence(): number {
    return this.#nextSequence;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** In the order of their entries. The last one is being written. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  mark(key: string): string | undefined {
    return this.#marks.get(key);
  }

  /** Marks whose key begins with `prefix`. */
  marks(prefix: string): [key: string, value: string][] {
    return [...this.#marks].filter(([key]) => key.startsWith(prefix));
  }

  /** Writes entries and marks, or marks alone, atomically. Resolves with the last sequence when they are durable. */
  append(emissions: readonly Emission[], options: AppendOptions = {}): Promise<number> {
    const refusal = this.#refusal(options.reserve ?? false);
    if (refusal) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ emissions, marks: options.marks ?? [], resolve, reject });
      this.#writing ??= this.#write();
    });
  }

  hasRoom(reserve = false): boolean {
    return this.#refusal(reserve) === undefined;
  }

  /** Resolves when an append may succeed again, or the signal fires. */
  async room(signal: AbortSignal | undefined, reserve = false): Promise<void> {
    while (!signal?.aborted && !this.#broken && !this.#closed && !this.hasRoom(reserve)) {
      // The version is read before files are deleted. So a change during the deletion, such as the close of the outbox,
      // ends the wait below.
      const { version } = this;
      await this.#dropAgain();
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
    if (sequence <= this.#acknowledged || sequence >= this.#nextSequence) return;
    this.#acknowledged = sequence;
    this.pins.acknowledge(sequence);
    await this.#dropAcknowledged();
    this.#changes.note();
  }

  /**
   * Gives the stream a new id, because the controllers know later entries of it than the outbox has. The folder was
   * restored from an older copy, or its end was damaged. Entries may be sent twice, but are not mistaken for others.
   */
  async renewStream(): Promise<void> {
    while (this.#writing) await this.#writing;
    const renewing = (async () => {
      const streamId = Buffer.from(this.#options.random.bytes(16)).toString("hex");
      await this.#roll(streamId);
      this.#streamId = streamId;
      this.#acknowledged = (this.#segments[0]?.base ?? 1) - 1;
      await this.pins.begin(streamId, this.#acknowledged);
    })();
    this.#writing = renewing.catch(() => undefined);
    try {
      await renewing;
    } finally {
      await (this.#writing = this.#waiting.length > 0 ? this.#write() : undefined);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    while (this.#writing) await this.#writing;
    this.#changes.note();
    await this.#file?.close();
    this.#file = undefined;
    // If this fails, acknowledged entries are sent once more after the next start.
    await this.#pins?.save().catch(() => undefined);
    await this.#pins?.close();
    this.#pins = undefined;
  }

  #refusal(reserve: boolean): AppError | undefined {
    if (this.#broken) return this.#broken;
    if (this.#closed) return new AppError("cancelled", "The outbox is closed.");
    if (this.#diskFull)
      return new AppError("limited", "The disk under the outbox is full.", { details: { reason: "disk_full" } });
    const limit = reserve ? this.#maxBytes : this.#maxBytes - this.#reserveBytes;
    if (this.bytes < limit) return undefined;
    return new AppError("limited", `The outbox is full (${this.#maxBytes} bytes).`, {
      details: { reason: "outbox_full" },
    });
  }

  async #write(): Promise<void> {
    // Wait until the calling code has returned, so that appends it makes without an `await` share one sync.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const groups = this.#take();
      try {
        await this.#commit(groups);
      } catch (error) {
        // Write the groups one by one: a small group may fit although all together do not.
        if (groups.length > 1 && isAppError(error, "limited", "too_large"))
          for (const group of groups) await this.#commitAlone(group);
        else for (const group of groups) group.reject(error);
      }
      this.#changes.note();
    }
    // No `await` may come between the check of the queue and this line. An append in between would wait forever.
    this.#writing = undefined;
  }

  #take(): Waiting[] {
    let bytes = 0;
    let count = 0;
    for (const group of this.#waiting) {
      bytes += group.emissions.reduce((sum, emission) => sum + entryWeight(emission), 0);
      if (count > 0 && bytes > OUTBOX_FRAME_MAX_BYTES) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #commitAlone(group: Waiting): Promise<void> {
    try {
      await this.#commit([group]);
    } catch (error) {
      group.reject(error);
    }
  }

  async #commit(groups: readonly Waiting[]): Promise<void> {
    if (this.#broken) throw this.#broken;
    await this.#holdBallast();
    await this.#rollWhenLarge();
    let sequence = this.#nextSequence;
    const lasts: number[] = [];
    const entries = groups.flatMap(({ emissions }) => {
      const own = emissions.map(({ body, traceparent }) => ({
        sequence: sequence++,
        timeMs: this.#timeOf(body),
        traceparent: traceparent ?? "",
        body,
      }));
      lasts.push(sequence - 1);
      return own;
    });
    // One frame for everything that one sync makes durable: of two, a power cut could lose only the first.
    const bytes = encodeGroup({ entries, marks: groups.flatMap(({ marks }) => marks) });
    const segment = await this.#storeSomewhere(bytes);
    segment.bytes += bytes.length;
    this.#nextSequence = sequence;
    groups.forEach((group, index) => {
      applyMarks(this.#marks, group.marks);
      group.resolve(lasts[index] ?? sequence - 1);
    });
  }

  /**
   * The time of an entry. Rows are ordered by time first, so each entry of rows is later than the one before. At the
   * limit, `OUTBOX_TIME_AHEAD_MAX_MS` ahead of the clock, times can be equal. A clock that was set back by more is
   * followed.
   */
  #timeOf(body: EntryBody): number {
    const nowMs = Math.floor(this.#options.clock.nowMs());
    if (!makesRows(body)) return nowMs;
    const aheadMs = this.#lastTimeMs - nowMs;
    const isUsable = aheadMs >= 0 && aheadMs <= OUTBOX_TIME_AHEAD_MAX_MS;
    this.#lastTimeMs = isUsable ? Math.min(this.#lastTimeMs + 1, nowMs + OUTBOX_TIME_AHEAD_MAX_MS) : nowMs;
    return this.#lastTimeMs;
  }

  async #storeSomewhere(bytes: Buffer): Promise<Segment> {
    const segment = this.#current();
    try {
      await this.#store(segment, bytes);
      return segment;
    } catch (error) {
      if (!isAppError(error, "limited") || !(await this.#reclaim())) throw error;
    }
    await this.#holdBallast();
    await this.#store(this.#current(), bytes);
    this.#diskFull = false;
    return this.#current();
  }

  /**
   * Frees disk space when all entries are acknowledged: the current file, which may fill the disk, is replaced by a new
   * one that has only the marks. False when this frees nothing, or when the disk has no room for the new file.
   */
  async #reclaim(): Promise<boolean> {
    const { bytes, headerBytes } = this.#current();
    if (this.#acknowledged < this.#nextSequence - 1 || bytes <= headerBytes) return false;
    await this.#ballast.giveBack();
    try {
      await this.#roll();
    } catch (error) {
      if (isDiskFull(error)) return false;
      throw error;
    }
    await this.#dropAcknowledged();
    return true;
  }

  #dropAcknowledged(): Promise<void> {
    const dropping = this.#dropping.then(() => this.#dropFiles());
    this.#dropping = dropping.catch(() => undefined);
    return dropping;
  }

  /** Deletes acknowledged files. After a failure, `room` tries again, because no acknowledgement may follow. */
  async #dropAgain(): Promise<void> {
    try {
      await this.#dropAcknowledged();
    } catch {
      this.#options.clock.after(OUTBOX_RETRY_MS, () => this.#changes.note());
    }
  }

  async #dropFiles(): Promise<void> {
    const second = this.#segments[1];
    if (!second || second.base - 1 > this.#acknowledged) return;
    // Store the acknowledged position first. Without it, the missing entries would be reported as lost after a restart.
    await this.pins.save();
    for (let next = this.#segments[1]; next && next.base - 1 <= this.#acknowledged; next = this.#segments[1]) {
      const [first] = this.#segments.splice(0, 1);
      if (first) await this.#drop(first);
    }
  }

  /** Deletes a file durably before the next one: otherwise a power cut could bring back only the older file. */
  async #drop(segment: Segment): Promise<void> {
    try {
      await this.#files.rm(segment.path, { force: true });
      await syncFolder(this.#files, this.#options.folder);
    } catch (error) {
      this.#segments.unshift(segment);
      throw error;
    }
  }

  /**
   * Fills the reserve file before entries are written: in its space they would leave no room to delete old files.
   * `AppError("limited")` when it does not fit, for example because a reader still has a deleted file open.
   */
  async #holdBallast(): Promise<void> {
    await this.#ballast.take();
    if (!this.#ballast.held && (await this.#reclaim())) await this.#ballast.take();
    if (!this.#ballast.held) throw this.#noteDiskFull();
  }

  async #store(segment: Segment, bytes: Buffer): Promise<void> {
    const file = this.#file;
    if (!file) throw new AppError("cancelled", "The outbox is closed.");
    try {
      await writeWholly(file, bytes, segment.bytes);
      await file.datasync();
    } catch (error) {
      await this.#undo(error, async () => {
        await file.truncate(segment.bytes);
        await file.datasync();
      });
      throw isDiskFull(error)
        ? this.#noteDiskFull()
        : new AppError("unavailable", `The outbox cannot be written: ${errorText(error)}.`, { cause: error });
    }
  }

  /**
   * Removes a partial write durably, so that a power cut does not bring it back. If the removal fails, the outbox
   * refuses all further writes.
   */
  async #undo(cause: unknown, takeBack: () => Promise<void>): Promise<void> {
    try {
      await takeBack();
    } catch (error) {
      this.#broken = new AppError("internal", `The outbox is damaged: ${errorText(error)} after ${errorText(cause)}.`, {
        cause: error,
      });
      this.#changes.note();
    }
  }

  #noteDiskFull(): AppError {
    this.#diskFull = true;
    this.#options.clock.after(OUTBOX_RETRY_MS, () => {
      this.#diskFull = false;
      this.#changes.note();
    });
    return new AppError("limited", "The disk under the outbox is full.", { details: { reason: "disk_full" } });
  }

  async #rollWhenLarge(): Promise<void> {
    const current = this.#current();
    if (current.bytes - current.headerBytes < this.#segmentBytes) return;
    try {
      await this.#roll();
    } catch (error) {
      // The current segment is still usable, and more entries may fit into it.
      if (!isDiskFull(error)) throw error;
    }
  }

  async #roll(stream = this.#streamId): Promise<void> {
    const serial = (this.#segments.at(-1)?.serial ?? 0) + 1;
    const path = join(this.#options.folder, segmentName(serial));
    const header = encodeHeader({ format: 1, stream, base: this.#nextSequence, marks: [...this.#marks] });
    const file = await this.#files.open(path, "w+", 0o600);
    try {
      await writeWholly(file, header, 0);
      await file.datasync();
      await syncFolder(this.#files, this.#options.folder);
    } catch (error) {
      await file.close();
      await this.#undo(error, async () => {
        await this.#files.rm(path, { force: true });
        await syncFolder(this.#files, this.#options.folder);
      });
      throw error;
    }
    await this.#file?.close();
    this.#file = file;
    this.#segments.push({ serial, path, base: this.#nextSequence, headerBytes: header.length, bytes: header.length });
  }

  async #load(): Promise<void> {
    const left = await loadOutbox(this.#files, this.#options.folder);
    if (!left) return;
    this.#segments.push(...left.segments);
    for (const [key, value] of left.marks) this.#marks.set(key, value);
    this.#streamId = left.streamId;
    this.#nextSequence = left.nextSequence;
    this.#lastTimeMs = left.lastTimeMs;
    this.#file = left.file;
    this.damagedFrames = left.damagedFrames;
    this.tornBytes = left.tornBytes;
  }

  /** Opens the pins. If more was sent than the outbox has, its end was damaged, and the stream gets a new id. */
  async #openPins(): Promise<void> {
    const { folder } = this.#options;
    const slotBytes = Math.min(OUTBOX_PINS_SLOT_BYTES, Math.floor(this.#maxBytes / 16));
    this.#pins = await OutboxPins.open({ path: join(folder, "pins"), files: this.#files, slotBytes });
    if (this.#pins.stream !== this.#streamId)
      return this.#pins.begin(this.#streamId, (this.#segments[0]?.base ?? 1) - 1);
    this.#acknowledged = this.#pins.acknowledged;
    if (this.#pins.knownThrough >= this.#nextSequence) await this.renewStream();
  }

  #current(): Segment {
    const segment = this.#segments.at(-1);
    if (!segment) throw new AppError("internal", "The outbox has no segment.");
    return segment;
  }
}
