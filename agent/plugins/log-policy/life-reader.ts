import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { isAppError } from "../../../common/errors.ts";
import {
  LOG_FINAL_MS,
  LOG_LAST_LINE_MS,
  LOG_READ_BYTES,
  LOG_READ_MIN_BYTES,
  LOG_TAIL_BYTES,
} from "../../../common/limits.ts";
import { openTrusted } from "../../disk/trusted-path.ts";
import type { Mark } from "../../outbox/segment.ts";
import type { UnpackedPiece } from "./packed.ts";
import { readAt } from "./reading.ts";
import { beginsWithHole, printBehindHole, textEnds, type Room } from "./records/holes.ts";
import { LifeRecords, type Taken } from "./records/life-records.ts";
import { mayBeDivided, readRest, type RestSink } from "./records/rest.ts";
import { extendChain } from "./rotation/chain.ts";
import { extendsHead, hasHead, headOf, tailOf } from "./rotation/content.ts";
import type { FileState } from "./rotation/life.ts";
import type { Losses } from "./rotation/losses.ts";
import type { UnpackingJob } from "./unpacking.ts";
import type { LogWork } from "./work.ts";

/** The life that is read, as its reader sees and changes it. */
export interface ReadLife {
  readonly state: FileState;
  readonly losses: Losses;
  readonly isHome: boolean;
  /** A younger file of the log exists. */
  readonly superseded: boolean;
  gone: boolean;
  dirty: boolean;
  displace(): Promise<void>;
  mark(changes?: Partial<FileState>): Mark;
}

interface NextPiece {
  /** Begins with the tail. */
  readonly bytes: Buffer;
  readonly before: number;
  readonly head: string;
}

/**
 * Reads the text of one life, piece by piece, each time from the position after the last record that was sent. The
 * text is in the file of the life, or in a packed file.
 */
export class LifeReader {
  readonly #work: LogWork;
  readonly #life: ReadLife;
  readonly #room: Room;
  readonly #records: LifeRecords;
  #handle: FileHandle | undefined;
  #changedMs: number;
  #waiting = false;
  /** Size of one read. It is below `LOG_READ_BYTES` while the outbox has little room. */
  #pieceBytes = LOG_READ_BYTES;

  constructor(work: LogWork, life: ReadLife, room: Room) {
    this.#work = work;
    this.#life = life;
    this.#room = room;
    this.#records = new LifeRecords(work, life);
    this.#changedMs = work.host.clock.monotonicMs();
  }

  get isOpen(): boolean {
    return this.#handle !== undefined;
  }

  /** A record is held back until the file is silent for a while. */
  get waiting(): boolean {
    return this.#waiting;
  }

  /** Time when a read last found the file changed. */
  get changedMs(): number {
    return this.#changedMs;
  }

