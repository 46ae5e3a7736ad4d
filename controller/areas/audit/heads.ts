import { AUDIT_KEEP_SECONDS, AUDIT_MARK_INTERVAL_MS } from "../../../common/limits.ts";
import type { AuditRecord } from "./chain.ts";

/** Runs whose names begin so were made by a version that seals heads. Names of earlier runs are hexadecimal. */
const HEADED = "h";

/** Name of a new run: each of its entries says that the run had a head. */
export function headedRun(name: string): string {
  return HEADED + name;
}

export function isHeaded(run: string): boolean {
  return run.startsWith(HEADED);
}

/** That entry was made then; entries after it were not made before it. */
export interface Mark {
  readonly sequence: number;
  readonly timeMs: number;
}

/** Entries that have to be there of one run. */
export interface Head {
  readonly run: string;
  /** Sequence, hash and time of the newest entry. */
  readonly last: number;
  readonly hash: string;
  readonly timeMs: number;
  /**
   * The oldest first, one for each `AUDIT_MARK_INTERVAL_MS` in which entries were made. The first mark is the first
   * entry that has to be there: marks go when their entries have expired. Empty when only the newest is left.
   */
  readonly marks: readonly Mark[];
}

/** A time at which stored heads did not hold. */
export interface HeadFault {
  readonly timeMs: number;
  readonly text: string;
}

/** Heads that were moved out of the register. A page is never changed. */
export interface PageName {
  readonly name: string;
  readonly seal: string;
  /** Time of its newest entry. */
  readonly untilMs: number;
}

/** Sealed as one: the heads of a tenant's trail. */
export interface HeadRegister {
  /** 1 for the first; each write adds one. */
  readonly version: number;
  readonly tenant: string;
  readonly timeMs: number;
  /** Entries made since then are of runs with heads, or of controllers of an earlier version. */
  readonly sinceMs: number;
  /** Entries made later have keyed digests. */
  readonly keyedSinceMs: number;
  /** When earlier runs got heads; absent until then. */
  readonly adoptedMs?: number;
  readonly heads: readonly Head[];
  readonly pages: readonly PageName[];
  readonly faults: readonly HeadFault[];
}

/** The first entry of a run that has to be there when all made later than `sinceMs` have to; undefined: none. */
export function firstDue(head: Head, sinceMs: number): number | undefined {
  const mark = head.marks.find(({ timeMs }) => timeMs > sinceMs);
  return mark?.sequence ?? (head.timeMs > sinceMs ? head.last : undefined);
}

/** The head after further entries of its run; absent before its first. */
export function grown(head: Head | undefined, records: readonly AuditRecord[]): Head | undefined {
  const last = records.at(-1);
  if (last === undefined) return head;
  const marks = [...(head?.marks ?? [])];
  for (const { sequence, timeMs } of records) {
    const newest = marks.at(-1);
    if (newest === undefined || timeMs - newest.timeMs >= AUDIT_MARK_INTERVAL_MS) marks.push({ sequence, timeMs });
  }
  return { run: last.run, last: last.sequence, hash: last.hash, timeMs: last.timeMs, marks };
}

/** One for each run: the one that goes furthest, the first of equal ones. */
export function merged(...lists: readonly (readonly Head[])[]): readonly Head[] {
  const byRun = new Map<string, Head>();
  for (const head of lists.flat()) {
    const known = byRun.get(head.run);
    if (known === undefined || known.last < head.last) byRun.set(head.run, head);
  }
  return [...byRun.values()];
}

/** Without what has expired. Heads stay a while longer, so that clocks may differ. */
export function unexpired(heads: readonly Head[], nowMs: number): readonly Head[] {
  const keptSinceMs = nowMs - AUDIT_KEEP_SECONDS * 1_000;
  return heads
    .filter(({ timeMs }) => !isLongExpired(timeMs, nowMs))
    .map((head) => ({ ...head, marks: head.marks.filter(({ timeMs }) => timeMs > keptSinceMs) }));
}

export function isLongExpired(timeMs: number, nowMs: number): boolean {
  return timeMs < nowMs - AUDIT_KEEP_SECONDS * 1_000 - AUDIT_MARK_INTERVAL_MS;
}

interface OldRun {
  newest: AuditRecord;
  /** The newest first. */
  readonly marks: Mark[];
  oldest: AuditRecord;
}

/** Makes heads of runs that have none, out of their entries, which come newest first. */
export class OldRuns {
  readonly #runs = new Map<string, OldRun>();
  #newestPlainMs = 0;

  add(record: AuditRecord, isPlain: boolean): void {
    if (isHeaded(record.run)) return;
    if (isPlain) this.#newestPlainMs = Math.max(this.#newestPlainMs, record.timeMs);
    const run = this.#runs.get(record.run);
    if (run === undefined) {
      this.#runs.set(record.run, { newest: record, marks: [], oldest: record });
      return;
    }
    if (record.sequence > run.newest.sequence) run.newest = record;
    const marked = run.marks.at(-1) ?? run.newest;
    // The entry before a silence is marked and the one after it, so that no mark stands for entries of much later.
    if (marked.timeMs - record.timeMs >= AUDIT_MARK_INTERVAL_MS) run.marks.push(markOf(run.oldest), markOf(record));
    run.oldest = record;
  }

  /** Time of the newest entry with a plain digest; 0 when there is none. */
  get newestPlainMs(): number {
    return this.#newestPlainMs;
  }

  get heads(): readonly Head[] {
    return [...this.#runs].map(([run, { newest, marks, oldest }]) => ({
      run,
      last: newest.sequence,
      hash: newest.hash,
      timeMs: newest.timeMs,
      marks: [...marks, markOf(oldest)].sort((one, other) => one.sequence - other.sequence),
    }));
  }
}

function markOf({ sequence, timeMs }: AuditRecord): Mark {
  return { sequence, timeMs };
}
