import { NewestAnchors, type Anchor } from "../../../common/audit-anchor.ts";
import { AppError } from "../../../common/errors.ts";
import {
  AUDIT_EXPIRY_SLACK_MS,
  AUDIT_KEEP_SECONDS,
  AUDIT_VERIFIED_AT_START_ENTRIES,
  AUDIT_VERIFY_MAX_ENTRIES,
} from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Runtime } from "../../runtime.ts";
import { ThreadSlices } from "../../turns/slices.ts";
import { classAccess, requirePermission, seesWhole, type Principal } from "../permissions/index.ts";
import type { Anchoring } from "./anchoring.ts";
import type { AuditRecord, ChainKeys } from "./chain.ts";
import type { HeadStore } from "./head-store.ts";
import { Heading } from "./heading.ts";
import { type AuditTrail, TrailWriter } from "./trail-writer.ts";
import {
  AUDIT_CLASS_PATH,
  HEADS_LATE,
  systemEntry,
  type Audit,
  type AuditEntry,
  type AuditInCommits,
  type EntryInCommit,
} from "./types.ts";
import { ChainVerifier } from "./verify.ts";
import type { ChainReport } from "./verify-report.ts";

export type { AuditTrail } from "./trail-writer.ts";

const PROBLEMS_LOGGED_MAX = 10;

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
export class AuditService implements Audit, AuditInCommits {
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

  inCommit(entry: AuditEntry, ospace: string): EntryInCommit {
    return this.#writer(entry.tenant).inCommit(entry, ospace + AUDIT_CLASS_PATH);
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
