import type { Anchor } from "../../../common/audit-anchor.ts";
import { isAppError } from "../../../common/errors.ts";
import { FIRST, hashOf, keyIdOf, plainHashOf, type AuditRecord, type ChainKeys } from "./chain.ts";

/** How a trail is broken: what was done to it, as far as it can be told from what is left. */
export type BreakKind = "altered" | "missing" | "doubled" | "reordered" | "unknown_key" | "truncated" | "replaced";

/** One place where a trail does not hold. */
export interface Break {
  readonly kind: BreakKind;
  readonly run: string;
  /** The entry it is seen at; of entries that are gone the first of them. */
  readonly sequence: number;
  /** Of that entry, or of the next that is there. */
  readonly timeMs: number;
  /** In words. */
  readonly text: string;
}

export interface ChainReport {
  readonly entries: number;
  readonly runs: number;
  /** Entries of earlier versions, which any writer of the store could have made: they prove nothing. */
  readonly unkeyed: number;
  /** Digests kept outside the store that the trail was compared with. */
  readonly anchors: number;
  /** The oldest place where the trail does not hold; absent of a sound one. */
  readonly first?: Break;
  /** What does not hold, in words, the oldest first; empty for a sound trail. */
  readonly problems: readonly string[];
}

const BREAKS_SHOWN_MAX = 100;

interface Link extends Pick<AuditRecord, "sequence" | "previous" | "hash" | "timeMs"> {
  readonly keyed: boolean;
}

/** What is known of one run, read from its newest entry to its oldest. */
interface Run {
  /** Entries of one millisecond, which lie in any order. */
  group: Link[];
  /** The oldest entry before the group. */
  after: Link | undefined;
  newest: number;
  /** By sequence. */
  readonly anchors: Map<number, Anchor>;
}

export interface VerifierOptions {
  readonly keys: ChainKeys;
  /** Kept outside the store. Those that are older than what a trail keeps are left out. */
  readonly anchors?: readonly Anchor[];
  /** Entries made earlier may have expired. */
  readonly keptSinceMs?: number;
}

/**
 * Checks records that come newest first, in memory for the runs and not for the entries. The oldest of a run may have
 * expired; what is cut off at the very end of a run is noticed by an anchor only.
 */
export class ChainVerifier {
  readonly #runs = new Map<string, Run>();
  readonly #breaks: Break[] = [];
  readonly #keys: ChainKeys;
  readonly #anchors: number;
  readonly #seen = new Set<Run>();
  #entries = 0;
  #unkeyed = 0;

  constructor({ keys, anchors = [], keptSinceMs = 0 }: VerifierOptions) {
    this.#keys = keys;
    const kept = anchors.filter(({ timeMs }) => timeMs > keptSinceMs);
    this.#anchors = kept.length;
    for (const anchor of kept) this.#run(anchor.run).anchors.set(anchor.sequence, anchor);
  }

  get entries(): number {
    return this.#entries;
  }

  get broken(): boolean {
    return this.#breaks.length > 0;
  }

  add(record: AuditRecord): void {
    this.#entries++;
    const { run: name, sequence, previous, hash, timeMs } = record;
    const keyed = !/^[0-9a-f]{64}$/.test(hash);
    if (!keyed) this.#unkeyed++;
    this.#checkContent(record, keyed);
    const run = this.#run(name);
    this.#seen.add(run);
    this.#compare(record, run.anchors.get(sequence));
    run.newest = Math.max(run.newest, sequence);
    const last = run.group[0];
    if (last !== undefined && timeMs < last.timeMs) this.#settle(name, run);
    run.group.push({ sequence, previous, hash, timeMs, keyed });
  }

  report(): ChainReport {
    for (const [name, run] of this.#runs) {
      this.#settle(name, run);
      if (run.after?.sequence === 1 && run.after.previous !== FIRST)
        this.#note("missing", name, run.after, `Run ${name} does not begin at its beginning.`);
      this.#findTruncation(name, run);
    }
    const breaks = this.#breaks.sort((one, other) => one.timeMs - other.timeMs || one.sequence - other.sequence);
    const [first] = breaks;
    return {
      entries: this.#entries,
      runs: this.#seen.size,
      unkeyed: this.#unkeyed,
      anchors: this.#anchors,
      ...(first && { first }),
      problems: breaks.slice(0, BREAKS_SHOWN_MAX).map(({ text }) => text),
    };
  }

  #run(name: string): Run {
    const known = this.#runs.get(name);
    if (known !== undefined) return known;
    const run: Run = { group: [], after: undefined, newest: 0, anchors: new Map() };
    this.#runs.set(name, run);
    return run;
  }

  #checkContent(record: AuditRecord, keyed: boolean): void {
    const { run, sequence } = record;
    try {
      const own = keyed ? keyedHash(record, this.#keys) : plainHashOf(record);
      if (own !== record.hash) this.#note("altered", run, record, `Entry ${sequence} of run ${run} was changed.`);
    } catch (error) {
      if (!isAppError(error, "unavailable")) throw error;
      const text = `Entry ${sequence} of run ${run} names the key ${keyIdOf(record.hash)}, which the key file does not have.`;
      this.#note("unknown_key", run, record, text);
    }
  }

  #compare(record: AuditRecord, anchor: Anchor | undefined): void {
    if (anchor === undefined || anchor.hash === record.hash) return;
    const { run, sequence } = record;
    const text = `Entry ${sequence} of run ${run} is another one than was there at ${when(anchor)}: the run was written anew.`;
    this.#note("replaced", run, record, text);
  }

  /** Whole runs, too: of them the anchor is all there is. */
  #findTruncation(name: string, run: Run): void {
    const newest = Math.max(0, ...run.anchors.keys());
    const anchor = run.anchors.get(newest);
    if (anchor === undefined || newest <= run.newest) return;
    const lost = `Entries ${run.newest + 1} to ${newest} of run ${name}`;
    const text = `${lost}, which were there at ${when(anchor)}, are cut off at its end.`;
    this.#note("truncated", name, { sequence: run.newest + 1, timeMs: anchor.timeMs }, text);
  }

  /** The entries of one millisecond are all there: they follow each other, and what came after follows them. */
  #settle(name: string, run: Run): void {
    for (const link of run.group.sort((one, other) => other.sequence - one.sequence)) {
      if (run.after !== undefined) this.#checkPair(name, link, run.after);
      run.after = link;
    }
    run.group = [];
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
    const { sequence, timeMs } = at;
    this.#breaks.push({ kind, run, sequence, timeMs, text });
    // The oldest are kept, whatever is found first.
    if (this.#breaks.length < 2 * BREAKS_SHOWN_MAX) return;
    this.#breaks.sort((one, other) => one.timeMs - other.timeMs).length = BREAKS_SHOWN_MAX;
  }
}

function keyedHash(record: AuditRecord, keys: ChainKeys): string | undefined {
  const keyId = keyIdOf(record.hash);
  return keyId && hashOf(record, keys, keyId);
}

function when({ timeMs }: Anchor): string {
  return new Date(timeMs).toISOString();
}
