import { LOG_MISSES_MAX, LOG_ORDER_WAIT_MS } from "../../../common/limits.ts";
import type { Mark } from "../../outbox/segment.ts";
import { LifeReader } from "./life-reader.ts";
import type { PackedRest } from "./packed.ts";
import { Room } from "./records/holes.ts";
import { cutHead } from "./rotation/content.ts";
import { fileMarks, type Copy, type FileState } from "./rotation/life.ts";
import { Losses } from "./rotation/losses.ts";
import type { Position } from "./rotation/switches.ts";
import type { Unpacking } from "./unpacking.ts";
import type { LogWork } from "./work.ts";

/**
 * One life of a file that is followed: where it is now, whether scans still find it, and what is lost of it. Its text
 * is read by `LifeReader`.
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
  readonly #work: LogWork;
  #isUnpacking = false;
  #misses = 0;
  /** Time since which it is not found or is displaced. */
  #lostMs: number | undefined;
  #superseded = false;
  readonly #room = new Room();
  readonly losses: Losses;
  readonly #reader: LifeReader;

  constructor(work: LogWork, state: FileState, atHome?: Position) {
    this.#work = work;
    this.state = state;
    this.losses = new Losses(work, state, this.#room);
    this.atHome = atHome;
    this.#reader = new LifeReader(work, this, this.#room);
    work.headings.note(state);
  }

  get isOpen(): boolean {
    return this.#reader.isOpen;
  }

  get isHome(): boolean {
    return this.state.path === this.state.home;
  }

  /** A record is held back until the file is silent for a while. */
  get waiting(): boolean {
    return this.#reader.waiting;
  }

  /** Time when a read last found the file changed. */
  get changedMs(): number {
    return this.#reader.changedMs;
  }

  /** `superseded`: a younger file of the log exists, so the last line of this one is a record even without an end. */
  supersede(superseded: boolean): void {
    if (superseded && !this.#superseded && this.state.size > this.state.offset) this.dirty = true;
    this.#superseded = superseded;
  }

  get superseded(): boolean {
    return this.#superseded;
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
    const rest = () => this.#reader.readRest(chunks(state.offset), signal);
    if ((await unpacking.run(this.#key(), rest)) === "more") return false;
    this.losses.check(state.offset);
    this.#isUnpacking = false;
    this.isPacked = true;
    return true;
  }

  /** Counts a scan without the file. A scan can miss a file that is renamed meanwhile, so one miss proves little. */
  async miss(): Promise<void> {
    this.#misses++;
    this.#lostMs ??= this.#work.host.clock.monotonicMs();
    const deleted = await this.#reader.isDeleted();
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
  read(signal: AbortSignal): Promise<"read" | "displaced" | "missing"> {
    // The file may be the next life with the same beginning. Without this, `copies.test.ts` reads it twice.
    if (this.displaced) {
      this.dirty = false;
      return Promise.resolve("displaced");
    }
    return this.#reader.read(signal);
  }

  close(): Promise<void> {
    return this.#reader.close();
  }

  #key(): string {
    return `${fileMarks(this.#work.policy.name)}${this.state.serial}`;
  }
}
