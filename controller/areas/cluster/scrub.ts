import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { SCRUB_DUE_MS, SCRUB_RATE_DEFAULT } from "../../../common/limits.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { Controllers } from "../../store/journal/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { scrubJournal, type VersionedScrub, type OpenScrub, type ScrubEnd, type ScrubJournal } from "./open-scrubs.ts";
import { ScrubRun, type ScrubRunDependencies } from "./scrub-run.ts";

const LAST_KEY = "scrub/last";
/** Attempts to stop a scrub, because its runner records progress at the same time. */
const STOP_ATTEMPTS_MAX = 20;
const NOTHING = {
  looked: { objects: 0, indexes: 0, sources: 0, targets: 0, contents: 0 },
  bytes: 0,
  missing: 0,
  superfluous: 0,
  damaged: 0,
  examples: [],
};

export interface ScrubDependencies extends Omit<ScrubRunDependencies, "journal"> {
  readonly controllers: Controllers;
  /** Creation time of the tenant: the first scrub is due relative to it. */
  readonly bornMs: (tenant: string) => Promise<number>;
}

/** The public members of a scrub. */
export type ScrubReport = Pick<
  OpenScrub,
  | "id"
  | "user"
  | "startedMs"
  | "rate"
  | "step"
  | "looked"
  | "bytes"
  | "missing"
  | "superfluous"
  | "damaged"
  | "examples"
> & { readonly state: ScrubEnd["state"] | "running"; readonly message: string; readonly endedMs?: number };

export interface ScrubStatus {
  /** The open scrub, if there is one. */
  readonly running?: ScrubReport;
  /** The last scrub that ended, in any state. */
  readonly last?: ScrubReport;
  /** True if no scrub was completed for `SCRUB_DUE_MS`. */
  readonly due: boolean;
}

/** The last scrub of a tenant, as stored under `LAST_KEY`. */
interface Last {
  readonly report: ScrubReport;
  /** End time of the last completed scrub. */
  readonly doneMs?: number;
}

/**
 * Scrubs a tenant's stores, one scrub at a time. If its controller is gone, another one continues it. A scrub compares
 * indexes and edges with the objects that they are derived from, in both directions, and contents with their digests.
 */
export class ScrubService {
  readonly #with: ScrubDependencies;
  readonly #journal: ScrubJournal;
  /** Abort controllers of the scrubs that run here, by id. */
  readonly #carried = new Map<string, AbortController>();
  /** Time of the last completed scrub, or the tenant's creation, by tenant. */
  readonly #sinceMs = new Map<string, number>();

  constructor(dependencies: ScrubDependencies) {
    this.#with = dependencies;
    this.#journal = scrubJournal(dependencies);
  }

