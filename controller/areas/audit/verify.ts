import { ANCHOR_OF_HEADS, type Anchor } from "../../../common/audit-anchor.ts";
import { isAppError } from "../../../common/errors.ts";
import {
  AUDIT_CLOCK_SLACK_MS,
  AUDIT_HEAD_INTERVAL_MS,
  AUDIT_HEAD_LATE_MS,
  AUDIT_MARK_INTERVAL_MS,
} from "../../../common/limits.ts";
import { EntryHashes, FIRST, isPlain, keyIdOf, plainHashOf, type AuditRecord, type ChainKeys } from "./chain.ts";
import { firstDue, isHeaded, type Head } from "./heads.ts";
import type { KnownHeads } from "./heading.ts";
import { HEADS_LATE } from "./types.ts";
import { Breaks, notesOf, type Break, type BreakKind, type ChainReport } from "./verify-report.ts";

interface Link extends Pick<AuditRecord, "sequence" | "previous" | "hash" | "timeMs"> {
  readonly keyed: boolean;
}

/** State of one run while it is read from its newest entry to its oldest. */
interface Run {
  /** Entries of one millisecond, in any order. */
  group: Link[];
  /** The oldest entry read before the group; it follows the group in the chain. */
  after: Link | undefined;
  newest: number;
  /** Anchors by sequence. */
  readonly anchors: Map<number, Anchor>;
  readonly head: Head | undefined;
  /** Total time that entries without a head span; a silence counts at most `AUDIT_HEAD_INTERVAL_MS`. */
  lateMs: number;
  /** Sequence of the newest entry that reports late heads; 0 if there is none. */
  excused: number;
}

export interface VerifierOptions {
  readonly keys: ChainKeys;
  /** Anchors kept outside the store. Anchors older than the kept trail are ignored. */
  readonly anchors?: readonly Anchor[];
  /** Entries made before this time may have expired. */
  readonly keptSinceMs?: number;
  /** Heads that were read before the trail. Absent: the trail is not compared with heads. */
  readonly heads?: KnownHeads;
  /** True if only the newest entries are read. */
  readonly isPart?: boolean;
}

/**
 * Checks records that are added newest first. Memory depends on the number of runs, not of entries. Heads show where
 * the unexpired part of a run must begin and end. Anchors show where a run must end, and which heads existed.
 */
export class ChainVerifier {
  readonly #runs = new Map<string, Run>();
  readonly #breaks = new Breaks();
  readonly #hashes: EntryHashes;
  readonly #heads: KnownHeads | undefined;
  readonly #headsByRun: ReadonlyMap<string, Head>;
  readonly #anchorOfHeads: Anchor | undefined;
  readonly #anchors: number;
  readonly #isPart: boolean;
  readonly #keptSinceMs: number;
  readonly #seen = new Set<Run>();
  #oldestMs = Number.POSITIVE_INFINITY;
  #entries = 0;
  #unkeyed = 0;
  #uncovered = 0;
  #beforeHeads = 0;

