import { setImmediate } from "node:timers/promises";
import { NewestAnchors, type Anchor } from "../../../common/audit-anchor.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  AUDIT_BATCH_MAX_ENTRIES,
  AUDIT_EXPIRY_SLACK_MS,
  AUDIT_KEEP_SECONDS,
  AUDIT_PATIENCE_MS,
  AUDIT_PROBE_MS,
  AUDIT_VERIFIED_AT_START_ENTRIES,
  AUDIT_VERIFY_MAX_ENTRIES,
  AUDIT_WAITING_MAX_ENTRIES,
  STORE_CALL_DEADLINE_MS,
} from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Runtime } from "../../runtime.ts";
import { ThreadSlices } from "../../turns/slices.ts";
import { CallDeadline } from "../../store/call-deadline.ts";
import { classAccess, requirePermission, seesWhole, type Principal } from "../permissions/index.ts";
import { anchorOf, type Anchoring } from "./anchoring.ts";
import { Chain, type AuditRecord, type ChainKeys } from "./chain.ts";
import type { HeadStore } from "./head-store.ts";
import { Heading } from "./heading.ts";
import { headedRun } from "./heads.ts";
import { AUDIT_CLASS_PATH, HEADS_LATE, systemEntry, type Audit, type AuditEntry } from "./types.ts";
import { ChainVerifier } from "./verify.ts";
import type { ChainReport } from "./verify-report.ts";

const PROBLEMS_LOGGED_MAX = 10;
/** The name of the trail in messages to calls that wait for it. */
const TRAIL = "The audit trail";

/** Storage of the records. The tenant with the empty name is the installation itself. */
export interface AuditTrail {
  /** Durable when it resolves. Idempotent. */
  append(tenant: string, records: readonly AuditRecord[]): Promise<void>;
  /** Every stored record, newest first; records of one millisecond in any order. */
  read(tenant: string): AsyncIterable<readonly AuditRecord[]>;
}

export interface AuditDependencies {
  readonly runtime: Runtime;
  readonly trail: AuditTrail;
  /** Keys that seal chains; they are kept outside the store. */
  readonly keys: ChainKeys;
  /** Keeps digests outside the store; absent: none are kept. */
  readonly anchoring?: Anchoring;
  /** Stores the sealed heads of runs. Absent: runs have no heads, as in earlier versions. */
  readonly heads?: HeadStore;
  /** Creation time of the tenant: earlier anchors belong to a former tenant of the same name. */
  readonly bornMs?: (tenant: string) => Promise<number>;
}

export interface VerifyOptions {
  /** Lines from anchor files of other controllers, in addition to this controller's file. */
  readonly anchors?: readonly string[];
  /** Default: `AUDIT_VERIFY_MAX_ENTRIES`. */
  readonly entriesMax?: number;
  readonly signal?: AbortSignal;
}

export interface TrailReport extends ChainReport {
  /** Reason why the newest digests are not outside the store, or why some there cannot be read. */
  readonly anchorFault?: string;
}

export interface Period {
  readonly fromMs?: number;
  readonly toMs?: number;
}

interface Anchored {
  readonly anchors: readonly Anchor[];
  readonly fault: string | undefined;
}

/** Writes the audit trail of every tenant: one chain per tenant in this run of the controller. */
export class AuditService implements Audit {
  readonly #dependencies: AuditDependencies;
  readonly #writers = new Map<string, TrailWriter>();
  readonly #heading: Heading | undefined;

  constructor(dependencies: AuditDependencies) {
    this.#dependencies = dependencies;
    const { runtime, heads, trail, anchoring } = dependencies;
    this.#heading =
      heads &&
      new Heading({
        runtime,
        store: heads,
        read: (tenant) => trail.read(tenant),
        late: (tenant) => this.record(systemEntry(tenant, HEADS_LATE)),
        ...(anchoring && { anchoring }),
      });
  }

  /** Starts sealing heads at intervals. */
  start(): void {
    this.#heading?.start();
  }

  /** Creates heads of the runs of earlier versions in the background, unless they exist. */
  maintain(tenant: string): void {
    this.#heading?.adopt(tenant);
  }

