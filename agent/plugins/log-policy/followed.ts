import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { isAppError } from "../../../common/errors.ts";
import {
  LOG_FINAL_MS,
  LOG_LAST_LINE_MS,
  LOG_MISSES_MAX,
  LOG_ORDER_WAIT_MS,
  LOG_READ_BYTES,
  LOG_READ_MIN_BYTES,
  LOG_TAIL_BYTES,
} from "../../../common/limits.ts";
import type { Pattern } from "../../../common/regex/pattern.ts";
import type { EmitOptions } from "../../policies/host.ts";
import type { Mark } from "../../outbox/segment.ts";
import { packRecords, type RawRecord } from "../../outbox/records.ts";
import { openTrusted } from "../../disk/trusted-path.ts";
import { extendChain } from "./rotation/chain.ts";
import { cutHead, extendsHead, hasHead, headOf, tailOf } from "./rotation/content.ts";
import { headingBefore, withHeadings, type Heading } from "./records/headings.ts";
import { beginsWithHole, printBehindHole, Room, textEnds } from "./records/holes.ts";
import { Losses } from "./rotation/losses.ts";
import { fileMarks, type Copy, type FileState } from "./rotation/life.ts";
import type { PackedRest } from "./packed.ts";
import { readAt } from "./reading.ts";
import { recordOf } from "./records/record-text.ts";
import { mayBeDivided, readRest, type RestSink } from "./records/rest.ts";
import type { Position } from "./rotation/switches.ts";
import type { Unpacking } from "./unpacking.ts";
import type { LogWork } from "./work.ts";

/**
 * Reads one life of a file, again after each change. Records and the position after them are one write to the outbox.
 */
export class FollowedFile {
  readonly state: FileState;
  /** The file counts as deleted. While it is open, its rest can still be read. */
  gone = false;
  /** Other content is in its place: the file was truncated, or its inode was reused. */
  displaced = false;
  /** Its end was read from a packed file. */
  isPacked = false;
  /** Time when its packed file was first found incomplete. */
  packedSinceMs: number | undefined;
  /** Time when its packed file was last found incomplete. */
  packedTriedMs = -Infinity;
  /** Its path has changed, and the stored mark still has the old one. */
  moved = false;
  /** It may have changed since it was read. */
  dirty = true;
  /** Position in the changes of its home's name when a scan last found the file there. */
  atHome: Position | undefined;
  /** A record is held back until the file is silent for a while. */
  waiting = false;
  readonly #work: LogWork;
  #handle: FileHandle | undefined;
  #superseded = false;
  #isUnpacking = false;
  #misses = 0;
  /** Time since which it is not found or is displaced. */
  #lostMs: number | undefined;
  #changedMs: number;
  /** Size of one read. It is below `LOG_READ_BYTES` while the outbox has little room. */
  #pieceBytes = LOG_READ_BYTES;
  readonly #room = new Room();
  readonly losses: Losses;

