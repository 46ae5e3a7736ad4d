import { setImmediate } from "node:timers/promises";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  AUDIT_BATCH_MAX_ENTRIES,
  AUDIT_PATIENCE_MS,
  AUDIT_PROBE_MS,
  AUDIT_WAITING_MAX_ENTRIES,
  STORE_CALL_DEADLINE_MS,
} from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { CallDeadline } from "../../store/calls/call-deadline.ts";
import type { InCommit } from "../objects/index.ts";
import { anchorOf, type Anchoring } from "./anchoring.ts";
import { Chain, type AuditRecord, type ChainKeys } from "./chain.ts";
import { CommitChain } from "./commit-chain.ts";
import type { Heading } from "./heading.ts";
import { headedRun } from "./heads.ts";
import { AUDIT_CLASS_PATH, systemEntry, type AuditEntry, type EntryInCommit } from "./types.ts";

/** The name of the trail in messages to calls that wait for it. */
const TRAIL = "The audit trail";

/** Storage of the records. The tenant with the empty name is the installation itself. */
export interface AuditTrail {
  /** Durable when it resolves. Idempotent. */
  append(tenant: string, records: readonly AuditRecord[]): Promise<void>;
  /**
   * Stores records that are made inside a commit of the store. The caller gives them to `append` if they were not
   * asked for: then the store does not make records inside a commit. Absent: it never does.
   */
  appendInCommit?(tenant: string, records: Omit<InCommit, "class">): Promise<void>;
  /** Every stored record, newest first; records of one millisecond in any order. */
  read(tenant: string): AsyncIterable<readonly AuditRecord[]>;
}

export interface WriterDependencies {
  readonly runtime: Runtime;
  readonly trail: AuditTrail;
  readonly keys: ChainKeys;
  readonly anchoring?: Anchoring;
  readonly heading: Heading | undefined;
}

interface Waiting {
  readonly entry: AuditEntry;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One tenant's chain. Entries that arrive in one turn, or during a write, are written together by the next write. An
 * entry given to the commit of its change (`inCommit`) is chained in that commit and waits for no other write.
 */
export class TrailWriter {
  readonly #tenant: string;
  readonly #dependencies: WriterDependencies;
  readonly #chain: CommitChain;
  #waiting: Waiting[] = [];
  #writing = false;
  /** False until a write has succeeded. */
  #writable = false;
  #lost = 0;
  /** The error of the last write. */
  #failure: unknown;
  #triedMs = -AUDIT_PROBE_MS;
  /** Start of the current write; `undefined` while none runs. */
  #writingMs: number | undefined;
  #probe: Promise<void> | undefined;

