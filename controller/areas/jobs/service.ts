import type { JobChange, JobInput, JobRecord } from "../../../common/api/jobs.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { JOB_CHANGE_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Objects } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { recordFilter, type RecordFilter } from "../query/index.ts";
import { JOB_DEFINITION_PATH } from "./classes.ts";
import { changedJob, emptyJob, withoutEffect } from "./definition.ts";
import { formatJobName, isSystemDir, jobName, parseJobName, type JobName } from "./names.ts";
import { JobStore, type StoredJob } from "./store.ts";

/** Runs the command line given in `param.cmd`; always there. */
export const REMOTE_COMMAND: StoredJob = {
  ...emptyJob({ name: "remote_command", dir: "system/common" }),
  description: "Runs the command line of param.cmd on the host of param.HOST!",
  creator: "system",
};

/** What stands in the place of a job's whole name in a path of the interface. */
const SYNC = "sync";

export interface SavedJob {
  readonly job: JobRecord;
  /** What of the definition has no effect yet. */
  readonly warnings: readonly string[];
}

/** The definition to be, of the one that stands. */
type Make = (before: StoredJob | undefined) => StoredJob;

/** Definitions of jobs. */
export class JobService {
  readonly #store: JobStore;
  readonly #runtime: Runtime;
  readonly #objects: Pick<Objects, "catalog">;

  constructor(dependencies: {
    readonly stores: Stores;
    readonly runtime: Runtime;
    readonly objects: Pick<Objects, "catalog">;
  }) {
    this.#objects = dependencies.objects;
    this.#store = new JobStore(dependencies.stores);
    this.#runtime = dependencies.runtime;
  }

