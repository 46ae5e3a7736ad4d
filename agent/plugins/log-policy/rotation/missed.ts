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
import { look, type FileLook } from "../folder.ts";
import type { FollowedFile } from "../followed.ts";
import type { FileState } from "./life.ts";
import { isNumbered } from "./names.ts";
import { contentOf, isAsLong, packedId, packedOrigin, unpackedName, type PackedContent } from "../packed.ts";
import { readAt } from "../reading.ts";
import type { DirectoryScan } from "./directory-scan.ts";
import type { LogWork } from "../work.ts";

/** A life of a log that no look saw, in the packed file that is left of it. */
export interface MissedLife {
  readonly at: FileLook;
  readonly home: string;
  readonly head: string;
}

/** A life that is read no more. */
interface Ended extends Pick<Print, "head" | "offset" | "tail"> {
  readonly home: string;
  /** Its last lines were lost. */
  readonly isShort: boolean;
  readonly mtimeMs: number;
}

interface Memory {
  /** When the first look was; absent before it. What was written until then is old. */
  readonly begunMs?: number;
  /** The files of the policy at that look. */
  readonly of?: string;
  /** Packed files that need no further look, by `keyOf`, which changes with the file. The latest find is at the end. */
  readonly known: readonly string[];
  readonly ended: readonly Ended[];
  /** Packed files and lives up to then are forgotten: what is not younger may be theirs. */
  readonly forgottenMs: number;
}

const NOTHING: Memory = { known: [], ended: [], forgottenMs: 0 };

/** Bytes of a packed life that are not read; 0 where their number is not known. */
export interface UnreadLife {
  readonly home: string;
  readonly bytes: number;
}

interface Missed {
  readonly lives: readonly MissedLife[];
  readonly unread: readonly UnreadLife[];
}

/** A packed file that is to be looked into. */
interface Candidate {
  readonly at: FileLook;
  readonly home: string;
  /** When it was seen first. */
  readonly seenMs: number;
  readonly files: readonly FollowedFile[];
  readonly signal: AbortSignal;
}

/**
 * Lives of followed logs that began and were packed between two looks. A packed file is read once: what it holds is
 * compared with the lives that are followed and with those that ended, and both are on disk with the places read.
 */
export class MissedLives {
  readonly #work: LogWork;
  readonly #sinceMs: number;
  #memory: Memory;
  #isChanged = false;
  /** When packed files that are not decided were seen first, by inode. */
  #seenMs: ReadonlyMap<string, number> = new Map();
  /** Logs with a packed file that has no end yet. */
  #growing: ReadonlySet<string> = new Set();
  /** Packed files that cannot be read, by inode: one that is still written changes at each look. */
  readonly #told = new Set<string>();
  /** When the last life of a log ended of which something is lost. */
  readonly #lostMs = new Map<string, number>();

