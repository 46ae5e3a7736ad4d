import { AUDIT_KEEP_SECONDS, AUDIT_MARK_INTERVAL_MS } from "../../../common/limits.ts";
import type { AuditRecord } from "./chain.ts";

/** Prefix of the names of runs made by a version that seals heads. Names of earlier runs are hexadecimal. */
const HEADED = "h";

/** Name of a new run. It shows in each entry that the run must have a head. */
export function headedRun(name: string): string {
  return HEADED + name;
}

export function isHeaded(run: string): boolean {
  return run.startsWith(HEADED);
}

/** The time at which an entry was made. Later entries of the run are not older. */
export interface Mark {
  readonly sequence: number;
  readonly timeMs: number;
}

/** The entries of one run that must exist. */
export interface Head {
  readonly run: string;
  /** Sequence, hash and time of the newest entry. */
  readonly last: number;
  readonly hash: string;
  readonly timeMs: number;
  /**
   * Oldest first, one per `AUDIT_MARK_INTERVAL_MS` in which entries were made. The first mark is the first entry that
   * must exist: marks are removed when their entries have expired. Empty when only the newest entry must exist.
   */
  readonly marks: readonly Mark[];
}

/** A time at which the stored heads were invalid. */
export interface HeadFault {
  readonly timeMs: number;
  readonly text: string;
}

/** A page of heads that were moved out of the register. A page is never changed. */
export interface PageName {
  readonly name: string;
  readonly seal: string;
  /** Time of its newest entry. */
  readonly untilMs: number;
}

/** The heads of a tenant's trail, sealed together. */
export interface HeadRegister {
  /** 1 in the first register; each write adds one. */
  readonly version: number;
  readonly tenant: string;
  readonly timeMs: number;
  /** Entries made after this time belong to runs with heads, or to controllers of an earlier version. */
  readonly sinceMs: number;
  /** Entries made after this time have keyed digests. */
  readonly keyedSinceMs: number;
  /** Time at which earlier runs got heads; absent until then. */
  readonly adoptedMs?: number;
  readonly heads: readonly Head[];
  readonly pages: readonly PageName[];
  readonly faults: readonly HeadFault[];
}

/**
 * Sequence of the first entry of the run that must exist if all entries made after `sinceMs` must exist; `undefined` if
 * none must.
 */
export function firstDue(head: Head, sinceMs: number): number | undefined {
  const mark = head.marks.find(({ timeMs }) => timeMs > sinceMs);
  return mark?.sequence ?? (head.timeMs > sinceMs ? head.last : undefined);
}

/** The head after further entries of its run; `undefined` before the first entry. */
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

/** One head per run: the one with the highest `last`, the first of equal ones. */
export function merged(...lists: readonly (readonly Head[])[]): readonly Head[] {
  const byRun = new Map<string, Head>();
  for (const head of lists.flat()) {
    const known = byRun.get(head.run);
    if (known === undefined || known.last < head.last) byRun.set(head.run, head);
  }
  return [...byRun.values()];
}

/** Removes expired heads and marks. Heads stay a while longer than entries, because clocks may differ. */
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
  /** Newest first. */
  readonly marks: Mark[];
  oldest: AuditRecord;
}

/** Creates heads of runs without heads from their entries, which are added newest first. */
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
    // Marks the entries before and after a silence, so that no mark covers entries made much later.
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
