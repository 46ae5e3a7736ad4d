import { createHmac, hash as digest } from "node:crypto";
import type { SecretBox } from "../../secrets/index.ts";
import { isAppError } from "../../../common/errors.ts";
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
  /** `<key id>:<HMAC-SHA256 over everything above>`, hexadecimal. Entries of earlier versions have a plain SHA-256. */
  readonly hash: string;
}

/** Computes hashes that need the key file: access to the store alone is not enough to forge them. */
export type ChainKeys = Pick<SecretBox, "keyId" | "derive">;

export interface ChainReport {
  readonly entries: number;
  readonly runs: number;
  /** Entries of earlier versions, which any writer of the store could have made: they prove nothing. */
  readonly unkeyed: number;
  /** What does not hold, in words; empty for a sound trail. */
  readonly problems: readonly string[];
}

const FIRST = "0".repeat(64);
const PROBLEMS_SHOWN_MAX = 100;

/** The state of one run: gives the next record, and advances only once that record was kept. */
export class Chain {
  readonly #run: string;
  readonly #keys: ChainKeys;
  #sequence = 0;
  #hash = FIRST;
  #timeMs = 0;

  constructor(run: string, keys: ChainKeys) {
    this.#run = run;
    this.#keys = keys;
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
      previous = hashOf(body, this.#keys);
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

const KEY_CONTEXT = "audit/chain";
const HASH = /^([0-9a-f]+):[0-9a-f]{64}$/;

/** By the present key when `keyId` names no other. */
export function hashOf(record: Omit<AuditRecord, "hash">, keys: ChainKeys, keyId = keys.keyId): string {
  return `${keyId}:${createHmac("sha256", keys.derive(KEY_CONTEXT, keyId)).update(textOf(record)).digest("hex")}`;
}

/** As earlier versions made it. */
function plainHashOf(record: Omit<AuditRecord, "hash">): string {
  return digest("sha256", textOf(record), "hex");
}

function textOf(record: Omit<AuditRecord, "hash">): string {
  const { run, sequence, timeMs, tenant, user, permission, action, outcome, code, remote, traceparent, previous } =
    record;
  return JSON.stringify([
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
}

interface Link {
  readonly sequence: number;
  readonly previous: string;
  readonly hash: string;
  readonly keyed: boolean;
}

/**
 * Checks records in any order. The oldest of a run may have expired; what is cut off at the very end of a run cannot be
 * noticed.
 */
export class ChainVerifier {
  readonly #runs = new Map<string, Link[]>();
  readonly #problems: string[] = [];
  readonly #keys: ChainKeys;
  #entries = 0;
  #unkeyed = 0;

  constructor(keys: ChainKeys) {
    this.#keys = keys;
  }

  get entries(): number {
    return this.#entries;
  }

  add(record: AuditRecord): void {
    this.#entries++;
    const { run, sequence, previous, hash } = record;
    const keyed = !/^[0-9a-f]{64}$/.test(hash);
    if (!keyed) this.#unkeyed++;
    if (!this.#isOwn(record, keyed)) this.#note(`Entry ${String(sequence)} of run ${run} was changed.`);
    const links = this.#runs.get(run) ?? [];
    links.push({ sequence, previous, hash, keyed });
    this.#runs.set(run, links);
  }

  report(): ChainReport {
    for (const [run, links] of this.#runs)
      this.#checkRun(
        run,
        links.sort((one, other) => one.sequence - other.sequence),
      );
    return { entries: this.#entries, runs: this.#runs.size, unkeyed: this.#unkeyed, problems: this.#problems };
  }

  #isOwn(record: AuditRecord, keyed: boolean): boolean {
    if (!keyed) return plainHashOf(record) === record.hash;
    const keyId = HASH.exec(record.hash)?.[1];
    if (keyId === undefined) return false;
    try {
      return hashOf(record, this.#keys, keyId) === record.hash;
    } catch (error) {
      if (!isAppError(error, "unavailable")) throw error;
      this.#note(
        `Entry ${String(record.sequence)} of run ${record.run} names the key ${keyId}, which the key file does not have.`,
      );
      return true;
    }
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
      else if (link.keyed !== before.keyed)
        this.#note(`Entry ${String(link.sequence)} of run ${run} has a hash of another kind than the one before it.`);
      else if (link.previous !== before.hash)
        this.#note(`Entry ${String(link.sequence)} of run ${run} does not follow the one before it.`);
    }
  }

  #note(problem: string): void {
    if (this.#problems.length < PROBLEMS_SHOWN_MAX) this.#problems.push(problem);
  }
}
