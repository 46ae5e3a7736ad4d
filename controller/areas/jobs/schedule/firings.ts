import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { parseSchedule, type Schedule } from "../../../../common/schedule/index.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvTxn } from "../../../store/kv.ts";
import { txnOnce } from "../../../store/once.ts";
import { dueOf } from "./due.ts";
import type { RunEndings } from "../runs/endings.ts";
import type { JobRuns } from "../runs/runs.ts";
import { authorOf, definitionKey, JobStore, scheduleKey, type StoredJob } from "../store.ts";
import type { Authors } from "../types.ts";

/** State of the schedule of a job. KvStore: `jobs/schedule/<name>@<dir>`. */
export interface ScheduleState {
  /** All times up to this one have been decided. */
  readonly decidedMs: number;
  /** The last run. Present if the next run must be skipped while this one continues. */
  readonly runId?: string;
}

export interface FiringDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly runs: Pick<JobRuns, "fire" | "goesOn">;
  readonly endings: Pick<RunEndings, "note">;
  readonly authors: Authors;
  readonly ospaceOf: (tenant: string) => Promise<string>;
  readonly zone: string;
}

/** A definition and the state of its schedule, as read together. */
interface Found {
  readonly tenant: string;
  readonly name: string;
  readonly job: StoredJob;
  readonly revision: number;
  readonly state: ScheduleState | undefined;
  readonly stateRevision: number;
}

/** Codes of errors after which the run is left out and not tried again. */
const DEFINITE = ["denied", "invalid", "not_found", "unsupported", "too_large", "limited"] as const;

/**
 * Decides which scheduled runs begin. Each decision is one write, conditional on the definition and the state of its
 * schedule as they were read. The same write stores the run. So even if a controller is late, or two controllers fire
 * at once, nothing is decided twice.
 */
export class Firings {
  readonly #with: FiringDependencies;
  readonly #store: JobStore;

  constructor(dependencies: FiringDependencies) {
    this.#with = dependencies;
    this.#store = new JobStore(dependencies.stores);
  }