  constructor({ keys, anchors = [], keptSinceMs = 0, heads, isPart = false }: VerifierOptions) {
    this.#hashes = new EntryHashes(keys);
    this.#heads = heads;
    this.#isPart = isPart;
    this.#keptSinceMs = keptSinceMs;
    this.#headsByRun = new Map(heads?.heads.map((head) => [head.run, head]));
    const ofRuns = anchors.filter(({ run, timeMs }) => run !== ANCHOR_OF_HEADS && timeMs > keptSinceMs);
    // Heads do not expire.
    this.#anchorOfHeads = anchors.find(({ run }) => run === ANCHOR_OF_HEADS);
    this.#anchors = ofRuns.length;
    for (const anchor of ofRuns) this.#run(anchor.run).anchors.set(anchor.sequence, anchor);
    for (const run of this.#headsByRun.keys()) this.#run(run);
  }

  get entries(): number {
    return this.#entries;
  }

  add(record: AuditRecord): void {
    this.#entries++;
    const { run: name, sequence, previous, hash, timeMs } = record;
    const keyed = !isPlain(hash);
    if (!keyed) this.#unkeyed++;
    const run = this.#run(name);
    this.#seen.add(run);
    if (this.#checkContent(record, keyed)) this.#checkOrder(record);
    this.#compare(record, run);
    run.newest = Math.max(run.newest, sequence);
    if (record.action === HEADS_LATE && keyed) run.excused = Math.max(run.excused, sequence);
    const last = run.group[0];
    if (last !== undefined && timeMs < last.timeMs) this.#settle(name, run);
    run.group.push({ sequence, previous, hash, timeMs, keyed });
  }

  /** The report. Entries made before `keptSinceMs` may have expired in the meantime. */
  report(keptSinceMs?: number): ChainReport {
    const steps = this.reporting(keptSinceMs);
    for (;;) {
      const step = steps.next();
      if (step.done) return step.value;
    }
  }

  /** As `report`; yields after each run. */
  *reporting(keptSinceMs = this.#keptSinceMs): Generator<void, ChainReport> {
    const sinceMs = this.#isPart ? Math.max(keptSinceMs, this.#oldestMs) : keptSinceMs;
    for (const [name, run] of this.#runs) {
      this.#settle(name, run);
      this.#checkBeginning(name, run, sinceMs);
      this.#findTruncation(name, run, sinceMs);
      this.#checkLateness(name, run);
      yield;
    }
    this.#checkHeads();
    const { first, problems } = this.#breaks;
    const counts = {
      entries: this.#entries,
      runs: this.#seen.size,
      unkeyed: this.#unkeyed,
      uncovered: this.#uncovered,
      beforeHeads: this.#beforeHeads,
      anchors: this.#anchors,
    };
    const { sinceMs: headsSinceMs, adoptedMs } = this.#heads?.register ?? {};
    return { ...counts, ...(first && { first }), problems, notes: notesOf(counts, { headsSinceMs, adoptedMs }) };
  }

  #run(name: string): Run {
    const known = this.#runs.get(name);
    if (known !== undefined) return known;
    const head = this.#headsByRun.get(name);
    const run = { group: [], after: undefined, newest: 0, anchors: new Map(), head, lateMs: 0, excused: 0 };
    this.#runs.set(name, run);
    return run;
  }

  /** Returns true if the hash is correct. */
  #checkContent(record: AuditRecord, keyed: boolean): boolean {
    const { run, sequence } = record;
    try {
      const own = keyed ? keyedHash(record, this.#hashes) : plainHashOf(record);
      if (own === record.hash) return true;
      this.#note("altered", run, record, `Entry ${sequence} of run ${run} was changed.`);
    } catch (error) {
      if (!isAppError(error, "unavailable")) throw error;
      const text = `Entry ${sequence} of run ${run} names the key ${keyIdOf(record.hash)}, which the key file does not have.`;
      this.#note("unknown_key", run, record, text);
    }
    return false;
  }

  /** The trail is read from its newest entry to its oldest, over all runs. */
  #checkOrder(record: AuditRecord): void {
    const { run, sequence, timeMs } = record;
    if (timeMs > this.#oldestMs)
      this.#note("reordered", run, record, `Entry ${sequence} of run ${run} lies before older ones.`);
    this.#oldestMs = Math.min(this.#oldestMs, timeMs);
  }

  #compare(record: AuditRecord, { anchors, head }: Run): void {
    const { run, sequence, hash } = record;
    const anchor = anchors.get(sequence);
    const known = anchor !== undefined && anchor.hash !== hash ? anchor : head?.last === sequence ? head : undefined;
    if (known === undefined || known.hash === hash) return;
    const text = `Entry ${sequence} of run ${run} is another one than was there at ${when(known)}: the run was written anew.`;
    this.#note("replaced", run, record, text);
  }