  /** Adds the job, or replaces the one of that name; `AppError("conflict")` when another writer was first. */
  async save(principal: Principal, input: JobInput): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    const name = definableName(input);
    const saved = await this.#write(principal, name, (before) => changedJob(this.#new(principal, name, before), input));
    if (!saved) throw changedMeanwhile(name);
    return saved;
  }

  /** Changes the members that are given; `AppError("not_found")` when there is no such job for the principal. */
  async edit(principal: Principal, change: JobChange): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    const name = definableName(change);
    await this.visible(principal, formatJobName(name));
    return this.#change(principal, name, (before) => {
      if (!before) throw unknownJob(formatJobName(name));
      return changedJob(before, change);
    });
  }

  /** As `edit`; a job that is not there is added, for which it takes an `exec`. */
  async merge(principal: Principal, change: JobChange): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    const name = definableName(change);
    return this.#change(principal, name, (before) => changedJob(before ?? this.#new(principal, name), change));
  }

  /** Whether schedules start the job; on request it starts in any case. */
  async enable(principal: Principal, fullName: string, enable: boolean): Promise<SavedJob> {
    requirePermission(principal, "jobs:write");
    const { name, dir } = await this.visible(principal, fullName);
    return this.edit(principal, { name, dir, enable: enable ? 1 : 0 });
  }

  /** Whether there is such a job for the principal. */
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

  /** Those there are for the principal, without what is hidden from it. */
  async list(principal: Principal): Promise<readonly JobRecord[]> {
    requirePermission(principal, "jobs:read");
    const { sees, shown } = await this.#filter(principal);
    return (await this.all(principal)).filter((job) => sees(job)).map(shown);
  }

  /** For the class of jobs, over which the rules for rows and columns are laid where it is queried. */
  async all(principal: Principal): Promise<readonly JobRecord[]> {
    requirePermission(principal, "jobs:read");
    return [...(await this.#store.definitions(principal.tenant)), REMOTE_COMMAND].map((job) => record(principal, job));
  }

  async get(principal: Principal, fullName: string): Promise<JobRecord> {
    requirePermission(principal, "jobs:read");
    const { shown } = await this.#filter(principal);
    return shown(record(principal, await this.visible(principal, fullName)));
  }

  /** Beside others that do; `AppError("not_found")`. */
  async retag(
    principal: Principal,
    fullName: string,
    change: (tags: readonly string[]) => readonly string[],
  ): Promise<void> {
    requirePermission(principal, "jobs:write");
    const { name, dir } = await this.visible(principal, fullName);
    refuseSystem({ name, dir });
    await this.#change(principal, { name, dir }, (before) => {
      if (!before) throw unknownJob(fullName);
      return { ...before, tag: change(before.tag) };
    });
  }

  async remove(principal: Principal, fullName: string): Promise<void> {
    requirePermission(principal, "jobs:write");
    const name = formatJobName(await this.visible(principal, fullName));
    refuseSystem(parseJobName(name));
    const existing = await this.#store.definition(principal.tenant, name);
    if (existing === undefined) throw unknownJob(fullName);
    if (!(await this.#store.removeDefinition(principal.tenant, name, existing.revision)))
      throw changedMeanwhile(parseJobName(name));
  }

  /** As it is stored, for reading, changing and executing. `AppError("not_found")` also when it is none for the principal. */
  async visible(principal: Principal, fullName: string): Promise<StoredJob> {
    requireOneOf(principal, ["jobs:read", "jobs:write", "jobs:run"]);
    const job = await this.#find(principal.tenant, fullName);
    const { sees } = await this.#filter(principal);
    if (!sees(record(principal, job))) throw unknownJob(fullName);
    return job;
  }

  /** Again while others change the same job, so that of several changes to different members none is lost. */
  async #change(principal: Principal, name: JobName, make: Make): Promise<SavedJob> {
    for (let attempt = 0; attempt < JOB_CHANGE_ATTEMPTS_MAX; attempt++) {
      const saved = await this.#write(principal, name, make);
      if (saved) return saved;
    }
    throw changedMeanwhile(name);
  }

  /** `undefined`: another writer was first, nothing was changed. */
  async #write(principal: Principal, name: JobName, make: Make): Promise<SavedJob | undefined> {
    const { tenant } = principal;
    const existing = await this.#store.definition(tenant, formatJobName(name));
    const { sees, shown } = await this.#filter(principal);
    if (existing && !sees(record(principal, existing.job))) throw outsideRule(name);
    const job: StoredJob = { ...make(existing?.job), changedMs: this.#runtime.clock.nowMs() };
    if (!sees(record(principal, job))) throw outsideRule(name);
    const written = await this.#store.putDefinition(tenant, formatJobName(name), {
      job,
      ifRevision: existing?.revision ?? 0,
    });
    return written ? { job: shown(record(principal, job)), warnings: withoutEffect(job) } : undefined;
  }

  #new(principal: Principal, name: JobName, before?: StoredJob): StoredJob {
    const { createdMs = this.#runtime.clock.nowMs(), creator = principal.user } = before ?? {};
    return { ...emptyJob(name), createdMs, creator };
  }

  #filter(principal: Principal): Promise<RecordFilter> {
    return recordFilter(principal, this.#objects, `${principal.ospace}${JOB_DEFINITION_PATH}`);
  }

  async #find(tenant: string, fullName: string): Promise<StoredJob> {
    const name = formatted(fullName);
    if (name === formatJobName(REMOTE_COMMAND)) return REMOTE_COMMAND;
    const found = name === undefined ? undefined : await this.#store.definition(tenant, name);
    if (found === undefined) throw unknownJob(fullName);
    return found.job;
  }
}

/** `undefined` for what cannot be a job's name. */
function formatted(fullName: string): string | undefined {
  try {
    return formatJobName(parseJobName(fullName));
  } catch (error) {
    if (isAppError(error, "invalid")) return undefined;
    throw error;
  }
}

function record(principal: Principal, { createdMs, changedMs, ...job }: StoredJob): JobRecord {
  const fullname = formatJobName(job);
  return {
    ...job,
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
  };
}

/** Refuses names under which the job could not be reached, and those of the platform. */
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
