import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { isAppError } from "../../../common/errors.ts";
import {
  LOG_FINAL_MS,
  LOG_LAST_LINE_MS,
  LOG_MISSES_MAX,
  LOG_READ_BYTES,
  LOG_READ_MIN_BYTES,
  LOG_TAIL_BYTES,
} from "../../../common/limits.ts";
import type { Pattern } from "../../../common/regex/pattern.ts";
import { policyMarks, type EmitOptions } from "../../host.ts";
import type { Emission } from "../../outbox.ts";
import type { Mark } from "../../outbox-segment.ts";
import { packRecords, type RawRecord } from "../../records.ts";
import { openTrusted } from "../../trusted-path.ts";
import { extendChain, type Checkpoint } from "./chain.ts";
import { extendsHead, hasHead, headOf, tailOf, type Print, type Same, type Tail } from "./content.ts";
import type { FileLook } from "./folder.ts";
import { beginsWithHole, lookThroughHole, textEnds } from "./holes.ts";
import { readAt } from "./reading.ts";
import { recordOf } from "./record-text.ts";
import type { Position } from "./switches.ts";
import type { LogWork } from "./work.ts";
import { lengthBeforeCut } from "./writer.ts";

/** One life of a file and how far it is in the outbox, as marked. */
export interface FileState extends Print {
  /** Rises with every life seen by the policy. */
  readonly serial: number;
  /** Names this life in its records, wherever it lies. */
  readonly generation: string;
  /** Where it was first seen. */
  readonly home: string;
  path: string;
  id: string;
  /** The link at its home that led to it. */
  link?: string;
  head: string;
  /** First byte whose record is not in the outbox. */
  offset: number;
  tail: Tail;
  chain?: readonly Checkpoint[];
  /** `offset` is in the middle of a record whose beginning was sent, cut. */
  skipping: boolean;
  /** Last size and time seen, and when. */
  size: number;
  mtimeMs: number;
  seenMs: number;
  readonly log: string;
  readonly place: readonly (string | number)[];
  readonly groups: Readonly<Record<string, string>>;
}

/** Where a life goes on after its file was cut off. */
export interface Copy {
  readonly at: FileLook;
  readonly same: Same;
  /** Bytes that count as read although they may differ from what was. */
  readonly unprovenBytes?: number;
}

export function fileMarks(policy: string): string {
  return `${policyMarks(policy)}file-`;
}

/**
 * Reads one life of a file to its end, again and again; its records and its position go into the outbox in one write.
 */
export class FollowedFile {
  readonly state: FileState;
  /** Deleted; what is open can still be read. */
  gone = false;
  /** Another content is in its place: the file was cut off, or its inode went to another file. */
  displaced = false;
  /** Its end was read out of a packed file. */
  isPacked = false;
  /** When a packed file was first found without its end. */
  packedSinceMs: number | undefined;
  /** When it was last found so. */
  packedTriedMs = -Infinity;
  /** It was renamed, and its mark does not say so yet. */
  moved = false;
  /** It may have changed since it was read. */
  dirty = true;
  /** Where its home stood when a look last found it there. */
  atHome: Position | undefined;
  /** A record is held back until the file is silent for a while. */
  waiting = false;
  readonly #work: LogWork;
  /** How long the file was when it was cut off is known. */
  #isLengthKnown = false;
  #handle: FileHandle | undefined;
  #superseded = false;
  #misses = 0;
  #changedMs: number;
  /** Less than the usual while the outbox has little room. */
  #pieceBytes = LOG_READ_BYTES;
  /** The hole behind the place read, as far as it was looked through, and whether it ended with the file. */
  #hole = { from: -1, through: -1, isWhole: false };

  constructor(work: LogWork, state: FileState, atHome?: Position) {
    this.#work = work;
    this.state = state;
    this.atHome = atHome;
    this.#changedMs = work.host.clock.monotonicMs();
  }

  get isOpen(): boolean {
    return this.#handle !== undefined;
  }

