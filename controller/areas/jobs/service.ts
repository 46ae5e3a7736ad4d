import type { JobChange, JobInput, JobRecord } from "../../../common/api/jobs.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { newStamp, requireExpected, revisionOf, type Expected } from "../../../common/revisions.ts";
import { requireSomeMember } from "../../../common/members.ts";
import { listed } from "../../../common/text/listed.ts";
import { JOB_CHANGE_ATTEMPTS_MAX, SCHEDULE_PREVIEW_MAX } from "../../../common/limits.ts";
import { nextTimes, parseSchedule, type Schedule } from "../../../common/schedule/index.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Hosts, HostTargets } from "../hosts/index.ts";
import type { Objects, VisibleRecords } from "../objects/index.ts";
import { allows, requireAllOwnGrants, requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { JOB_DEFINITION_PATH } from "./classes.ts";
import { changedJob, emptyJob, saysWhatIsExecuted } from "./definitions/definition.ts";
import { absentHosts } from "./definitions/absent-hosts.ts";
import { withoutEffect } from "./definitions/effects.ts";
import { formatJobName, isSystemDir, jobName, parseJobName, type JobName } from "./definitions/names.ts";
import { authorOf, JobStore, type StoredJob } from "./store.ts";
import { SYSTEM_JOBS, systemJobOf } from "./definitions/system-jobs.ts";

/** The path `/job/sync` is a call of the interface. So no job outside of a folder may have this name. */
const SYNC = "sync";

export interface SavedJob {
  readonly job: JobRecord;
  /** Parts of the definition that have no effect, and hosts that are not there now; one sentence each. */
  readonly warnings: readonly string[];
}

interface Change {
  /** Makes the new definition from the stored one; `before` is undefined if there is none. */
  readonly make: (before: StoredJob | undefined) => StoredJob;
  /** True if the change makes the principal the author, with whose rights the schedule and the scripts run. */
  readonly adopts: boolean;
  readonly expected?: Expected | undefined;
}

interface JobServiceDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "visible">;
  readonly targets: Pick<HostTargets, "hosts">;
  /** Absent: definitions have no warning of hosts that do not exist. */
  readonly hosts?: Pick<Hosts, "exists">;
  /** Time zone of schedules that name none; UTC when absent. */
  readonly zone?: string;
}

/** Definitions of jobs. */
export class JobService {
  readonly #store: JobStore;
  readonly #runtime: Runtime;
  readonly #objects: Pick<Objects, "visible">;
  readonly #targets: Pick<HostTargets, "hosts">;
  readonly #hosts: Pick<Hosts, "exists"> | undefined;
  readonly #zone: string;

  constructor(dependencies: JobServiceDependencies) {
    this.#objects = dependencies.objects;
    this.#targets = dependencies.targets;
    this.#hosts = dependencies.hosts;
    this.#zone = dependencies.zone ?? "UTC";
    this.#store = new JobStore(dependencies.stores);
    this.#runtime = dependencies.runtime;
  }

  /** Adds the job, or replaces the one of that name. `AppError("conflict")` if another write came first. */
  async save(principal: Principal, input: JobInput, expected?: Expected): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    const name = definableName(input);
    const make: Change["make"] = (before) => changedJob(this.#new(principal, name, before), input);
    const change = { make, adopts: true, expected };
    // After a lost race the expected state is checked again.
    if (expected !== undefined) return this.#change(principal, name, change);
    const saved = await this.#write(principal, name, change);
    if (!saved) throw changedMeanwhile(name);
    return saved;
  }