  /** True if the open file has no name any more. */
  async isDeleted(): Promise<boolean> {
    return (await this.#handle?.stat())?.nlink === 0;
  }

  /** Reads to the current end. `displaced`: other content is there. `missing`: no file of this life is at its path. */
  async read(signal: AbortSignal): Promise<"read" | "displaced" | "missing"> {
    const handle = await this.#open();
    if (!handle) return "missing";
    this.#life.dirty = false;
    this.#waiting = false;
    await this.#records.findHeading(handle);
    while (!signal.aborted) {
      const seenMs = this.#work.host.clock.nowMs();
      const { size, mtimeMs, nlink } = await handle.stat();
      if (nlink === 0) this.#life.gone = true;
      const piece = size < this.#life.state.size ? undefined : await this.#nextPiece(handle, size);
      if (!piece) {
        await this.#life.displace();
        return "displaced";
      }
      if (this.#life.isHome && size === 0 && this.#life.state.head === "" && mtimeMs !== this.#life.state.mtimeMs)
        await this.#work.host.emit(await this.#life.losses.ofEmpty(), {
          marks: [this.#life.mark({ mtimeMs })],
          reserve: true,
          signal,
        });
      if (size !== this.#life.state.size || mtimeMs !== this.#life.state.mtimeMs)
        this.#changedMs = this.#work.host.clock.monotonicMs();
      Object.assign(this.#life.state, { size, mtimeMs, seenMs, head: piece.head });
      if (!(await this.#take(piece, signal))) return "read";
    }
    return "read";
  }

  /** Sends the rest of a packed life, from the read position on. */
  readRest(chunks: AsyncIterable<UnpackedPiece>, signal: AbortSignal): UnpackingJob<void> {
    return readRest(chunks, this.#restSink(signal));
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  #restSink(signal: AbortSignal): RestSink {
    const { state } = this.#life;
    const behind = (read: Buffer, before: Buffer) => {
      const tail = tailOf(Buffer.concat([before, read]));
      return { offset: state.offset + read.length, tail, chain: undefined };
    };
    return {
      unitBytes: this.#work.encoding?.unitBytes ?? 1,
      isSkipping: () => state.skipping,
      skip: (hole, before) => Object.assign(state, behind(hole, before)),
      take: async (fresh, isEnd, before) => {
        const { records, consumed, skipping } = this.#cut(fresh, isEnd);
        const next = { ...behind(fresh.subarray(0, consumed), before), skipping };
        if (consumed > 0) await this.#records.emit(records, next, { signal });
        return consumed;
      },
    };
  }

  async #open(): Promise<FileHandle | undefined> {
    if (this.#handle) return this.#handle;
    try {
      const handle = await openTrusted(join(this.#work.spec.dir, this.#life.state.path));
      const { dev, ino } = await handle.stat();
      if (`${dev}:${ino}` === this.#life.state.id) return (this.#handle = handle);
      // Another file has taken its name since the scan.
      await handle.close();
    } catch (error) {
      const swapped = error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ELOOP");
      if (!swapped && !isAppError(error, "denied")) throw error;
    }
    return undefined;
  }

  /**
   * Reads after the read position, with the tail before it. Undefined when tail or head are not those that were read:
   * the file was truncated. The head is compared last, to detect a truncation during the read.
   */
  async #nextPiece(handle: FileHandle, size: number): Promise<NextPiece | undefined> {
    const { offset, tail, head } = this.#life.state;
    const from = offset - tail.bytes;
    const expected = Math.min(tail.bytes + this.#pieceBytes, size - from);
    const bytes = await readAt(handle, from, expected);
    if (bytes.length < expected || tailOf(bytes.subarray(0, tail.bytes), tail.bytes).hash !== tail.hash)
      return undefined;
    const seen = (from === 0 && headOf(bytes)) || head;
    return extendsHead(seen, head) && (await hasHead(handle, seen))
      ? { bytes, before: tail.bytes, head: seen }
      : undefined;
  }

  /** Sends the next records of a piece. False when there is nothing more to take for now. */
  async #take({ bytes, before }: NextPiece, signal: AbortSignal): Promise<boolean> {
    const { state } = this.#life;
    const all = bytes.subarray(before);
    if (all.length === 0) return false;
    const unitBytes = this.#work.encoding?.unitBytes ?? 1;
    if (beginsWithHole(all, unitBytes) && !state.skipping) return this.#skipHole(unitBytes);
    const isWhole = state.offset + all.length >= state.size;
    const ends = textEnds(all, { unitBytes, isWhole });
    if (isWhole) this.#room.note(state.offset + (ends.at(-1) ?? 0), state.size);
    for (const end of ends) {
      if (end === 0) return this.#skipHole(unitBytes);
      const taken = this.#cut(all.subarray(0, end));
      if (taken.consumed > 0) return this.#send(bytes.subarray(0, before + taken.consumed), taken, signal);
    }
    return this.#takeLargerPieces(isWhole);
  }

  /** Cuts bytes that follow the read position into records. */
  #cut(fresh: Buffer, isEnd = false): Taken {
    const { state } = this.#life;
    const atEnd = state.offset + fresh.length >= state.size;
    const taken = this.#records.cut(fresh, isEnd || (atEnd && this.#isFinal(fresh)));
    this.#waiting = atEnd && taken.consumed < fresh.length;
    return taken;
  }

  /** `bytes` begin with the tail and end with the records. Without room nothing is sent, and reads get smaller. */
  async #send(bytes: Buffer, { records, skipping }: Taken, signal: AbortSignal): Promise<boolean> {
    const next = { ...this.#printAt(bytes), skipping };
    try {
      await this.#records.emit(records, next, { signal, impatient: this.#pieceBytes > LOG_READ_MIN_BYTES });
      this.#pieceBytes = Math.min(LOG_READ_BYTES, 2 * this.#pieceBytes);
    } catch (error) {
      if (!mayBeDivided(error, this.#pieceBytes)) throw error;
      this.#pieceBytes = Math.max(LOG_READ_MIN_BYTES, Math.floor(Math.min(this.#pieceBytes, bytes.length) / 2));
      await this.#work.host.room(signal);
    }
    return true;
  }

  /** Continues after a hole. False if it has no end yet: it may be reserved space that is written later. */
  async #skipHole(unitBytes: 1 | 2): Promise<boolean> {
    const { state } = this.#life;
    const handle = this.#handle;
    if (!handle) return false;
    const { through, isEnd } = await this.#room.look(handle, state);
    // The next read looks at the rest of the hole, so that other logs get their turns and the agent can stop.
    this.#life.dirty ||= !isEnd && through < state.size;
    if (!isEnd) return false;
    Object.assign(state, await printBehindHole(handle, through - (through % unitBytes), state.head));
    return true;
  }

  /** The print after the file is read to the end of `bytes`. These begin with the current tail. */
  #printAt(bytes: Buffer): Pick<FileState, "offset" | "tail" | "chain"> {
    const { state } = this.#life;
    const from = state.offset - state.tail.bytes;
    const offset = from + bytes.length;
    const before = state.offset === 0 ? [] : state.chain;
    const chain = before && extendChain(before, bytes.subarray((before.at(-1)?.[0] ?? 0) - from));
    const length = Math.max(Math.min(LOG_TAIL_BYTES, offset), offset - (chain ? (chain.at(-1)?.[0] ?? 0) : offset));
    return { offset, tail: tailOf(bytes, length), ...(chain && { chain }) };
  }

  /** Makes the next pieces larger, for a long record. False at the end of the file, or if they have full size. */
  #takeLargerPieces(atEnd: boolean): boolean {
    if (atEnd || this.#pieceBytes >= LOG_READ_BYTES) return false;
    this.#pieceBytes = LOG_READ_BYTES;
    return true;
  }

  /** True if the last record counts as complete: after `LOG_LAST_LINE_MS`, or `LOG_FINAL_MS` if no more is expected. */
  #isFinal(bytes: Buffer): boolean {
    const silentMs = this.#work.host.clock.monotonicMs() - this.#changedMs;
    if (silentMs >= LOG_LAST_LINE_MS) return true;
    if (silentMs < LOG_FINAL_MS) return false;
    return this.#life.superseded || this.#life.gone || (this.#work.endsWithNext && bytes.at(-1) === 10);
  }
}