  constructor(tenant: string, dependencies: WriterDependencies) {
    this.#tenant = tenant;
    this.#dependencies = dependencies;
    this.#chain = new CommitChain({
      newChain: () => this.#newChain(),
      nowMs: () => dependencies.runtime.clock.nowMs(),
      stored: (records) => this.#stored(records),
    });
  }

  async ready(): Promise<void> {
    if (this.#isSilent()) throw notWritable(this.#failure);
    if (this.#writable) return;
    if (this.#probe === undefined && this.#nowMs() - this.#triedMs < AUDIT_PROBE_MS) throw notWritable(this.#failure);
    this.#probe ??= this.#queue(this.#opening()).finally(() => (this.#probe = undefined));
    await this.#within(this.#probe).catch((error: unknown) => {
      throw notWritable(error);
    });
  }

  write(entry: AuditEntry): Promise<void> {
    if (this.#waiting.length >= AUDIT_WAITING_MAX_ENTRIES) return Promise.reject(notWritable(this.#failure));
    return this.#within(this.#queue(entry));
  }

  /** No entry can be given to a commit while entries cannot be written. */
  inCommit(entry: AuditEntry, path: string): EntryInCommit {
    return this.#chain.inCommit([entry], { class: path, isAllowed: () => this.#writable });
  }

  #queue(entry: AuditEntry): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject });
      // A batch has entries of many calls, so no call's deadline applies to it.
      if (!this.#writing) void CallDeadline.outside(() => this.#drain());
    });
  }

  /** Waits until the deadline of the current call; only `AUDIT_PATIENCE_MS` if the last write failed or is late. */
  #within(work: Promise<void>): Promise<void> {
    const call = CallDeadline.current();
    const waiting = call === undefined ? work : call.wait(TRAIL, work);
    return this.#failure === undefined && !this.#isSilent() ? waiting : this.#inPatience(waiting);
  }

  async #inPatience(waiting: Promise<void>): Promise<void> {
    let cancel = (): void => undefined;
    const late = new Promise<never>((_, reject) => {
      const { clock } = this.#dependencies.runtime;
      cancel = clock.after(AUDIT_PATIENCE_MS, () => reject(notWritable(this.#failure)));
    });
    try {
      await Promise.race([waiting, late]);
    } finally {
      cancel();
    }
  }

  /** True if the current write has taken longer than a store call may. */
  #isSilent(): boolean {
    return this.#writingMs !== undefined && this.#nowMs() - this.#writingMs > STORE_CALL_DEADLINE_MS;
  }

  async #drain(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      // Changes that became durable together continue one after another in one turn of the event loop. Waiting for the
      // end of the turn puts their entries into one batch.
      await setImmediate();
      await this.#writeBatch(this.#waiting.splice(0, AUDIT_BATCH_MAX_ENTRIES));
    }
    this.#writing = false;
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    this.#triedMs = this.#nowMs();
    this.#writingMs = this.#triedMs;
    try {
      await this.#write(batch.map(({ entry }) => entry));
      this.#writable = true;
      this.#failure = undefined;
      this.#lost = 0;
      for (const { resolve } of batch) resolve();
    } catch (error) {
      this.#writable = false;
      this.#lost += batch.length;
      this.#failure = error;
      for (const { reject } of batch) reject(error);
    } finally {
      this.#writingMs = undefined;
    }
  }

  /**
   * A failed commit is tried once more by an append, in a new run: if its outcome is unknown, the entries may be stored
   * twice. An append is idempotent, so it is repeated as it is.
   */
  async #write(entries: readonly AuditEntry[]): Promise<void> {
    const { trail, heading } = this.#dependencies;
    await heading?.open(this.#tenant);
    if (await this.#writeInCommit(entries)) return;
    await this.#chain.alone(entries, (records) =>
      trail.append(this.#tenant, records).catch(() => trail.append(this.#tenant, records)),
    );
  }

  /** False if the store does not make records inside a commit, or if the commit failed. */
  async #writeInCommit(entries: readonly AuditEntry[]): Promise<boolean> {
    const { trail } = this.#dependencies;
    if (trail.appendInCommit === undefined) return false;
    const inCommit = this.#chain.inCommit(entries, { class: AUDIT_CLASS_PATH, isAllowed: () => true });
    await trail.appendInCommit(this.#tenant, inCommit).catch(() => undefined);
    return inCommit.isDurable();
  }

  #stored(records: readonly AuditRecord[]): void {
    const { anchoring, heading } = this.#dependencies;
    const newest = records.at(-1);
    if (newest !== undefined) anchoring?.kept(anchorOf(newest));
    heading?.kept(this.#tenant, records);
  }

  #opening(): AuditEntry {
    const action = this.#lost === 0 ? "audit opened" : `audit resumed; ${String(this.#lost)} entries may be missing`;
    return systemEntry(this.#tenant, action);
  }

  #newChain(): Chain {
    const { runtime, keys, heading } = this.#dependencies;
    const name = Buffer.from(runtime.random.bytes(12)).toString("hex");
    return new Chain(heading === undefined ? name : headedRun(name), keys);
  }

  #nowMs(): number {
    return this.#dependencies.runtime.clock.monotonicMs();
  }
}

function notWritable(cause: unknown): AppError {
  const reason = isAppError(cause) ? ` ${cause.message}` : "";
  return new AppError(
    "unavailable",
    `The audit trail cannot be written, so changes are refused; nothing was changed.${reason}`,
    { cause },
  );
}