  /** `AppError("conflict")` while a scrub is open. */
  async begin(
    principal: Principal,
    { rate = SCRUB_RATE_DEFAULT }: { readonly rate?: number } = {},
  ): Promise<ScrubReport> {
    requirePermission(principal, "cluster:write");
    const { tenant, ospace, user, traceparent } = principal;
    const { runtime, stores } = this.#with;
    const { kv } = await stores.tenant(tenant);
    const last = await kv.get(LAST_KEY);
    if (await this.#open(tenant)) throw underWay();
    const nowMs = runtime.clock.nowMs();
    const id = ulidOf(nowMs, runtime.random.bytes(10));
    const scrub = {
      id,
      tenant,
      ospace,
      user,
      traceparent,
      rate,
      startedMs: nowMs,
      step: "objects" as const,
      ...NOTHING,
    };
    // Every start writes this key, so that one of two simultaneous starts is refused.
    const begun = await this.#journal.beginWithin(scrub, {
      if: [{ key: LAST_KEY, revision: last?.revision ?? 0 }],
      then: [{ kind: "put", key: LAST_KEY, value: last?.value ?? encodeJson({}) }],
    });
    if (begun === undefined) throw underWay();
    this.#start(begun);
    return reportOf(begun.open);
  }

  async status(principal: Principal): Promise<ScrubStatus> {
    requirePermission(principal, "cluster:read");
    const open = await this.#open(principal.tenant);
    const last = await this.#last(principal.tenant);
    const sinceMs = last?.doneMs ?? (await this.#with.bornMs(principal.tenant));
    return {
      ...(open && { running: reportOf(open.open) }),
      ...(last?.report && { last: last.report }),
      due: this.#with.runtime.clock.nowMs() - sinceMs > SCRUB_DUE_MS,
    };
  }

  /** Stops the open scrub; its corrections stay. `AppError("not_found")` when no scrub is open. */
  async stop(principal: Principal): Promise<ScrubReport> {
    requirePermission(principal, "cluster:write");
    for (let attempt = 0; attempt < STOP_ATTEMPTS_MAX; attempt++) {
      const found = await this.#open(principal.tenant);
      if (!found) throw new AppError("not_found", "No scrub is under way.");
      const endedMs = this.#with.runtime.clock.nowMs();
      const stopped = await this.#journal.decide(found, { state: "stopped", message: "", endedMs });
      if (!stopped) continue;
      this.#carried.get(stopped.open.id)?.abort();
      return this.#settle(stopped.open);
    }
    throw new AppError("unavailable", "The scrub could not be stopped. Try again.");
  }

  /** Continues scrubs whose controller is gone; see `Area.maintain`. */
  async maintain(tenant: string): Promise<void> {
    for await (const found of this.#journal.abandoned(tenant)) {
      const mine = await this.#journal.take(found);
      if (mine) this.#start(mine);
    }
    const last = await this.#last(tenant);
    this.#sinceMs.set(tenant, last?.doneMs ?? (await this.#with.bornMs(tenant)));
  }

  leave(tenant: string): void {
    this.#sinceMs.delete(tenant);
  }

  /** Time since the longest waiting tenant was scrubbed, as of the last maintenance. */
  get longestAgeMs(): number {
    const nowMs = this.#with.runtime.clock.nowMs();
    return Math.max(0, ...[...this.#sinceMs.values()].map((sinceMs) => nowMs - sinceMs));
  }

  /** Resolves when no scrub runs here. */
  async settled(): Promise<void> {
    await this.#journal.inFlight.settled();
  }

  async close(): Promise<void> {
    await this.#journal.inFlight.close();
  }

  #start(mine: VersionedScrub): void {
    const { id, tenant } = mine.open;
    const carried = new AbortController();
    this.#carried.set(id, carried);
    const running = this.#journal.inFlight.carry([id], async () => {
      const of = { ...this.#with, journal: this.#journal, stopped: carried.signal };
      const ended = await new ScrubRun(mine, of).run().finally(() => this.#carried.delete(id));
      if (ended) await this.#settle(ended);
    });
    running.catch((error: unknown) => this.#with.runtime.log.error({ err: error, tenant }, "a scrub broke off"));
  }

  /** Idempotent. */
  async #settle(open: OpenScrub): Promise<ScrubReport> {
    const { kv } = await this.#with.stores.tenant(open.tenant);
    const report = reportOf(open);
    const doneMs = open.end?.state === "done" ? open.end.endedMs : (await this.#last(open.tenant))?.doneMs;
    await kv.put(LAST_KEY, encodeJson({ report, ...(doneMs !== undefined && { doneMs }) } satisfies Last));
    await this.#journal.end(open);
    const { looked, missing, superfluous, damaged, state } = report;
    const log = damaged > 0 ? "error" : "info";
    this.#with.runtime.log[log](
      { tenant: open.tenant, state, looked, missing, superfluous, damaged },
      "a scrub has ended",
    );
    return report;
  }

  async #open(tenant: string): Promise<VersionedScrub | undefined> {
    for await (const found of this.#journal.all(tenant)) if (found.open.end === undefined) return found;
    return undefined;
  }

  async #last(tenant: string): Promise<Partial<Last> | undefined> {
    const entry = await (await this.#with.stores.tenant(tenant)).kv.get(LAST_KEY);
    return entry && decodeStored<Partial<Last>>(entry.value);
  }
}

function underWay(): AppError {
  return new AppError("conflict", "A scrub is under way: `odp scrub --status` tells how far it is.");
}

function reportOf(open: OpenScrub): ScrubReport {
  const { id, user, startedMs, rate, step, looked, bytes, missing, superfluous, damaged, examples, end } = open;
  return {
    id,
    user,
    state: end?.state ?? "running",
    message: end?.message ?? "",
    startedMs,
    ...(end && { endedMs: end.endedMs }),
    rate,
    step,
    looked,
    bytes,
    missing,
    superfluous,
    damaged,
    examples,
  };
}