  /**
   * Makes at most one decision about a job. Answers when the next decision is due; a time in the past means at once.
   * `undefined`: none until the definition changes. If the stores fail, call it again: nothing is decided twice.
   */
  async attend(tenant: string, name: string): Promise<number | undefined> {
    const found = await this.#find(tenant, name);
    const schedule = found && found.job.enable !== 0 ? scheduleOf(found.job, this.#with.zone) : undefined;
    if (!found || !schedule) return undefined;
    const nowMs = this.#with.runtime.clock.nowMs();
    const due = dueOf(schedule, { name, afterMs: decidedMs(found), nowMs });
    if (due.kind === "wait") return due.atMs;
    if (due.kind === "skip") {
      const message = missedText(due.missedFromMs, due.untilMs);
      await this.#leaveOut(found, { dueMs: due.untilMs, status: "skipped", message });
    } else await this.#run(found, schedule, due);
    return nowMs;
  }

  /** Time of the next decision about a job. `job` and `state` must be read together. `undefined`: none. */
  firstMs(name: string, job: StoredJob, state: ScheduleState | undefined): number | undefined {
    const schedule = job.enable === 0 ? undefined : scheduleOf(job, this.#with.zone);
    if (!schedule) return undefined;
    const nowMs = this.#with.runtime.clock.nowMs();
    const due = dueOf(schedule, { name, afterMs: decidedMs({ job, state }), nowMs });
    return due.kind === "wait" ? due.atMs : nowMs;
  }

  async #run(found: Found, schedule: Schedule, due: { readonly dueMs: number; readonly missedFromMs?: number }) {
    const { tenant, job, state } = found;
    const { dueMs, missedFromMs } = due;
    const author = authorOf(job);
    const principal = await this.#with.authors.present(tenant, author);
    if (!principal) {
      const message = `The user ${author}, who saved the job, is not there any more: it runs again when another one saves it.`;
      return this.#leaveOut(found, { dueMs, status: "skipped", message });
    }
    if (schedule.overlap === "skip" && state?.runId && (await this.#with.runs.goesOn(tenant, state.runId)))
      return this.#leaveOut(found, { dueMs, status: "skipped", message: `The run ${state.runId} goes on still.` });
    const next = (runId: string): ScheduleState => ({
      decidedMs: dueMs,
      ...(schedule.overlap === "skip" && { runId }),
    });
    try {
      const ticket = (runId: string): KvTxn => this.#ticket(found, next(runId));
      const isBegun = await this.#with.runs.fire(principal, job, {
        dueMs,
        ticket,
        waits: schedule.overlap === "queue",
      });
      if (isBegun && missedFromMs !== undefined)
        await this.#note(found, {
          dueMs: missedFromMs,
          status: "skipped",
          message: missedText(missedFromMs, dueMs - 1),
        });
    } catch (error) {
      if (!isAppError(error, ...DEFINITE)) throw error;
      await this.#leaveOut(found, {
        dueMs,
        status: error instanceof AppError && error.code === "limited" ? "skipped" : "failed",
        message: errorText(error),
      });
    }
  }

  async #leaveOut(found: Found, note: Note): Promise<void> {
    const { kv } = await this.#with.stores.tenant(found.tenant);
    const { state } = found;
    const next = { decidedMs: note.dueMs, ...(state?.runId !== undefined && { runId: state.runId }) };
    if ((await txnOnce(kv, this.#ticket(found, next))).ok) await this.#note(found, note);
  }

  #ticket({ name, revision, stateRevision }: Found, next: ScheduleState): KvTxn {
    return {
      if: [
        { key: definitionKey(name), revision },
        { key: scheduleKey(name), revision: stateRevision },
      ],
      then: [{ kind: "put", key: scheduleKey(name), value: encodeJson(next) }],
    };
  }

  async #note({ tenant, name, job }: Found, { dueMs, status, message }: Note): Promise<void> {
    const { runtime, endings, ospaceOf } = this.#with;
    const { clock, random, log } = runtime;
    log.warn({ tenant, job: name, dueMs, reason: message }, "a scheduled run was left out");
    const principal = { tenant, ospace: await ospaceOf(tenant), user: authorOf(job), traceparent: "" };
    const runId = ulidOf(clock.nowMs(), random.bytes(10));
    await endings.note({ principal, name, dir: job.dir, sid: "", dueMs }, { runId, status, message });
  }

  async #find(tenant: string, name: string): Promise<Found | undefined> {
    const { kv } = await this.#with.stores.tenant(tenant);
    const [found, state] = await Promise.all([this.#store.definition(tenant, name), kv.get(scheduleKey(name))]);
    return (
      found && {
        tenant,
        name,
        ...found,
        state: state && decodeStored<ScheduleState>(state.value),
        stateRevision: state?.revision ?? 0,
      }
    );
  }
}

interface Note {
  readonly dueMs: number;
  readonly status: "skipped" | "failed";
  readonly message: string;
}

/** The parsed schedule. `undefined` also for an invalid text, which older versions could store. */
export function scheduleOf({ schedule }: Pick<StoredJob, "schedule">, zone: string): Schedule | undefined {
  try {
    return parseSchedule(schedule, zone);
  } catch (error) {
    if (isAppError(error, "invalid", "too_large")) return undefined;
    throw error;
  }
}

/** Time up to which everything is decided. A schedule that was set or enabled later starts at that later time. */
function decidedMs({ job, state }: Pick<Found, "job" | "state">): number {
  return Math.max(state?.decidedMs ?? 0, job.scheduledMs ?? job.changedMs);
}

function missedText(fromMs: number, toMs: number): string {
  const [from, to] = [fromMs, toMs].map((ms) => new Date(ms).toISOString());
  return `Its times from ${from} to ${to} were missed, and are left out as missed says.`;
}
