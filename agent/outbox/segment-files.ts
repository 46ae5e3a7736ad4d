import { join } from "node:path";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import type { Files, OpenFile } from "../../common/files.ts";
import { OUTBOX_RETRY_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { isDiskFull, makeFolder, syncFolder, writeWholly } from "../disk/files.ts";
import { Ballast } from "./ballast.ts";
import { loadOutbox, type LoadedOutbox } from "./load.ts";
import { encodeHeader, segmentName, type Segment } from "./segment.ts";

/** The stream as it is now. Its owner changes it. */
export interface Stream {
  readonly id: string;
  readonly nextSequence: number;
  /** The controllers have stored every entry up to this sequence. */
  readonly acknowledged: number;
  readonly marks: ReadonlyMap<string, string>;
}

export interface SegmentFilesOptions {
  readonly folder: string;
  readonly files: Files;
  readonly clock: Clock;
  /** A new file is begun when the current one has this size. */
  readonly segmentBytes: number;
  /** Content of the file that reserves disk space. */
  readonly reserve: Uint8Array;
  readonly stream: Stream;
  /** Stores durably what is acknowledged. Runs before acknowledged files are deleted. */
  readonly saveAcknowledged: () => Promise<void>;
  /** Called when a write may succeed again, and when none will. */
  readonly changed: () => void;
}

/**
 * The segment files of an outbox, on a disk that may be full or may fail. A write is durable when it resolves; a failed
 * one leaves nothing behind. Files whose entries are all acknowledged are deleted, except the last.
 */
export class SegmentFiles {
  readonly #options: SegmentFilesOptions;
  readonly #ballast: Ballast;
  readonly #segments: Segment[] = [];
  /** The file of the last segment. */
  #file: OpenFile | undefined;
  /** Deletions of files run one after another. */
  #deleting: Promise<void> = Promise.resolve();
  #diskFull = false;
  #broken: AppError | undefined;

  constructor(options: SegmentFilesOptions) {
    this.#options = options;
    const path = join(options.folder, "reserve");
    this.#ballast = new Ballast({ path, files: options.files, bytes: options.reserve });
  }

  /** In the order of their entries. The last one is being written. */
  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get bytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0);
  }

  /** Set when a failed write could not be removed: no further write is possible. */
  get broken(): AppError | undefined {
    return this.#broken;
  }

  /** `AppError` when the next write would fail. */
  get refusal(): AppError | undefined {
    return this.#broken ?? (this.#diskFull ? diskFull() : undefined);
  }

  /** Takes over what the previous process left in the folder; undefined when it has no segment. */
  async load(): Promise<LoadedOutbox | undefined> {
    const { files, folder } = this.#options;
    await makeFolder(files, folder);
    const left = await loadOutbox(files, folder);
    this.#segments.push(...(left?.segments ?? []));
    this.#file = left?.file;
    return left;
  }

  /** Fills the reserve file if the disk has room for it. */
  takeReserve(): Promise<void> {
    return this.#ballast.take();
  }

  /**
   * Prepares a write: fills the reserve file and begins a new segment if the current one is large enough.
   * `AppError("limited")` when the disk is full.
   */
  async prepare(): Promise<void> {
    if (this.#broken) throw this.#broken;
    await this.#holdBallast();
    const { bytes, headerBytes } = this.#current();
    if (bytes - headerBytes < this.#options.segmentBytes) return;
    try {
      await this.begin();
    } catch (error) {
      // The current segment is still usable, and more entries may fit into it.
      if (!isDiskFull(error)) throw error;
    }
  }

  /** Writes a frame durably behind all others. On a full disk, it first frees the space of acknowledged entries. */
  async write(frame: Buffer): Promise<void> {
    try {
      await this.#store(this.#current(), frame);
      return;
    } catch (error) {
      if (!isAppError(error, "limited") || !(await this.#reclaim())) throw error;
    }
    await this.#holdBallast();
    await this.#store(this.#current(), frame);
    this.#diskFull = false;
  }

  /** Begins a new segment, with the marks of the stream in its header. */
  async begin(streamId = this.#options.stream.id): Promise<void> {
    const { files, folder, stream } = this.#options;
    const serial = (this.#segments.at(-1)?.serial ?? 0) + 1;
    const path = join(folder, segmentName(serial));
    const base = stream.nextSequence;
    const header = encodeHeader({ format: 1, stream: streamId, base, marks: [...stream.marks] });
    const file = await files.open(path, "w+", 0o600);
    try {
      await writeWholly(file, header, 0);
      await file.datasync();
      await syncFolder(files, folder);
    } catch (error) {
      await file.close();
      await this.#undo(error, async () => {
        await files.rm(path, { force: true });
        await syncFolder(files, folder);
      });
      throw error;
    }
    await this.#file?.close();
    this.#file = file;
    this.#segments.push({ serial, path, base, headerBytes: header.length, bytes: header.length });
  }

  deleteAcknowledged(): Promise<void> {
    const deleting = this.#deleting.then(() => this.#deleteFiles());
    this.#deleting = deleting.catch(() => undefined);
    return deleting;
  }

  /** Deletes acknowledged files. After a failure it reports a change later, because no acknowledgement may follow. */
  async tryDeleting(): Promise<void> {
    try {
      await this.deleteAcknowledged();
    } catch {
      this.#options.clock.after(OUTBOX_RETRY_MS, this.#options.changed);
    }
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  /**
   * Frees disk space when all entries are acknowledged: the current file, which may fill the disk, is replaced by a new
   * one that has only the marks. False when this frees nothing, or when the disk has no room for the new file.
   */
  async #reclaim(): Promise<boolean> {
    const { acknowledged, nextSequence } = this.#options.stream;
    const { bytes, headerBytes } = this.#current();
    if (acknowledged < nextSequence - 1 || bytes <= headerBytes) return false;
    await this.#ballast.giveBack();
    try {
      await this.begin();
    } catch (error) {
      if (isDiskFull(error)) return false;
      throw error;
    }
    await this.deleteAcknowledged();
    return true;
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

  async #store(segment: Segment, frame: Buffer): Promise<void> {
    const file = this.#file;
    if (!file) throw new AppError("cancelled", "The outbox is closed.");
    try {
      await writeWholly(file, frame, segment.bytes);
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
    segment.bytes += frame.length;
  }

  /** Removes a partial write durably, so that a power cut does not bring it back. If that fails, all writes will. */
  async #undo(cause: unknown, takeBack: () => Promise<void>): Promise<void> {
    try {
      await takeBack();
    } catch (error) {
      const message = `The outbox is damaged: ${errorText(error)} after ${errorText(cause)}.`;
      this.#broken = new AppError("internal", message, { cause: error });
      this.#options.changed();
    }
  }

  #noteDiskFull(): AppError {
    this.#diskFull = true;
    this.#options.clock.after(OUTBOX_RETRY_MS, () => {
      this.#diskFull = false;
      this.#options.changed();
    });
    return diskFull();
  }

  async #deleteFiles(): Promise<void> {
    const isDeletable = (next: Segment | undefined): boolean =>
      next !== undefined && next.base - 1 <= this.#options.stream.acknowledged;
    if (!isDeletable(this.#segments[1])) return;
    // Store the acknowledged position first. Without it, the missing entries would be reported as lost after a restart.
    await this.#options.saveAcknowledged();
    while (isDeletable(this.#segments[1])) await this.#deleteFirst();
  }

  /** Deletes a file durably before the next one: otherwise a power cut could bring back only the older file. */
  async #deleteFirst(): Promise<void> {
    const { files, folder } = this.#options;
    const first = this.#segments.shift()!;
    try {
      await files.rm(first.path, { force: true });
      await syncFolder(files, folder);
    } catch (error) {
      this.#segments.unshift(first);
      throw error;
    }
  }

  #current(): Segment {
    const segment = this.#segments.at(-1);
    if (!segment) throw new AppError("internal", "The outbox has no segment.");
    return segment;
  }
}

function diskFull(): AppError {
  return new AppError("limited", "The disk under the outbox is full.", { details: { reason: "disk_full" } });
}
