import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { isAppError } from "../../../common/errors.ts";
import { LOG_FINAL_MS, LOG_HEAD_BYTES, LOG_MISSES_MAX, LOG_READ_BYTES, LOG_READ_MIN_BYTES } from "../../../common/limits.ts";
import { policyMarks, type EmitOptions } from "../../host.ts";
import type { Emission } from "../../outbox.ts";
import type { Mark } from "../../outbox-segment.ts";
import { packRecords, type RawRecord } from "../../records.ts";
import { headOf, type Head } from "./folder.ts";
import type { LogWork } from "./work.ts";

/** One life of a file and how far it is in the outbox, as marked. */
export interface FileState {
  /** Rises with every life seen by the policy. */
  readonly serial: number;
  /** Where it was first seen. */
  readonly home: string;
  path: string;
  readonly id: string;
  head: Head;
  /** How the lives began that were cut off from it. */
  readonly former: readonly Head[];
  /** First byte whose record is not in the outbox. */
  offset: number;
  /** `offset` is in the middle of a record whose beginning was sent, cut. */
  skipping: boolean;
  /** Last size and time seen. */
  size: number;
  mtimeMs: number;
  readonly log: string;
  readonly place: readonly (string | number)[];
  readonly groups: Readonly<Record<string, string>>;
}

export function fileMarks(policy: string): string {
  return `${policyMarks(policy)}file-`;
}

/** Reads one life of a file to its end, again and again; its records and its position go into the outbox in one write. */
export class FollowedFile {
  readonly state: FileState;
  /** Deleted; what is open can still be read. */
  gone = false;
  /** It may have changed since it was read. */
  dirty = true;
  /** A record is held back until the file is silent for a while. */
  waiting = false;
  readonly #work: LogWork;
  #handle: FileHandle | undefined;
  #superseded = false;
  #misses = 0;
  #changedMs: number;
  /** Less than the usual while the outbox has little room. */
  #pieceBytes = LOG_READ_BYTES;

  constructor(work: LogWork, state: FileState) {
    this.#work = work;
    this.state = state;
    this.#changedMs = work.host.clock.monotonicMs();
  }

  get isOpen(): boolean {
    return this.#handle !== undefined;
  }

  get changedMs(): number {
    return this.#changedMs;
  }

