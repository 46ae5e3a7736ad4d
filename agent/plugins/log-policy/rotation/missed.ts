import { join } from "node:path";
import {
  LOG_ENDED_LIVES_MAX,
  LOG_PACKED_KNOWN_MAX,
  LOG_PACKED_WAIT_MS,
  LOG_TAIL_BYTES,
  LOG_TIME_GRAIN_MS,
} from "../../../../common/limits.ts";
import { policyMarks } from "../../../policies/host.ts";
import type { Mark } from "../../../outbox/segment.ts";
import { openTrusted } from "../../../disk/trusted-path.ts";
import { extendsHead, type Print } from "./content.ts";
import type { Copies } from "./copies.ts";
import { look, type FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { FileState } from "./life.ts";
import { isNumbered } from "./names.ts";
import { contentOf, isAsLong, packedId, packedOrigin, unpackedName, type PackedContent } from "../packed.ts";
import { readAt } from "../reading.ts";
import type { Unpacking } from "../unpacking.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { LogWork } from "../work.ts";

/** A life that was packed before a scan saw it, and its packed file. */
export interface MissedLife {
  readonly at: FileLook;
  readonly home: string;
  readonly head: string;
}

/** A life that has ended. */
interface Ended extends Pick<Print, "head" | "offset" | "tail"> {
  readonly home: string;
  /** Its last lines were lost. */
  readonly isShort: boolean;
  readonly mtimeMs: number;
}

interface Memory {
  /** Time of the first scan; absent before it. Packed files that were written before are old, and are not read. */
  readonly begunMs?: number;
  /** Folder and match of the policy at that scan. */
  readonly of?: string;
  /** Packed files that need no further look, by `keyOf`. The latest is at the end. */
  readonly known: readonly string[];
  readonly ended: readonly Ended[];
  /**
   * Packed files and ended lives up to this modification time may be forgotten. A packed file that is not younger may
   * be one of them, so it is not read.
   */
  readonly forgottenMs: number;
}

const NOTHING: Memory = { known: [], ended: [], forgottenMs: 0 };

/** A packed life that is not read, and the number of its bytes; 0 when it is not known. */
export interface UnreadLife {
  readonly home: string;
  readonly bytes: number;
}

interface Missed {
  readonly lives: readonly MissedLife[];
  readonly unread: readonly UnreadLife[];
}

interface Parts {
  readonly work: LogWork;
  readonly sinceMs: number;
  readonly unpacking: Unpacking;
  readonly copies: Copies;
}

/** A packed file that must be read. */
interface Candidate {
  readonly at: FileLook;
  readonly home: string;
  /** Time of the scan that first saw it. */
  readonly seenMs: number;
  readonly files: readonly FollowedFile[];
  readonly signal: AbortSignal;
}

/**
 * Finds lives of followed logs that began and were packed between two scans. A packed file is read once. Its content is
 * compared with the lives that are followed and with those that have ended. The agent stores both, together with the
 * read positions.
 */
export class MissedLives {
  readonly #work: LogWork;
  readonly #sinceMs: number;
  #memory: Memory;
  #isChanged = false;
  /** Packed files that are not decided yet, by id, and when each was first seen. */
  #seenMs: ReadonlyMap<string, number> = new Map();
  /** Logs with a packed file that is incomplete, or that is not read to its end yet. */
  #growing: ReadonlySet<string> = new Set();
  /** Logs with a packed file that is decided after older lives have ended. */
  #undecided: ReadonlySet<string> = new Set();
  /**
   * Ids of packed files that cannot be read and that a gap has reported. `keyOf` would not do, because it changes with
   * each write.
   */
  readonly #told = new Set<string>();
  /** By log, the time at which a life with lost lines last ended. */
  readonly #lostMs = new Map<string, number>();

  readonly #unpacking: Unpacking;
  readonly #copies: Copies;

  constructor({ work, sinceMs, unpacking, copies }: Parts) {
    this.#unpacking = unpacking;
    this.#copies = copies;
    this.#work = work;
    this.#sinceMs = sinceMs;
    const text = work.host.mark(this.#key);
    this.#memory = text === undefined ? NOTHING : (JSON.parse(text) as Memory);
  }

  /** True while an older life of the log is still being packed: its lines come first, so newer files must wait. */
  isAwaited(home: string): boolean {
    return this.#growing.has(home);
  }

  /** True if a packed file may be a later life of the log than those that are not found. */
  isUndecided(home: string): boolean {
    return this.#undecided.has(home);
  }

  endedOf(home: string): readonly Print[] {
    return this.#memory.ended.filter((life) => life.home === home);
  }

  /** Remembers a life that ends. The write that ends it must include the marks of `decided`. */
  ended({ head, offset, tail, home, mtimeMs }: FileState, isShort: boolean): void {
    if (head === "") return;
    if (isShort) this.#lostMs.set(home, this.#nowMs);
    this.#change({ ended: [...this.#memory.ended, { head, offset, tail, home, mtimeMs, isShort }] });
  }

  /**
   * Reads the packed files that are new. The first scan reads none, because the files that are there already are old.
   */
  async find(scan: DirectoryScan, files: Iterable<FollowedFile>, signal: AbortSignal): Promise<Missed> {
    const lives: MissedLife[] = [];
    const unread: UnreadLife[] = [];
    const growing = new Set<string>();
    const undecided = new Set<string>();
    const seen = new Map<string, number>();
    const known = new Set(this.#memory.known);
    const followed = [...files];
    const begunMs = this.#begunMs;
    const present = new Set<string>();
    for (const path of scan.packed) {
      const home = packedOrigin(path, scan.homes);
      const at = home === undefined ? undefined : await look(this.#work.spec.dir, path);
      if (at) present.add(at.id);
      if (!at || home === undefined || known.has(keyOf(at)) || !this.#isYoung(at, begunMs ?? scan.atMs)) continue;
      if (begunMs !== undefined && isNumbered(unpackedName(path), home)) {
        const seenMs = this.#seenMs.get(at.id) ?? this.#nowMs;
        seen.set(at.id, seenMs);
        if (!isDecidable(at, { home, scan, files: followed })) {
          undecided.add(home);
          continue;
        }
        const found = await this.#lookInto({ at, home, seenMs, files: followed, signal });
        if (signal.aborted) return { lives, unread };
        if (found === "growing" || found === "more") growing.add(home);
        if (typeof found === "string") continue;
        // The rest of the truncated life comes first.
        if (found && (await this.#copies.wasCutOff(ofHome(home, followed), scan))) continue;
        if (found && "head" in found) lives.push(found);
        else if (found) unread.push(found);
      }
      // After a rotation during the scan, the same file may be listed again under another name.
      known.add(keyOf(at));
      this.#know(at);
    }
    this.#growing = growing;
    this.#undecided = undecided;
    this.#seenMs = seen;
    for (const id of this.#told) if (!present.has(id)) this.#told.delete(id);
    for (const home of this.#lostMs.keys()) if (!scan.homes.has(home)) this.#lostMs.delete(home);
    if (begunMs === undefined) this.#change({ begunMs: scan.atMs, of: this.#of });
    this.#forget();
    return { lives, unread };
  }

  /** The mark to write together with lives that begin or end. Empty when nothing has changed since the last write. */
  decided(): readonly Mark[] {
    return this.#isChanged ? [this.#mark()] : [];
  }

  /** Reads a packed file. Undefined when it has nothing new. `growing`, `more` and `unsure`: a later scan decides. */
  async #lookInto({
    at,
    home,
    seenMs,
    files,
    signal,
  }: Candidate): Promise<MissedLife | UnreadLife | "growing" | "more" | "unsure" | undefined> {
    const search = {
      root: this.#work.spec.dir,
      packed: [],
      signal,
      maxBytes: this.#work.packedMaxBytes,
      unpacking: this.#unpacking,
    };
    // `app-1.log.gz` may be a generation of `app.log`, or a packed log of its own.
    const isOfName = (life: { readonly home: string }) => life.home === home || life.home === unpackedName(at.path);
    const ended = this.#memory.ended.filter(isOfName);
    const present = files.map(({ state }) => state).filter((life) => isOfName(life) && life.head !== "");
    // A life that is longer than `maxBytes` cannot be compared, and would count as lost. It is identified by its
    // length.
    for (const { offset } of [...ended, ...present])
      if (offset > search.maxBytes && (await isAsLong(at, search, offset))) return undefined;
    const content = await contentOf(at, search, [...ended, ...present], { isWhole: true });
    if (content === "growing" && this.#nowMs < seenMs + LOG_PACKED_WAIT_MS) return content;
    if (content === "more") return content;
    if (content === "moved") return "unsure";
    if (typeof content !== "object") {
      // A gap has reported it already: for this file before its last change, or for the life that it should contain.
      const isTold = this.#told.has(at.id) || seenMs <= (this.#lostMs.get(home) ?? -1);
      this.#told.add(at.id);
      return isTold ? undefined : { home, bytes: 0 };
    }
    const { bytes, head, same } = content;
    if (bytes === 0 || (await this.#isCopy(content, home, files))) return undefined;
    // A life has ended while the packed file was read.
    if (same.some((life) => !ended.some((one) => one === life) && !present.some((one) => one === life)))
      return "unsure";
    // Either that life was truncated, which the next scan finds, or only a heading that both files have was read of it.
    // A life at home of which nothing was read is another one, because the packed file is no copy of it.
    if (present.some((life) => same.includes(life) && (life.offset > 0 || life.path !== home))) return "unsure";
    const lives = ended.filter((life) => same.includes(life));
    if (lives.some((life) => life.isShort || life.offset === bytes)) return undefined;
    // The file continues after the end of an ended life, or it begins with the same heading as a life that was little
    // more.
    const [life] = lives;
    if (life) return { home, bytes: bytes - life.offset };
    return { at: { ...at, id: packedId(at), size: bytes }, home, head };
  }

  /**
   * True if the file may have new content, by its modification time. That is the time of its last line or later. Other
   * files are not remembered.
   */
  #isYoung({ mtimeMs }: FileLook, begunMs: number): boolean {
    const { forgottenMs } = this.#memory;
    const isNew = mtimeMs >= Math.max(this.#sinceMs, begunMs) - LOG_TIME_GRAIN_MS;
    return isNew && (forgottenMs === 0 || mtimeMs > forgottenMs + LOG_TIME_GRAIN_MS);
  }

  /** Time of the first scan with the current folder and match of the policy; undefined before it. */
  get #begunMs(): number | undefined {
    return this.#memory.of === this.#of ? this.#memory.begunMs : undefined;
  }

  get #of(): string {
    const { dir, match } = this.#work.spec;
    return JSON.stringify([dir, match]);
  }

  /**
   * Forgets the oldest ended lives beyond `LOG_ENDED_LIVES_MAX`. It runs only after a scan, because the scan needs all
   * lives that ended before it to recognise their packed files.
   */
  #forget(): void {
    const { ended } = this.#memory;
    if (ended.length <= LOG_ENDED_LIVES_MAX) return;
    const gone = ended.slice(0, -LOG_ENDED_LIVES_MAX).map(({ mtimeMs }) => mtimeMs);
    const forgottenMs = Math.max(this.#memory.forgottenMs, ...gone);
    this.#change({ ended: ended.slice(-LOG_ENDED_LIVES_MAX), forgottenMs });
  }

  /** True if the file of a followed life has all of this content: the packed file is a copy of it. */
  async #isCopy({ bytes, head, last }: PackedContent, home: string, files: readonly FollowedFile[]): Promise<boolean> {
    for (const { state } of files) {
      const isAlike = state.home === home && (extendsHead(head, state.head) || extendsHead(state.head, head));
      if (isAlike && (await endsAlike(join(this.#work.spec.dir, state.path), bytes, last))) return true;
    }
    return false;
  }

  /** A file that changes often takes one place only, so that it does not push others out. */
  #know(at: FileLook): void {
    const all = [...this.#memory.known.filter((key) => !key.startsWith(`${at.id}:`)), keyOf(at)];
    const gone = all.slice(0, -LOG_PACKED_KNOWN_MAX).map(timeOf);
    const forgottenMs = Math.max(this.#memory.forgottenMs, ...gone);
    this.#change({ known: all.slice(-LOG_PACKED_KNOWN_MAX), forgottenMs });
  }

  #change(changes: Partial<Memory>): void {
    this.#memory = { ...this.#memory, ...changes };
    this.#isChanged = true;
  }

  get #nowMs(): number {
    return this.#work.host.clock.monotonicMs();
  }

  get #key(): string {
    return `${policyMarks(this.#work.policy.name)}packed`;
  }

  #mark(): Mark {
    this.#isChanged = false;
    return { key: this.#key, value: JSON.stringify(this.#memory) };
  }
}

/** Identifies a state of a file. It changes when the file is written, not when it is renamed. */
function keyOf({ id, size, mtimeMs }: FileLook): string {
  return `${id}:${size}:${mtimeMs}`;
}

function timeOf(key: string): number {
  return Number(key.split(":").at(-1));
}

/**
 * False while the file is still being packed. False also while a life of its log is not found, because the packed file
 * may be that life.
 */
function isDecidable(
  { path }: FileLook,
  {
    home,
    scan,
    files,
  }: { readonly home: string; readonly scan: DirectoryScan; readonly files: readonly FollowedFile[] },
): boolean {
  if (scan.files.includes(unpackedName(path))) return false;
  return !files.some((file) => file.state.home === home && (file.missing || file.displaced || file.gone));
}

function ofHome(home: string, files: readonly FollowedFile[]): FollowedFile[] {
  return files.filter(({ state }) => state.home === home);
}

async function endsAlike(path: string, bytes: number, last: Buffer): Promise<boolean> {
  try {
    await using file = await openTrusted(path);
    const from = Math.max(0, bytes - LOG_TAIL_BYTES);
    return (await readAt(file, from, bytes - from)).equals(last);
  } catch {
    return false;
  }
}