  /** Resolves when every started adoption of earlier runs has ended. */
  async adopted(): Promise<void> {
    await this.#heading?.adopted;
  }

  /** Seals all unsealed entries of every tenant; never throws. */
  async writeHeads(): Promise<void> {
    await this.#heading?.write();
  }

  /** Seals the last heads; a failure is logged. */
  async close(): Promise<void> {
    await this.#heading?.close();
  }

  /** Number of tenants whose heads cannot be stored. */
  get headsFailing(): number {
    return this.#heading?.failing ?? 0;
  }

  /** Forgets a removed tenant; its chain ends with the written entries. */
  leave(tenant: string): void {
    this.#writers.delete(tenant);
    this.#heading?.leave(tenant);
  }

  ready(tenant: string): Promise<void> {
    return this.#writer(tenant).ready();
  }

  write(entry: AuditEntry): Promise<void> {
    return this.#writer(entry.tenant).write(entry);
  }

  async record(entry: AuditEntry): Promise<void> {
    try {
      await this.write(entry);
    } catch (error) {
      this.#dependencies.runtime.log.error({ err: error, entry }, "an audit record could not be written");
    }
  }

  /**
   * Reads the whole trail of the tenant. Checks that no entry was changed, removed or added, and that the trail matches
   * the digests kept outside the store.
   */
  async verifyChain(principal: Principal, options: VerifyOptions = {}): Promise<TrailReport> {
    requirePermission(principal, "audit:read");
    const { entriesMax = AUDIT_VERIFY_MAX_ENTRIES } = options;
    const work = this.verifying(principal, options);
    for (;;) {
      const step = await work.next();
      if (step.done) return step.value;
      if (step.value > entriesMax)
        throw new AppError("too_large", `The trail has more than ${entriesMax} entries: ask with stream=true.`);
    }
  }