  constructor(work: LogWork, state: FileState, atHome?: Position) {
    this.#work = work;
    this.state = state;
    this.losses = new Losses(work, state, this.#room);
    this.atHome = atHome;
    this.#changedMs = work.host.clock.monotonicMs();
    work.headings.note(state);
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

  /** `superseded`: a younger file of the log exists, so the last line of this one is a record even without an end. */
  supersede(superseded: boolean): void {
    if (superseded && !this.#superseded && this.state.size > this.state.offset) this.dirty = true;
    this.#superseded = superseded;
  }

  /** True if text is known to be after the read position. */
  get isUnread(): boolean {
    return this.losses.bytesBehind(this.state.offset) > 0;
  }

  /** True if the last scan did not find it. */
  get missing(): boolean {
    return this.#misses > 0;
  }

  /**
   * True while later lives of its log wait for it: its rest is being unpacked, or is not found yet. The second holds at
   * most for `LOG_ORDER_WAIT_MS`.
   */
  get isAwaited(): boolean {
    const isInTime = () => this.#work.host.clock.monotonicMs() < (this.#lostMs ?? 0) + LOG_ORDER_WAIT_MS;
    return this.#isUnpacking || (this.#lostMs !== undefined && isInTime());
  }

  /** True if one more scan without it makes it count as deleted. */
  get lastMiss(): boolean {
    return this.#misses >= LOG_MISSES_MAX - 1;
  }

  /** Records that other content is in its place, and the length before, so that unseen last lines count as lost. */
  async displace(): Promise<void> {
    if (this.displaced) return;
    this.displaced = true;
    this.#lostMs ??= this.#work.host.clock.monotonicMs();
    // A file that was empty at every look is not recognised in its copy. So its lines may not be lost.
    if (this.isHome && this.state.head !== "") await this.losses.measure();
  }

  found(): void {
    this.#misses = 0;
    this.#lostMs = undefined;
    this.#isUnpacking = false;
    this.gone = false;
    this.displaced = false;
    this.losses.forget();
  }

  /** Later lives of its log wait while its rest is read from a packed file. */
  holdOthers(): void {
    this.#isUnpacking = true;
    this.#lostMs ??= this.#work.host.clock.monotonicMs();
  }

  /**
   * Sends the rest of this life from a packed file. False if the next look continues. After that it has been read to its
   * end.
   */
  async takeRest({ bytes, chunks }: PackedRest, unpacking: Unpacking, signal: AbortSignal): Promise<boolean> {
    const { state } = this;
    // With the old size, a piece after it would count as the last one, and its incomplete last line as a record.
    state.size = Math.max(state.size, bytes);
    const rest = () => readRest(chunks(state.offset), this.#restSink(signal));
    if ((await unpacking.run(this.#key(), rest)) === "more") return false;
    this.losses.check(state.offset);
    this.#isUnpacking = false;
    this.isPacked = true;
    return true;
  }

  #restSink(signal: AbortSignal): RestSink {
    const { state } = this;
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
        if (consumed > 0) await this.#emit(records, next, { signal });
        return consumed;
      },
    };
  }

  /** Counts a scan without the file. A scan can miss a file that is renamed meanwhile, so one miss proves little. */
  async miss(): Promise<void> {
    this.#misses++;
    this.#lostMs ??= this.#work.host.clock.monotonicMs();
    const deleted = (await this.#handle?.stat())?.nlink === 0;
    this.gone = deleted || this.#misses >= LOG_MISSES_MAX;
  }

  /** Continues this life in a copy. A gap counts bytes that were after the end of the copy and not read. */
  async moveTo({ at, same: { size, short }, unprovenBytes = 0 }: Copy, signal: AbortSignal): Promise<void> {
    const { state } = this;
    this.losses.check(size);
    const lost = this.losses.bytesBehind(Math.max(state.offset, size)) + unprovenBytes;
    const isSame = at.id === state.id;
    // In the same file without a loss, the writer has only released reserved space after its text. If nothing was read,
    // it may be another life with the same beginning, and the lost bytes may be in a copy.
    const gap = isSame && lost === 0 ? [] : this.losses.gap("truncated", isSame && state.offset === 0 ? 0 : lost);
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

  /** The mark of this life. Its size is without reserved space, whose release would count as lost lines later. */
  mark(changes: Partial<FileState> = {}): Mark {
    const state = { ...this.state, ...changes, size: this.#room.textEnd(this.state.size) };
    return { key: this.#key(), value: this.#work.headings.stored(state) };
  }

  unmark(): Mark {
    this.#work.headings.forget(this.state.serial);
    return { key: this.#key() };
  }

  /** Reads to the current end. `displaced`: other content is there. `missing`: no file of this life is at its path. */
  async read(signal: AbortSignal): Promise<"read" | "displaced" | "missing"> {
    // The file may be the next life with the same beginning. Without this, `copies.test.ts` reads it twice.
    if (this.displaced) {
      this.dirty = false;
      return "displaced";
    }
    const handle = await this.#open();
    if (!handle) return "missing";
    this.dirty = false;
    this.waiting = false;
    if (this.#heading === undefined && this.state.offset > 0)
      this.state.heading = await headingBefore(handle, this.state.offset, this.#work);
    while (!signal.aborted) {
      const seenMs = this.#work.host.clock.nowMs();
      const { size, mtimeMs, nlink } = await handle.stat();
      if (nlink === 0) this.gone = true;
      const piece = size < this.state.size ? undefined : await this.#nextPiece(handle, size);
      if (!piece) {
        await this.displace();
        return "displaced";
      }
      if (this.isHome && size === 0 && this.state.head === "" && mtimeMs !== this.state.mtimeMs)
        await this.#work.host.emit(await this.losses.ofEmpty(), {
          marks: [this.mark({ mtimeMs })],
          reserve: true,
          signal,
        });
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
    const { offset, tail, head } = this.state;
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
    const { state } = this;
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
    const { state } = this;
    const { cutter, encoding } = this.#work;
    const atEnd = state.offset + fresh.length >= state.size;
    const final = isEnd || (atEnd && this.#isFinal(fresh));
    const { pieces, consumed, skipping } = cutter.cut(fresh, { skipping: state.skipping, final });
    this.waiting = atEnd && consumed < fresh.length;
    // A byte order mark alone is no record.
    const records = pieces
      .map((piece) => recordOf(fresh, piece, { offset: state.offset, encoding }))
      .filter(({ bytes }) => bytes.length > 0);
    return { records, consumed, skipping };
  }

  /** `bytes` begin with the tail and end with the records. Without room nothing is sent, and reads get smaller. */
  async #send(bytes: Buffer, { records, skipping }: Taken, signal: AbortSignal): Promise<boolean> {
    const next = { ...this.#printAt(bytes), skipping };
    try {
      await this.#emit(records, next, { signal, impatient: this.#pieceBytes > LOG_READ_MIN_BYTES });
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
    const { state } = this;
    const handle = this.#handle;
    if (!handle) return false;
    const { through, isEnd } = await this.#room.look(handle, state);
    // The next read looks at the rest of the hole, so that other logs get their turns and the agent can stop.
    this.dirty ||= !isEnd && through < state.size;
    if (!isEnd) return false;
    Object.assign(state, await printBehindHole(handle, through - (through % unitBytes), state.head));
    return true;
  }

  /** The print after the file is read to the end of `bytes`. These begin with the current tail. */
  #printAt(bytes: Buffer): Pick<FileState, "offset" | "tail" | "chain"> {
    const { state } = this;
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

  async #emit(
    records: readonly RawRecord[],
    next: Pick<FileState, "offset" | "skipping" | "tail" | "chain">,
    options: EmitOptions,
  ): Promise<void> {
    const { host, policy, spec, filter } = this.#work;
    const { records: headed, heading } = withHeadings(records, this.#work.heading, this.#heading ?? this.#noHeading());
    const wanted = filter ? headed.filter(({ bytes }) => isWanted(filter, Buffer.from(bytes).toString())) : headed;
    const head = {
      policy: policy.name,
      policyRevision: policy.revision,
      rule: spec.rule,
      source: join(spec.dir, this.state.home),
      generation: this.state.generation,
      groups: { ...this.state.groups },
    };
    await host.emit(packRecords(head, wanted), { ...options, marks: [this.mark({ ...next, heading })] });
    Object.assign(this.state, next, { heading });
  }

  /** The heading line at the read position. Undefined if it must be searched for with the current rule. */
  get #heading(): Heading | undefined {
    const { heading } = this.state;
    return heading?.by === this.#work.heading.text ? heading : undefined;
  }

  #noHeading(): Heading {
    return { by: this.#work.heading.text, ...(this.state.offset > 0 && { isLost: true, isBegun: true }) };
  }

  /** True if the last record counts as complete: after `LOG_LAST_LINE_MS`, or `LOG_FINAL_MS` if no more is expected. */
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

/** True if the filter matches. A record that is too long for the filter is sent too, so that it is not lost. */
function isWanted(filter: Pattern, text: string): boolean {
  return !filter.fits(text) || filter.test(text);
}