  /** When something newer has taken its place, what it ends with is its last record. */
  supersede(superseded: boolean): void {
    if (superseded && !this.#superseded && this.state.size > this.state.offset) this.dirty = true;
    this.#superseded = superseded;
  }

  /** It was in none of the last looks. */
  get missing(): boolean {
    return this.#misses > 0;
  }

  found(): void {
    this.#misses = 0;
    this.gone = false;
  }

  /** A file that is renamed during a look can be missed by it, so one miss says little. */
  async miss(): Promise<void> {
    this.#misses++;
    const deleted = (await this.#handle?.stat())?.nlink === 0;
    this.gone = deleted || this.#misses >= LOG_MISSES_MAX;
  }

  mark(): Mark {
    return { key: this.#key(), value: JSON.stringify(this.state) };
  }

  unmark(): Mark {
    return { key: this.#key() };
  }

  gap(reason: "truncated" | "vanished"): Emission[] {
    const { host, policy, spec } = this.#work;
    const count = this.state.size - this.state.offset;
    if (count <= 0) return [];
    const nowMs = host.clock.nowMs();
    const source = join(spec.dir, this.state.home);
    return [{ body: { $case: "gap", value: { policy: policy.name, source, reason, count, unit: "bytes", fromMs: Math.round(this.state.mtimeMs), toMs: nowMs } } }];
  }

  /**
   * To its present end. `truncated` when the file is not the continuation of what was read: then nothing was read.
   */
  async read(signal: AbortSignal): Promise<"read" | "truncated" | "missing"> {
    const handle = await this.#open();
    if (!handle) return "missing";
    this.dirty = false;
    this.waiting = false;
    while (!signal.aborted) {
      const { size, mtimeMs, nlink } = await handle.stat();
      if (nlink === 0) this.gone = true;
      if (size < this.state.offset || !(await this.#continues(handle))) return "truncated";
      if (size !== this.state.size || mtimeMs !== this.state.mtimeMs) this.#changedMs = this.#work.host.clock.monotonicMs();
      Object.assign(this.state, { size, mtimeMs });
      if (!(await this.#readPiece(handle, signal))) return "read";
    }
    return "read";
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  async #open(): Promise<FileHandle | undefined> {
    if (this.#handle) return this.#handle;
    try {
      const handle = await open(join(this.#work.spec.dir, this.state.path), "r");
      const { dev, ino } = await handle.stat();
      if (`${dev}:${ino}` === this.state.id) return (this.#handle = handle);
      // Another took its name between the look and now.
      await handle.close();
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
    }
    return undefined;
  }

  async #continues(handle: FileHandle): Promise<boolean> {
    const { head } = this.state;
    if (head.bytes === 0) return true;
    return (await headOf(handle, head.bytes)).hash === head.hash;
  }

  /** False when there is nothing more to take for now. */
  async #readPiece(handle: FileHandle, signal: AbortSignal): Promise<boolean> {
    const { state } = this;
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(this.#pieceBytes, state.size - state.offset)));
    const { bytesRead } = buffer.length === 0 ? { bytesRead: 0 } : await handle.read(buffer, 0, buffer.length, state.offset);
    if (bytesRead === 0) return false;
    const bytes = buffer.subarray(0, bytesRead);
    const atEnd = state.offset + bytesRead >= state.size;
    const { pieces, consumed, skipping } = this.#work.cutter.cut(bytes, { skipping: state.skipping, final: atEnd && this.#isFinal(bytes) });
    this.waiting = atEnd && consumed < bytesRead && (this.#superseded || this.gone || this.#work.endsWithNext);
    if (consumed === 0) return this.#takeLargerPieces(atEnd);
    const head = state.head.bytes < LOG_HEAD_BYTES ? await headOf(handle, Math.min(LOG_HEAD_BYTES, state.offset + consumed)) : state.head;
    const records = pieces.map(({ start, end, cut }) => ({ bytes: bytes.subarray(start, end), offset: state.offset + start, cut }));
    const next = { offset: state.offset + consumed, skipping, head };
    try {
      await this.#emit(records, next, { signal, impatient: this.#pieceBytes > LOG_READ_MIN_BYTES });
      this.#pieceBytes = Math.min(LOG_READ_BYTES, 2 * this.#pieceBytes);
    } catch (error) {
      if (!isAppError(error, "limited")) throw error;
      this.#pieceBytes = Math.max(LOG_READ_MIN_BYTES, Math.floor(Math.min(this.#pieceBytes, bytesRead) / 2));
      await this.#work.host.room(signal);
    }
    return true;
  }

  /** A record may be longer than a small piece; false when it is the end of the file that is missing. */
  #takeLargerPieces(atEnd: boolean): boolean {
    if (atEnd || this.#pieceBytes >= LOG_READ_BYTES) return false;
    this.#pieceBytes = LOG_READ_BYTES;
    return true;
  }

  async #emit(records: readonly RawRecord[], next: Pick<FileState, "offset" | "skipping" | "head">, options: EmitOptions): Promise<void> {
    const { host, policy, spec, filter } = this.#work;
    const wanted = filter ? records.filter(({ bytes }) => filter.test(Buffer.from(bytes).toString())) : records;
    const head = {
      policy: policy.name,
      policyRevision: policy.revision,
      rule: spec.rule,
      source: join(spec.dir, this.state.home),
      generation: `${this.state.id}:${this.state.serial}`,
      groups: { ...this.state.groups },
    };
    const value = JSON.stringify({ ...this.state, ...next });
    await host.emit(packRecords(head, wanted), { ...options, marks: [{ key: this.#key(), value }] });
    Object.assign(this.state, next);
  }

  /** Whether what is held back is complete: nothing was written for a while, and nothing that belongs to it will be. */
  #isFinal(bytes: Buffer): boolean {
    const silentMs = this.#work.host.clock.monotonicMs() - this.#changedMs;
    if (silentMs < LOG_FINAL_MS) return false;
    return this.#superseded || this.gone || (this.#work.endsWithNext && bytes.at(-1) === 10);
  }

  #key(): string {
    return `${fileMarks(this.#work.policy.name)}${this.state.serial}`;
  }
}