  /** As `verifyChain`, for a trail of any length: yields the number of entries read after each page. */
  async *verifying(principal: Principal, options: VerifyOptions = {}): AsyncGenerator<number, TrailReport> {
    requirePermission(principal, "audit:read");
    const { tenant } = principal;
    // Anchors are read before the trail: a later anchor may concern entries that come too late for this read.
    const slices = new ThreadSlices({ tenant, clock: this.#dependencies.runtime.clock, signal: options.signal });
    const { anchors, fault } = await this.#anchorsOf(tenant, options.anchors ?? [], slices);
    const heads = await this.#heading?.of(tenant);
    const { keys } = this.#dependencies;
    const kept = { keptSinceMs: this.#keptSinceMs() };
    const verifier = new ChainVerifier({ keys, anchors, ...kept, ...(heads && { heads }) });
    for await (const records of this.#dependencies.trail.read(tenant)) {
      options.signal?.throwIfAborted();
      for (const record of records) {
        verifier.add(record);
        if (slices.isOverNow()) await slices.pause();
      }
      yield verifier.entries;
    }
    const steps = verifier.reporting(this.#keptSinceMs());
    let step = steps.next();
    for (; !step.done; step = steps.next()) if (slices.isOverNow()) await slices.pause();
    return { ...step.value, ...(fault !== undefined && { anchorFault: fault }) };
  }

  /**
   * Yields every entry from `fromMs` (inclusive) to `toMs` (exclusive), newest first, with all members of its hash.
   * `AppError("denied")` for a principal whose rules hide rows or columns of the trail: a part could not be verified.
   */
  async *export(principal: Principal, { fromMs = 0, toMs = Infinity }: Period): AsyncGenerator<readonly AuditRecord[]> {
    requirePermission(principal, "audit:read");
    if (!seesWhole(classAccess(principal, principal.ospace + AUDIT_CLASS_PATH)))
      throw new AppError("denied", "The trail is exported whole, and your rules leave out rows or columns of it.");
    for await (const records of this.#dependencies.trail.read(principal.tenant)) {
      const wanted = records.filter(({ timeMs }) => timeMs >= fromMs && timeMs < toMs);
      if (wanted.length > 0) yield wanted;
      if (records.some(({ timeMs }) => timeMs < fromMs)) return;
    }
  }

  /** Anchors in the file and in the given lines, without those of a former tenant of that name. */
  async #anchorsOf(tenant: string, given: readonly string[], slices: ThreadSlices): Promise<Anchored> {
    const { anchoring, bornMs } = this.#dependencies;
    const newest = (await anchoring?.file.read(tenant)) ?? new NewestAnchors(tenant);
    for (const line of given) {
      newest.add(line);
      if (slices.isOverNow()) await slices.pause();
    }
    const birthMs = (await bornMs?.(tenant)) ?? 0;
    const anchors = newest.all.filter(({ timeMs }) => timeMs >= birthMs);
    const unreadable = `${counted(newest.unreadable, "line")} of anchors cannot be read.`;
    const fault = anchoring?.failure ?? (newest.unreadable > 0 ? unreadable : undefined);
    return { anchors, fault };
  }

  #keptSinceMs(): number {
    return this.#dependencies.runtime.clock.nowMs() - AUDIT_KEEP_SECONDS * 1_000 + AUDIT_EXPIRY_SLACK_MS;
  }

  /** Checks the newest entries of a tenant's trail and logs each fault as an error. */
  async verifyNewest(tenant: string): Promise<ChainReport> {
    const { trail, keys, runtime } = this.#dependencies;
    const heads = await this.#heading?.of(tenant);
    const kept = { keptSinceMs: this.#keptSinceMs(), isPart: true };
    const verifier = new ChainVerifier({ keys, ...kept, ...(heads && { heads }) });
    for await (const records of trail.read(tenant)) {
      for (const record of records) verifier.add(record);
      if (verifier.entries >= AUDIT_VERIFIED_AT_START_ENTRIES) break;
    }
    const report = verifier.report();
    if (report.problems.length > 0)
      runtime.log.error(
        { tenant, problems: report.problems.slice(0, PROBLEMS_LOGGED_MAX) },
        "THE AUDIT TRAIL WAS TAMPERED WITH",
      );
    return report;
  }

  #writer(tenant: string): TrailWriter {
    let writer = this.#writers.get(tenant);
    if (writer === undefined) {
      writer = new TrailWriter(tenant, { ...this.#dependencies, heading: this.#heading });
      this.#writers.set(tenant, writer);
    }
    return writer;
  }
}

interface WriterDependencies extends AuditDependencies {
  readonly heading: Heading | undefined;
}

interface Waiting {
  readonly entry: AuditEntry;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** One tenant's chain. Entries that arrive in one turn, or during a write, are written together by the next write. */
class TrailWriter {
  readonly #tenant: string;
  readonly #dependencies: WriterDependencies;
  #chain: Chain;
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
    this.#chain = this.#newChain();
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
    const records = this.#chain.link(
      batch.map(({ entry }) => entry),
      this.#dependencies.runtime.clock.nowMs(),
    );
    this.#triedMs = this.#nowMs();
    this.#writingMs = this.#triedMs;
    try {
      await this.#append(records);
      this.#chain.kept(records);
      const newest = records.at(-1);
      if (newest !== undefined) this.#dependencies.anchoring?.kept(anchorOf(newest));
      this.#dependencies.heading?.kept(this.#tenant, records);
      this.#writable = true;
      this.#failure = undefined;
      this.#lost = 0;
      for (const { resolve } of batch) resolve();
    } catch (error) {
      // It is unknown whether these entries are stored, so no entry may be chained to them.
      this.#chain = this.#newChain();
      this.#writable = false;
      this.#lost += batch.length;
      this.#failure = error;
      for (const { reject } of batch) reject(error);
    } finally {
      this.#writingMs = undefined;
    }
  }

  /** Appending is idempotent, so a failed or unknown outcome is tried once more. */
  async #append(records: readonly AuditRecord[]): Promise<void> {
    const { trail, heading } = this.#dependencies;
    await heading?.open(this.#tenant);
    await trail.append(this.#tenant, records).catch(() => trail.append(this.#tenant, records));
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
