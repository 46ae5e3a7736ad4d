import type { JobInput, JobRecord } from "../../../common/api/jobs.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { JOB_COMMANDS_MAX, JOB_HOSTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Objects } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { recordFilter, type RecordFilter } from "../query/index.ts";
import { JOB_DEFINITION_PATH } from "./classes.ts";
import { formatJobName, isSystemDir, jobName, parseJobName, type JobName } from "./names.ts";
import { JobStore, type StoredJob } from "./store.ts";

/** Runs the command line given in `param.cmd`; always there. */
export const REMOTE_COMMAND: StoredJob = {
  ...emptyJob({ name: "remote_command", dir: "system/common" }),
  description: "Runs the command line of param.cmd on the host of param.HOST!",
  creator: "system",
};

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

  /** Adds the job, or replaces the one of that name. */
  async save(principal: Principal, input: JobInput): Promise<JobRecord> {
    requirePermission(principal, "jobs:write");
    const name = jobName(input.name, input.dir ?? "");
    refuseSystem(name);
    const exec = input.exec.filter((line) => line.trim() !== "");
    if (exec.length === 0) throw new AppError("invalid", "A job needs at least one exec.");
    if (exec.length > JOB_COMMANDS_MAX)
      throw new AppError("too_large", `A job has at most ${JOB_COMMANDS_MAX} commands.`);
    const existing = await this.#store.definition(principal.tenant, formatJobName(name));
    const { sees, shown } = await this.#filter(principal);
    if (existing && !sees(record(principal, existing.job))) throw outsideRule(name);
    const nowMs = this.#runtime.clock.nowMs();
    const job: StoredJob = {
      ...emptyJob(name),
      ...given(input),
      ...name,
      exec,
      host: hostsOf(input),
      createdMs: existing?.job.createdMs ?? nowMs,
      changedMs: nowMs,
      creator: existing?.job.creator ?? principal.user,
    };
    if (!sees(record(principal, job))) throw outsideRule(name);
    const change = { job, ifRevision: existing?.revision ?? 0 };
    if (!(await this.#store.putDefinition(principal.tenant, formatJobName(name), change))) throw changedMeanwhile(name);
    return shown(record(principal, job));
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

function emptyJob(name: JobName): StoredJob {
  return {
    ...name,
    description: "",
    group: "",
    groupmode: "",
    host: [],
    begin: "",
    end: "",
    exec: [],
    arg: [],
    argenc: "",
    schedule: "",
    timeout: 0,
    algorithm: "",
    limit: 0,
    enable: 1,
    queue: "",
    tag: [],
    createdMs: 0,
    changedMs: 0,
    creator: "",
  };
}

/** The members that are really there. */
function given(input: JobInput): Partial<JobInput> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined));
}

function hostsOf(input: JobInput): readonly string[] {
  const hosts = [...new Set((input.host ?? []).map((host) => host.trim()).filter((host) => host !== ""))];
  if (hosts.length > JOB_HOSTS_MAX) throw new AppError("too_large", `A job has at most ${JOB_HOSTS_MAX} hosts.`);
  return hosts;
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