  #checkBeginning(name: string, run: Run, sinceMs: number): void {
    const oldest = run.after;
    if (oldest === undefined) return;
    if (oldest.sequence === 1 && oldest.previous !== FIRST)
      this.#note("missing", name, oldest, `Run ${name} does not begin at its beginning.`);
    if (run.head === undefined) this.#checkStranger(name, oldest);
    const due = (run.head && firstDue(run.head, sinceMs)) ?? this.#firstWithoutHead(name, run, sinceMs);
    if (due === undefined || oldest.sequence <= due) return;
    const text = `Entries ${due} to ${oldest.sequence - 1} of run ${name} are missing at its beginning.`;
    this.#note("missing", name, { sequence: due, timeMs: oldest.timeMs }, text);
  }

  /**
   * Sequence of the first entry without a head that must exist. Such entries are only minutes old, so the first one
   * must exist, unless they are about to expire.
   */
  #firstWithoutHead(name: string, { head, after, excused }: Run, sinceMs: number): number | undefined {
    const register = this.#heads?.register;
    if (this.#isPart || register === undefined || after === undefined || !isHeaded(name)) return undefined;
    const last = head?.last ?? 0;
    if (excused > last) return undefined;
    return after.timeMs > sinceMs + AUDIT_MARK_INTERVAL_MS ? last + 1 : undefined;
  }

  #checkStranger(name: string, oldest: Link): void {
    const register = this.#heads?.register;
    const fromMs = isHeaded(name) ? register?.sinceMs : register?.adoptedMs;
    if (fromMs === undefined || oldest.timeMs >= fromMs - AUDIT_CLOCK_SLACK_MS) return;
    const at = `Run ${name} has entries of ${when(oldest)}`;
    if (isHeaded(name))
      this.#note("heads", name, oldest, `${at} and no head: the sealed heads of that time were removed.`);
    else this.#note("added", name, oldest, `${at} that were not there when earlier runs were sealed.`);
  }

  /** Also finds whole runs that were cut off: only their anchor or head is left. */
  #findTruncation(name: string, run: Run, sinceMs: number): void {
    const newest = Math.max(0, ...run.anchors.keys());
    const anchor = run.anchors.get(newest);
    const head = run.head !== undefined && run.head.timeMs > sinceMs ? run.head : undefined;
    const last = Math.max(newest, head?.last ?? 0);
    if (last <= run.newest) return;
    const { timeMs } = newest === last && anchor ? anchor : (head ?? { timeMs: 0 });
    const due = run.head === undefined ? 1 : (firstDue(run.head, sinceMs) ?? 1);
    const sequence = Math.max(run.newest + 1, Math.min(due, last));
    const text = `Entries ${sequence} to ${last} of run ${name}, which were there at ${when({ timeMs })}, are cut off at its end.`;
    this.#note("truncated", name, { sequence, timeMs }, text);
  }

  /** Checks the complete group of one millisecond: its entries follow each other, and the next entry follows them. */
  #settle(name: string, run: Run): void {
    for (const link of run.group.sort((one, other) => other.sequence - one.sequence)) {
      if (run.after !== undefined) this.#checkPair(name, link, run.after);
      this.#checkCovered(name, link, run);
      run.after = link;
    }
    run.group = [];
  }

  #checkCovered(name: string, link: Link, run: Run): void {
    const register = this.#heads?.register;
    if (!isHeaded(name)) this.#beforeHeads++;
    const isCovered = link.sequence <= (run.head?.last ?? 0);
    const isAdopted = register?.adoptedMs !== undefined;
    if (register !== undefined && !link.keyed && (link.timeMs > register.keyedSinceMs || (isAdopted && !isCovered))) {
      const text = `Entry ${link.sequence} of run ${name} has a digest that needs no key, as none had after ${when({ timeMs: register.keyedSinceMs })}.`;
      this.#note("unkeyed", name, link, text);
    }
    if (isCovered || register === undefined || !(isHeaded(name) || isAdopted)) return;
    this.#uncovered++;
    // The entry that reports late heads may have expired.
    if (link.timeMs <= this.#keptSinceMs + AUDIT_MARK_INTERVAL_MS) return;
    const silenceMs = run.after === undefined ? 0 : run.after.timeMs - link.timeMs;
    run.lateMs += Math.max(0, Math.min(silenceMs, AUDIT_HEAD_INTERVAL_MS));
  }

  /** A controller that stores entries also stores heads, or reports that it cannot. */
  #checkLateness(name: string, run: Run): void {
    const { head, lateMs, excused, newest, after } = run;
    if (!isHeaded(name) || lateMs <= AUDIT_HEAD_LATE_MS || excused > (head?.last ?? 0) || after === undefined) return;
    const from = (head?.last ?? 0) + 1;
    const text = `Entries ${from} to ${newest} of run ${name} have no head, though heads are sealed every minute: the sealed heads were put back to an earlier state.`;
    this.#note("heads", name, { sequence: from, timeMs: head?.timeMs ?? after.timeMs }, text);
  }

  #checkHeads(): void {
    if (this.#heads === undefined) return;
    const { register, seal, faults } = this.#heads;
    for (const { timeMs, text } of faults) this.#note("heads", "", { sequence: register?.version ?? 0, timeMs }, text);
    const headed = [...this.#runs].find(([name, run]) => isHeaded(name) && this.#seen.has(run));
    if (register === undefined && faults.length === 0 && headed !== undefined) {
      const [name, { after }] = headed;
      const at = { sequence: 0, timeMs: after?.timeMs ?? 0 };
      this.#note("heads", name, at, "The sealed heads were removed: there are runs that had one.");
    }
    const anchor = this.#anchorOfHeads;
    if (anchor === undefined) return;
    const version = register?.version ?? 0;
    const [now, then] = [
      `The sealed heads are of version ${version}`,
      `at ${when(anchor)} there was ${anchor.sequence}`,
    ];
    if (version < anchor.sequence)
      this.#note("heads", "", anchor, `${now}, and ${then}: they were put back or removed.`);
    else if (version === anchor.sequence && seal !== anchor.hash)
      this.#note("heads", "", anchor, `${now}, and another one than was there at ${when(anchor)}.`);
  }

  #checkPair(name: string, link: Link, after: Link): void {
    const at = `Entry ${after.sequence} of run ${name}`;
    const [from, to] = [link.sequence + 1, after.sequence - 1];
    if (link.sequence === after.sequence) this.#note("doubled", name, link, `${at} is there twice.`);
    else if (link.sequence > after.sequence) this.#note("reordered", name, after, `${at} lies after a later one.`);
    else if (from <= to) {
      const text = `Entries ${from} to ${to} of run ${name} are missing.`;
      this.#note("missing", name, { sequence: from, timeMs: after.timeMs }, text);
    } else if (link.keyed !== after.keyed)
      this.#note("replaced", name, after, `${at} has a hash of another kind than the one before it.`);
    else if (after.previous !== link.hash)
      this.#note("replaced", name, after, `${at} does not follow the one before it.`);
  }

  #note(kind: BreakKind, run: string, at: Pick<Break, "sequence" | "timeMs">, text: string): void {
    this.#breaks.add({ kind, run, sequence: at.sequence, timeMs: at.timeMs, text });
  }
}

function keyedHash(record: AuditRecord, hashes: EntryHashes): string | undefined {
  const keyId = keyIdOf(record.hash);
  return keyId && hashes.of(record, keyId);
}

function when({ timeMs }: Pick<Anchor, "timeMs">): string {
  return new Date(timeMs).toISOString();
}