  /** Changes the given members. `AppError("not_found")` if the job does not exist or the principal does not see it. */
  async edit(principal: Principal, change: JobChange, expected?: Expected): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    const name = definableName(change);
    await this.visible(principal, formatJobName(name));
    const make: Change["make"] = (before) => {
      if (!before) throw unknownJob(formatJobName(name));
      return changedJob(before, change);
    };
    return this.#change(principal, name, { make, adopts: saysWhatIsExecuted(change), expected });
  }

  /** Like `edit`, for a full name. `AppError("invalid")` if the change names no member. */
  async patch(
    principal: Principal,
    fullName: string,
    change: Omit<JobChange, "name" | "dir">,
    expected?: Expected,
  ): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    requireSomeMember(change, `the job ${fullName}`);
    const { name, dir } = await this.visible(principal, fullName);
    return this.edit(principal, { ...change, name, dir }, expected);
  }

  /** Like `edit`, but adds the job if it is missing. A new job needs an `exec`. */
  async merge(principal: Principal, change: JobChange, expected?: Expected): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    const name = definableName(change);
    const make: Change["make"] = (before) => changedJob(before ?? this.#new(principal, name), change);
    return this.#change(principal, name, { make, adopts: saysWhatIsExecuted(change), expected });
  }

  /** Sets whether schedules start the job. It can always be started on request. */
  async enable(principal: Principal, fullName: string, enable: boolean): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    return this.patch(principal, fullName, { enable: enable ? 1 : 0 });
  }

  /** True if the job exists and the principal sees it. */
  async exists(principal: Principal, fullName: string): Promise<boolean> {
    requirePermission(principal, "jobs:read");
    try {
      await this.visible(principal, fullName);
      return true;
    } catch (error) {
      if (isAppError(error, "not_found")) return false;
      throw error;
    }
  }

  /** The jobs that the principal may see, without hidden members. */
  async list(principal: Principal): Promise<readonly JobRecord[]> {
    requirePermission(principal, "jobs:read");
    const { sees, shown } = await this.#filter(principal);
    return (await this.all(principal)).filter((job) => sees(job)).map((job) => this.#withNext(shown(job)));
  }

  /** All jobs, for the class of jobs. Queries apply the rules for rows and columns to them. */
  async all(principal: Principal): Promise<readonly JobRecord[]> {
    requirePermission(principal, "jobs:read");
    return [...(await this.#store.definitions(principal.tenant)), ...SYSTEM_JOBS].map((job) => record(principal, job));
  }

  /** Warnings about schedules that stop when the user is deleted. Names only jobs that the principal may see. */
  async endsWith(principal: Principal, username: string): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    if (!allows(principal, "jobs:read")) return [];
    const { sees } = await this.#filter(principal);
    const own = (await this.#store.definitions(principal.tenant)).filter(
      (job) => job.schedule !== "" && authorOf(job) === username && sees(record(principal, job)),
    );
    if (own.length === 0) return [];
    return [`Schedules stop until another user saves them: ${listed(own.map(formatJobName))}.`];
  }

  async get(principal: Principal, fullName: string): Promise<JobRecord> {
    requirePermission(principal, "jobs:read");
    const { shown } = await this.#filter(principal);
    return this.#withNext(shown(record(principal, await this.visible(principal, fullName))));
  }

  /**
   * Changes the tags of a job. Concurrent changes of other members are kept. `AppError("not_found")` if the job does
   * not exist or the principal does not see it.
   */
  async retag(
    principal: Principal,
    fullName: string,
    change: (tags: readonly string[]) => readonly string[],
  ): Promise<void> {
    requirePermission(principal, "jobs:write");
    const { name, dir } = await this.visible(principal, fullName);
    refuseSystem({ name, dir });
    const make: Change["make"] = (before) => {
      if (!before) throw unknownJob(fullName);
      return { ...before, tag: change(before.tag) };
    };
    await this.#change(principal, { name, dir }, { make, adopts: false });
  }

  async remove(principal: Principal, fullName: string, expected?: Expected): Promise<void> {
    requirePermission(principal, "jobs:write");
    const name = formatJobName(await this.visible(principal, fullName));
    refuseSystem(parseJobName(name));
    for (let attempt = 0; attempt < JOB_CHANGE_ATTEMPTS_MAX; attempt++) {
      const existing = await this.#store.definition(principal.tenant, name);
      if (existing === undefined) throw unknownJob(fullName);
      requireExpected(expected, `The job ${name}`, existing.job);
      if (await this.#store.removeDefinition(principal.tenant, name, existing.revision)) return;
      // After a lost race the expected state is checked again.
      if (expected === undefined) break;
    }
    throw changedMeanwhile(parseJobName(name));
  }

  /**
   * The stored job, for reading, changing or executing it. `AppError("not_found")` also if the principal does not see
   * it.
   */
  async visible(principal: Principal, fullName: string): Promise<StoredJob> {
    requireOneOf(principal, ["jobs:read", "jobs:write", "jobs:run"]);
    const job = await this.#find(principal.tenant, fullName);
    await this.requireVisible(principal, job);
    return job;
  }

  /** Throws the errors of `visible`, for a job that was already read. */
  async requireVisible(principal: Principal, job: StoredJob): Promise<void> {
    requireOneOf(principal, ["jobs:read", "jobs:write", "jobs:run"]);
    const { sees } = await this.#filter(principal);
    if (!sees(record(principal, job))) throw unknownJob(formatJobName(job));
  }

  /** Repeats the change if another write comes first, so that changes of other members are not lost. */
  async #change(principal: Principal, name: JobName, change: Change): Promise<SavedJob> {
    for (let attempt = 0; attempt < JOB_CHANGE_ATTEMPTS_MAX; attempt++) {
      const saved = await this.#write(principal, name, change);
      if (saved) return saved;
    }
    throw changedMeanwhile(name);
  }

  /** Writes the changed definition. `undefined`: another write came first, and nothing was changed. */
  async #write(principal: Principal, name: JobName, change: Change): Promise<SavedJob | undefined> {
    const { tenant } = principal;
    const existing = await this.#store.definition(tenant, formatJobName(name));
    const { sees, shown } = await this.#filter(principal);
    if (existing && !sees(record(principal, existing.job))) throw outsideRule(name);
    requireExpected(change.expected, `The job ${formatJobName(name)}`, existing?.job);
    const job = this.#changed(principal, change, existing?.job);
    if (!sees(record(principal, job))) throw outsideRule(name);
    const absent = await absentHosts({ targets: this.#targets, hosts: this.#hosts }, principal, job);
    const written = await this.#store.putDefinition(tenant, formatJobName(name), {
      job,
      ifRevision: existing?.revision ?? 0,
    });
    if (!written) return undefined;
    return {
      job: this.#withNext(shown(record(principal, job))),
      warnings: [...this.#unreached(job), ...withoutEffect(job), ...absent],
    };
  }

  #changed(principal: Principal, { make, adopts }: Change, before: StoredJob | undefined): StoredJob {
    const nowMs = this.#runtime.clock.nowMs();
    const job = make(before);
    const isSet = job.schedule !== before?.schedule;
    if (isSet) this.#checkSchedule(job.schedule, nowMs);
    const isStarted = isSet || (job.enable !== 0 && before.enable === 0);
    if ((adopts || isSet) && job.schedule !== "") requireAllOwnGrants(principal);
    const savedBy = adopts || before?.savedBy === undefined ? principal.user : before.savedBy;
    const scheduledMs = isStarted ? nowMs : (before.scheduledMs ?? nowMs);
    return { ...job, savedBy, scheduledMs, changedMs: nowMs, stamp: newStamp(principal.user, this.#runtime) };
  }

  #checkSchedule(text: string, nowMs: number): void {
    const schedule = parseSchedule(text, this.#zone);
    if (!schedule || schedule.next(nowMs) !== undefined || isOnce(text)) return;
    throw new AppError("invalid", `The times of the schedule ${JSON.stringify(text)} never come.`);
  }

  #unreached({ schedule }: StoredJob): readonly string[] {
    return isOnce(schedule) && this.#nextOf(schedule).length === 0
      ? ["The time of the schedule is over: it starts the job no more."]
      : [];
  }

  #withNext<T extends Partial<JobRecord>>(job: T): T {
    const next = job.schedule === undefined || job.enable === 0 ? [] : this.#nextOf(job.schedule);
    return next.length === 0 ? job : { ...job, next: [...next] };
  }

  #nextOf(text: string): readonly number[] {
    const schedule = readable(text, this.#zone);
    return schedule ? nextTimes(schedule, this.#runtime.clock.nowMs(), SCHEDULE_PREVIEW_MAX) : [];
  }

  #new(principal: Principal, name: JobName, before?: StoredJob): StoredJob {
    const { createdMs = this.#runtime.clock.nowMs(), creator = principal.user } = before ?? {};
    return { ...emptyJob(name), createdMs, creator };
  }

  #filter(principal: Principal): Promise<VisibleRecords> {
    return this.#objects.visible.records(principal, `${principal.ospace}${JOB_DEFINITION_PATH}`);
  }

  async #find(tenant: string, fullName: string): Promise<StoredJob> {
    const name = formatted(fullName);
    const ofPlatform = name === undefined ? undefined : systemJobOf(name);
    if (ofPlatform) return ofPlatform;
    const found = name === undefined ? undefined : await this.#store.definition(tenant, name);
    if (found === undefined) throw unknownJob(fullName);
    return found.job;
  }
}

