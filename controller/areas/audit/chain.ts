import { hash as digest } from "node:crypto";
import type { AuditEntry } from "./types.ts";

/** An entry as it is kept: bound to the one before it in the same run of the same controller. */
export interface AuditRecord extends AuditEntry {
  readonly timeMs: number;
  /** One run of one controller for one tenant; a new one also after entries could not be written. */
  readonly run: string;
  /** 1 for the first entry of a run. */
  readonly sequence: number;
  /** Hash of the entry before; 64 zeros for the first. */
  readonly previous: string;
  /** SHA-256 over everything above, hexadecimal. */
  readonly hash: string;
}

export interface ChainReport {
  readonly entries: number;
  readonly runs: number;
  /** What does not hold, in words; empty for a sound trail. */
  readonly problems: readonly string[];
}

const FIRST = "0".repeat(64);
const PROBLEMS_SHOWN_MAX = 100;

/** Where one run stands: gives the next record, and moves on only when told that it was kept. */
export class Chain {
  readonly #run: string;
  #sequence = 0;
  #hash = FIRST;
  #timeMs = 0;

  constructor(run: string) {
    this.#run = run;
  }

  /** Records that follow on what was kept so far, in the order of `entries`. */
  link(entries: readonly AuditEntry[], nowMs: number): readonly AuditRecord[] {
    let previous = this.#hash;
    // A clock that jumps back must not disturb the order of a run.
    const timeMs = Math.max(nowMs, this.#timeMs);
    return entries.map((entry, index) => {
      const { tenant, user, permission, action, outcome, code, remote, traceparent } = entry;
      const sequence = this.#sequence + index + 1;
      const body = {
        tenant,
        user,
        permission,
        action,
        outcome,
        code,
        remote,
        traceparent,
        timeMs,
        run: this.#run,
        sequence,
        previous,
      };
      previous = hashOf(body);
      return { hash: previous, ...body };
    });
  }

  kept(records: readonly AuditRecord[]): void {
    const last = records.at(-1);
    if (last === undefined) return;
    this.#sequence = last.sequence;
    this.#hash = last.hash;
    this.#timeMs = last.timeMs;
  }
}

export function hashOf(record: Omit<AuditRecord, "hash">): string {
  const { run, sequence, timeMs, tenant, user, permission, action, outcome, code, remote, traceparent, previous } =
    record;
  const text = JSON.stringify([
    run,
    sequence,
    timeMs,
    tenant,
    user,
    permission,
    action,
    outcome,
    code,
    remote,
    traceparent,
    previous,
  ]);
  return digest("sha256", text, "hex");
}

interface Link {
  readonly sequence: number;
  readonly previous: string;
  readonly hash: string;
}

/** Checks records in any order. The oldest of a run may have expired; what is cut off at the very end of a run cannot be noticed. */
export class ChainVerifier {
  readonly #runs = new Map<string, Link[]>();
  readonly #problems: string[] = [];
  #entries = 0;

  get entries(): number {
    return this.#entries;
  }

  add(record: AuditRecord): void {
    this.#entries++;
    const { run, sequence, previous, hash } = record;
    if (hashOf(record) !== hash) this.#note(`Entry ${String(sequence)} of run ${run} was changed.`);
    const links = this.#runs.get(run) ?? [];
    links.push({ sequence, previous, hash });
    this.#runs.set(run, links);
  }

  report(): ChainReport {
    for (const [run, links] of this.#runs)
      this.#checkRun(
        run,
        links.sort((one, other) => one.sequence - other.sequence),
      );
    return { entries: this.#entries, runs: this.#runs.size, problems: this.#problems };
  }

  #checkRun(run: string, links: readonly Link[]): void {
    if (links[0]?.sequence === 1 && links[0].previous !== FIRST)
      this.#note(`Run ${run} does not begin at its beginning.`);
    for (const [at, link] of links.entries()) {
      const before = links[at - 1];
      if (before === undefined) continue;
      if (link.sequence === before.sequence) this.#note(`Entry ${String(link.sequence)} of run ${run} is there twice.`);
      else if (link.sequence !== before.sequence + 1)
        this.#note(`Entries ${String(before.sequence + 1)} to ${String(link.sequence - 1)} of run ${run} are missing.`);
      else if (link.previous !== before.hash)
        this.#note(`Entry ${String(link.sequence)} of run ${run} does not follow the one before it.`);
    }
  }

  #note(problem: string): void {
    if (this.#problems.length < PROBLEMS_SHOWN_MAX) this.#problems.push(problem);
  }
}