  constructor(work: LogWork, sinceMs: number) {
    this.#work = work;
    this.#sinceMs = sinceMs;
    const text = work.host.mark(this.#key);
    this.#memory = text === undefined ? NOTHING : (JSON.parse(text) as Memory);
  }

  /** True while an older life of the log is still being packed: its lines come first, so newer files must wait. */
  isAwaited(home: string): boolean {
    return this.#growing.has(home);
  }

  /** `decided` is to be written with what ends the life. */
  ended({ head, offset, tail, home, mtimeMs }: FileState, isShort: boolean): void {
    if (head === "") return;
    if (isShort) this.#lostMs.set(home, this.#nowMs);
    this.#change({ ended: [...this.#memory.ended, { head, offset, tail, home, mtimeMs, isShort }] });
  }

  /** The first look takes what is there for old. */
  async find(scan: DirectoryScan, files: Iterable<FollowedFile>, signal: AbortSignal): Promise<Missed> {
    const lives: MissedLife[] = [];
    const unread: UnreadLife[] = [];
    const growing = new Set<string>();
    const seen = new Map<string, number>();
    const known = new Set(this.#memory.known);
    const followed = [...files];
    const begunMs = this.#begunMs;
    const present = new Set<string>();
    for (const path of scan.packed) {
      const home = packedOrigin(path, scan.rotations);
      const at = home === undefined ? undefined : await look(this.#work.spec.dir, path);
      if (at) present.add(at.id);
      if (!at || home === undefined || known.has(keyOf(at)) || !this.#isYoung(at, begunMs ?? scan.atMs)) continue;
      if (begunMs !== undefined && isNumbered(unpackedName(path), home)) {
        const seenMs = this.#seenMs.get(at.id) ?? this.#nowMs;
        seen.set(at.id, seenMs);
        if (!isDecidable(at, { home, scan, files: followed })) continue;
        const found = await this.#lookInto({ at, home, seenMs, files: followed, signal });
        if (signal.aborted) return { lives, unread };
        if (found === "growing") growing.add(home);
        if (typeof found === "string") continue;
        if (found && "head" in found) lives.push(found);
        else if (found) unread.push(found);
      }
      // A rotation meanwhile may show it again under another name.
      known.add(keyOf(at));
      this.#know(keyOf(at));
    }
    this.#growing = growing;
    this.#seenMs = seen;
    for (const id of this.#told) if (!present.has(id)) this.#told.delete(id);
    for (const home of this.#lostMs.keys()) if (!scan.rotations.has(home)) this.#lostMs.delete(home);
    if (begunMs === undefined) this.#change({ begunMs: scan.atMs, of: this.#of });
    this.#forget();
    return { lives, unread };
  }

  /** To be written when missed lives are followed, and with what ends others; empty where it says what is on disk. */
  decided(): readonly Mark[] {
    return this.#isChanged ? [this.#mark()] : [];
  }

  /** Undefined where it holds nothing new. */
  async #lookInto({
    at,
    home,
    seenMs,
    files,
    signal,
  }: Candidate): Promise<MissedLife | UnreadLife | "growing" | "unsure" | undefined> {
    const search = { root: this.#work.spec.dir, packed: [], signal, maxBytes: this.#work.packedMaxBytes };
    // `app-1.log.gz` may be a generation of `app.log`, and a log of its own that was packed.
    const isOfName = (life: { readonly home: string }) => life.home === home || life.home === unpackedName(at.path);
    const ended = this.#memory.ended.filter(isOfName);
    const present = files.map(({ state }) => state).filter((life) => isOfName(life) && life.head !== "");
    // One that is longer than the bound cannot be compared, and would pass for one that is lost.
    for (const { offset } of [...ended, ...present])
      if (offset > search.maxBytes && (await isAsLong(at, search, offset))) return undefined;
    const content = await contentOf(at, search, [...ended, ...present], { isWhole: true });
    if (content === "growing" && this.#nowMs < seenMs + LOG_PACKED_WAIT_MS) return content;
    if (content === "moved") return "unsure";
    if (typeof content !== "object") {
      // A gap has told of it: of the file as it was before, or of the life that it was to hold.
      const isTold = this.#told.has(at.id) || seenMs <= (this.#lostMs.get(home) ?? -1);
      this.#told.add(at.id);
      return isTold ? undefined : { home, bytes: 0 };
    }
    const { bytes, head, same } = content;
    if (bytes === 0 || (await this.#isCopy(content, home, files))) return undefined;
    // That life was cut off, which the next look finds, or has not got further than a heading that both have.
    if (present.some((life) => same.includes(life))) return "unsure";
    const lives = ended.filter((life) => same.includes(life));
    if (lives.some((life) => life.isShort || life.offset === bytes)) return undefined;
    // It goes on behind the end of a life, or begins as a life that was hardly more than its heading.
    const [life] = lives;
    if (life) return { home, bytes: bytes - life.offset };
    return { at: { ...at, id: packedId(at), size: bytes }, home, head };
  }

  /** By its time, which is that of its last line or later. What is not young is not remembered. */
  #isYoung({ mtimeMs }: FileLook, begunMs: number): boolean {
    const { forgottenMs } = this.#memory;
    const isNew = mtimeMs >= Math.max(this.#sinceMs, begunMs) - LOG_TIME_GRAIN_MS;
    return isNew && (forgottenMs === 0 || mtimeMs > forgottenMs + LOG_TIME_GRAIN_MS);
  }

  /** Undefined before the first look by these files of the policy: it takes what is there for old. */
  get #begunMs(): number | undefined {
    return this.#memory.of === this.#of ? this.#memory.begunMs : undefined;
  }

  get #of(): string {
    const { dir, match } = this.#work.spec;
    return JSON.stringify([dir, match]);
  }

  /** Only after a look: it knows the packed files of the lives that ended before it by these, however many did. */
  #forget(): void {
    const { ended } = this.#memory;
    if (ended.length <= LOG_ENDED_LIVES_MAX) return;
    const gone = ended.slice(0, -LOG_ENDED_LIVES_MAX).map(({ mtimeMs }) => mtimeMs);
    const forgottenMs = Math.max(this.#memory.forgottenMs, ...gone);
    this.#change({ ended: ended.slice(-LOG_ENDED_LIVES_MAX), forgottenMs });
  }

  /** True when a followed life has all of it: then it is a packed copy of a log. */
  async #isCopy({ bytes, head, last }: PackedContent, home: string, files: readonly FollowedFile[]): Promise<boolean> {
    for (const { state } of files) {
      const isAlike = state.home === home && (extendsHead(head, state.head) || extendsHead(state.head, head));
      if (isAlike && (await endsAlike(join(this.#work.spec.dir, state.path), bytes, last))) return true;
    }
    return false;
  }

  #know(key: string): void {
    const all = [...this.#memory.known, key];
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

/** Changes with the file, and not with its name. */
function keyOf({ id, size, mtimeMs }: FileLook): string {
  return `${id}:${size}:${mtimeMs}`;
}

function timeOf(key: string): number {
  return Number(key.split(":").at(-1));
}

/** False while the file is packed, and while a life of its log is not where it was: then it may be that one. */
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

async function endsAlike(path: string, bytes: number, last: Buffer): Promise<boolean> {
  try {
    await using file = await openTrusted(path);
    const from = Math.max(0, bytes - LOG_TAIL_BYTES);
    return (await readAt(file, from, bytes - from)).equals(last);
  } catch {
    return false;
  }
}