function isOnce(schedule: string): boolean {
  return /^\s*at\s/.test(schedule);
}

/** The parsed schedule. `undefined` also for an invalid text, which older versions could store. */
function readable(text: string, zone: string): Schedule | undefined {
  try {
    return parseSchedule(text, zone);
  } catch (error) {
    if (isAppError(error, "invalid", "too_large")) return undefined;
    throw error;
  }
}

/** The normal form of a full name. `undefined` for a text that cannot be the name of a job. */
function formatted(fullName: string): string | undefined {
  try {
    return formatJobName(parseJobName(fullName));
  } catch (error) {
    if (isAppError(error, "invalid")) return undefined;
    throw error;
  }
}

function record(
  principal: Principal,
  { createdMs, changedMs, savedBy: _by, scheduledMs: _since, stamp, ...job }: StoredJob,
): JobRecord {
  const fullname = formatJobName(job);
  return {
    ...job,
    retry: job.retry ?? 0,
    retrydelay: job.retrydelay ?? 0,
    keep: job.keep ?? 0,
    keepdays: job.keepdays ?? 0,
    user: job.user ?? "",
    host: [...job.host],
    exec: [...job.exec],
    arg: [...job.arg],
    tag: [...job.tag],
    id: `jobdef:${fullname}`,
    class: `${principal.ospace}${JOB_DEFINITION_PATH}`,
    fullname,
    system: isSystemDir(job.dir),
    created: createdMs,
    changed: changedMs,
    revision: revisionOf({ stamp }),
  };
}

/**
 * The name of a job to be defined. Throws for a name under which the job could not be called, and for a name in the
 * folder of the platform's jobs.
 */
function definableName(input: Pick<JobChange, "name" | "dir">): JobName {
  const name = jobName(input.name, input.dir ?? "");
  refuseSystem(name);
  if (formatJobName(name) === SYNC)
    throw new AppError("invalid", `/job/${SYNC} means something else: a job of this name needs a dir.`);
  return name;
}

function refuseSystem({ name, dir }: JobName): void {
  if (isSystemDir(dir))
    throw new AppError("denied", `The job ${formatJobName({ name, dir })} belongs to the platform.`);
}

function outsideRule(name: JobName): AppError {
  return new AppError("denied", `The job ${formatJobName(name)} is not among the jobs that this user may change.`);
}

function unknownJob(fullName: string): AppError {
  return new AppError("not_found", `There is no job ${fullName}.`);
}

function changedMeanwhile(name: JobName): AppError {
  return new AppError("conflict", `The job ${formatJobName(name)} was changed by somebody else meanwhile; try again.`);
}