  get isHome(): boolean {
    return this.state.path === this.state.home;
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

  /** After one more look without it the file counts as deleted. */
  get lastMiss(): boolean {
    return this.#misses >= LOG_MISSES_MAX - 1;
  }

  /** What was written to it last, and never seen, is lost as well. */
  async displace(): Promise<void> {
    if (this.displaced) return;
    this.displaced = true;
    // The copy of a file that was empty at every look is unknown as well.
    const length =
      this.isHome && this.state.head !== "" ? await lengthBeforeCut(this.#work.spec.dir, this.state) : undefined;
    this.state.size = Math.max(this.state.size, length ?? 0);
    this.#isLengthKnown = length !== undefined;
  }

  found(): void {
    this.#misses = 0;
    this.gone = false;
    this.displaced = false;
    this.#isLengthKnown = false;
  }

  /** Sends the rest of its life, which follows the place read; then it is read to its end. */
  async takeRest(rest: Buffer, signal: AbortSignal): Promise<void> {
    const { state } = this;
    // With the former size, a piece that ends behind it would pass for the last one, and its last line for a whole line.
    state.size = Math.max(state.size, state.offset + rest.length);
    for (let at = 0; at < rest.length; ) {
      const isLast = at + LOG_READ_BYTES >= rest.length;
      const fresh = rest.subarray(at, at + LOG_READ_BYTES);
      const { records, consumed, skipping } = this.#cut(fresh, isLast);
      const offset = state.offset + consumed;
      const tail = tailOf(rest.subarray(0, at + consumed));
      await this.#emit(records, { offset, tail, skipping, chain: undefined }, { signal });
      at += consumed;
    }
    this.isPacked = true;
  }

  /** A file that is renamed during a look can be missed by it, so one miss says little. */
  async miss(): Promise<void> {
    this.#misses++;
    const deleted = (await this.#handle?.stat())?.nlink === 0;
    this.gone = deleted || this.#misses >= LOG_MISSES_MAX;
  }

  /** It goes on in a copy. What was written behind the copy's end and not read is lost. */
  async moveTo({ at, same: { size, short }, unprovenBytes = 0 }: Copy, signal: AbortSignal): Promise<void> {
    const { state } = this;
    const gap = this.gap("truncated", Math.max(0, state.size - Math.max(state.offset, size)) + unprovenBytes);
    await this.close();
    Object.assign(state, { id: at.id, path: at.path, size, mtimeMs: at.mtimeMs });
    if (short)
      Object.assign(state, {
        offset: size,
        tail: short,
        head: cutHead(state.head, size),
        skipping: false,
        chain: undefined,
      });
    await this.#work.host.emit(gap, { marks: [this.mark()], reserve: true, signal });
    this.found();
    this.dirty = true;
  }

  mark(): Mark {
    return { key: this.#key(), value: JSON.stringify(this.state) };
  }

  unmark(): Mark {
    return { key: this.#key() };
  }

  /**
   * `count`: bytes known to be lost since the last look. More may have been written and removed unnoticed, so a count of
   * zero is unknown, except where it is known how long the file was: then nothing is lost and there is no gap.
   */
  gap(
    reason: "truncated" | "vanished",
    count = Math.max(0, this.state.size - this.state.offset),
    fromMs = this.state.seenMs,
  ): Emission[] {
    const { host, policy, spec } = this.#work;
    if (count === 0 && reason === "truncated" && this.#isLengthKnown) return [];
    const source = join(spec.dir, this.state.home);
    const value = {
      policy: policy.name,
      source,
      reason,
      count,
      unit: count > 0 ? "bytes" : "unknown",
      fromMs: Math.round(fromMs),
      toMs: host.clock.nowMs(),
    };
    return [{ body: { $case: "gap", value } }];
  }

  /**
   * Reads to the present end. `displaced` when the file is not the continuation of what was read: then nothing was
   * read.
   */
  async read(signal: AbortSignal): Promise<"read" | "displaced" | "missing"> {
    // What is there now may be the next life's, and begin as this one: `copies.test.ts` reads it twice without.
    if (this.displaced) {
      this.dirty = false;
      return "displaced";
    }
    const handle = await this.#open();
    if (!handle) return "missing";
    this.dirty = false;
    this.waiting = false;
    while (!signal.aborted) {
      const seenMs = this.#work.host.clock.nowMs();
      const { size, mtimeMs, nlink } = await handle.stat();
      if (nlink === 0) this.gone = true;
      const piece = size < this.state.size ? undefined : await this.#nextPiece(handle, size);
      if (!piece) {
        await this.displace();
        return "displaced";
      }
      if (size !== this.state.size || mtimeMs !== this.state.mtimeMs)
        this.#changedMs = this.#work.host.clock.monotonicMs();
      Object.assign(this.state, { size, mtimeMs, seenMs, head: piece.head });
      if (!(await this.#take(piece, signal))) return "read";
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
      const handle = await openTrusted(join(this.#work.spec.dir, this.state.path));
      const { dev, ino } = await handle.stat();
      if (`${dev}:${ino}` === this.state.id) return (this.#handle = handle);
      // Another took its name between the look and now.
      await handle.close();
    } catch (error) {
      const swapped = error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ELOOP");
      if (!swapped && !isAppError(error, "denied")) throw error;
    }
    return undefined;
  }

  /**
   * What follows the place read, together with what is before it. Undefined when that is not what was read: the file
   * was cut off. The head is looked at last, so that a file cut off meanwhile is noticed.
   */
  async #nextPiece(handle: FileHandle, size: number): Promise<NextPiece | undefined> {
    const { offset, tail, head } = this.state;
    const from = offset - tail.bytes;
    const expected = Math.min(tail.bytes + this.#pieceBytes, size - from);
    const bytes = await readAt(handle, from, expected);
    if (bytes.length < expected || tailOf(bytes.subarray(0, tail.bytes), tail.bytes).hash !== tail.hash)
      return undefined;
    const seen = from === 0 ? headOf(bytes) : head;
    return extendsHead(seen, head) && (await hasHead(handle, seen))
      ? { bytes, before: tail.bytes, head: seen }
      : undefined;
  }

  /** False when there is nothing more to take for now. */
  async #take({ bytes, before }: NextPiece, signal: AbortSignal): Promise<boolean> {
    const { state } = this;
    const all = bytes.subarray(before);
    if (all.length === 0) return false;
    const unitBytes = this.#work.encoding?.unitBytes ?? 1;
    if (beginsWithHole(all, unitBytes) && !state.skipping) return this.#skipHole(unitBytes);
    const isWhole = state.offset + all.length >= state.size;
    for (const end of textEnds(all, { unitBytes, isWhole })) {
      if (end === 0) return this.#skipHole(unitBytes);
      const taken = this.#cut(all.subarray(0, end));
      if (taken.consumed > 0) return this.#send(bytes.subarray(0, before + taken.consumed), taken, signal);
    }
    return this.#takeLargerPieces(isWhole);
  }

  /** The records of bytes that follow the place read. */
  #cut(fresh: Buffer, isEnd = false): Taken {
    const { state } = this;
    const { cutter, encoding } = this.#work;
    const atEnd = state.offset + fresh.length >= state.size;
    const final = isEnd || (atEnd && this.#isFinal(fresh));
    const { pieces, consumed, skipping } = cutter.cut(fresh, { skipping: state.skipping, final });
    this.waiting = atEnd && consumed < fresh.length;
    // A mark of the encoding alone is no record.
    const records = pieces
      .map((piece) => recordOf(fresh, piece, { offset: state.offset, encoding }))
      .filter(({ bytes }) => bytes.length > 0);
    return { records, consumed, skipping };
  }

  /** `bytes` begin with the tail and end where the records do. */
  async #send(bytes: Buffer, { records, skipping }: Taken, signal: AbortSignal): Promise<boolean> {
    const next = { ...this.#printAt(bytes), skipping };
    try {
      await this.#emit(records, next, { signal, impatient: this.#pieceBytes > LOG_READ_MIN_BYTES });
      this.#pieceBytes = Math.min(LOG_READ_BYTES, 2 * this.#pieceBytes);
    } catch (error) {
      if (!isAppError(error, "limited")) throw error;
      this.#pieceBytes = Math.max(LOG_READ_MIN_BYTES, Math.floor(Math.min(this.#pieceBytes, bytes.length) / 2));
      await this.#work.host.room(signal);
    }
    return true;
  }

  /** Goes on behind a hole. False when nothing is behind it yet: then it may be room that is written later. */
  async #skipHole(unitBytes: 1 | 2): Promise<boolean> {
    const { state } = this;
    const handle = this.#handle;
    const isKnown = this.#hole.from === state.offset;
    if (!handle || (isKnown && this.#hole.isWhole && this.#hole.through === state.size)) return false;
    // Text may have been written since the last look where only room was.
    const isBegun = isKnown && !this.#hole.isWhole;
    const { through, isEnd } = await lookThroughHole(handle, isBegun ? this.#hole.through : state.offset, state.size);
    if (!isEnd) {
      this.#hole = { from: state.offset, through, isWhole: through >= state.size };
      // The rest of the hole is for the next look, so that other logs have their turns and the agent can end.
      this.dirty ||= !this.#hole.isWhole;
      return false;
    }
    const offset = through - (through % unitBytes);
    const from = Math.max(0, offset - LOG_TAIL_BYTES);
    const tail = tailOf(await readAt(handle, from, offset - from));
    Object.assign(state, { offset, tail, chain: undefined });
    return true;
  }

  /** The print of the file once it is read up to the end of `bytes`, which begin with its tail. */
  #printAt(bytes: Buffer): Pick<FileState, "offset" | "tail" | "chain"> {
    const { state } = this;
    const from = state.offset - state.tail.bytes;
    const offset = from + bytes.length;
    const before = state.offset === 0 ? [] : state.chain;
    const chain = before && extendChain(before, bytes.subarray((before.at(-1)?.[0] ?? 0) - from));
    const length = Math.max(Math.min(LOG_TAIL_BYTES, offset), offset - (chain ? (chain.at(-1)?.[0] ?? 0) : offset));
    return { offset, tail: tailOf(bytes, length), ...(chain && { chain }) };
  }

  /** A record may be longer than a small piece; false when it is the end of the file that is missing. */
  #takeLargerPieces(atEnd: boolean): boolean {
    if (atEnd || this.#pieceBytes >= LOG_READ_BYTES) return false;
    this.#pieceBytes = LOG_READ_BYTES;
    return true;
  }

  async #emit(
    records: readonly RawRecord[],
    next: Pick<FileState, "offset" | "skipping" | "tail" | "chain">,
    options: EmitOptions,
  ): Promise<void> {
    const { host, policy, spec, filter } = this.#work;
    const wanted = filter ? records.filter(({ bytes }) => isWanted(filter, Buffer.from(bytes).toString())) : records;
    const head = {
      policy: policy.name,
      policyRevision: policy.revision,
      rule: spec.rule,
      source: join(spec.dir, this.state.home),
      generation: this.state.generation,
      groups: { ...this.state.groups },
    };
    const value = JSON.stringify({ ...this.state, ...next });
    await host.emit(packRecords(head, wanted), { ...options, marks: [{ key: this.#key(), value }] });
    Object.assign(this.state, next);
  }

  /** Whether what is held back is complete: nothing was written for a while, and nothing that belongs to it will be. */
  #isFinal(bytes: Buffer): boolean {
    const silentMs = this.#work.host.clock.monotonicMs() - this.#changedMs;
    if (silentMs >= LOG_LAST_LINE_MS) return true;
    if (silentMs < LOG_FINAL_MS) return false;
    return this.#superseded || this.gone || (this.#work.endsWithNext && bytes.at(-1) === 10);
  }

  #key(): string {
    return `${fileMarks(this.#work.policy.name)}${this.state.serial}`;
  }
}

interface Taken {
  readonly records: readonly RawRecord[];
  readonly consumed: number;
  readonly skipping: boolean;
}

interface NextPiece {
  /** Begins with the tail. */
  readonly bytes: Buffer;
  readonly before: number;
  readonly head: string;
}

function cutHead(head: string, bytes: number): string {
  return Buffer.from(head, "base64").subarray(0, bytes).toString("base64");
}

/** A record too long for the filter is kept: it must not be lost for what it holds. */
function isWanted(filter: Pattern, text: string): boolean {
  return !filter.fits(text) || filter.test(text);
}
