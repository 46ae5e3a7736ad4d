import { Type, type Static } from "typebox";
import { JobExecution, JobInput, JobList, JobRecord, JobSelect } from "../../../common/api/jobs.ts";
import { AppError, type ErrorCode } from "../../../common/errors.ts";
import { endpoint, type Answer, type Call, type Endpoint } from "../../http/endpoint.ts";
import type { Audit } from "../audit/index.ts";
import type { FinalState } from "../hosts/index.ts";
import type { JobRuns } from "./runs.ts";
import type { JobService } from "./service.ts";
import type { HostRun } from "./types.ts";

export interface JobRouteDependencies {
  readonly jobs: JobService;
  readonly runs: JobRuns;
  readonly audit: Pick<Audit, "ready" | "write">;
}

export function jobRoutes(dependencies: JobRouteDependencies): readonly Endpoint[] {
  return [...definitionRoutes(dependencies), ...executionRoutes(dependencies)];
}

function definitionRoutes({ jobs }: JobRouteDependencies): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/job",
      permission: "jobs:read",
      summary: "Lists the jobs",
      input: JobList,
      output: Type.Array(JobRecord),
      handler: async ({ principal }) => ({ message: [...(await jobs.list(principal))] }),
    }),
    endpoint({
      method: "POST",
      path: "/job",
      permission: "jobs:write",
      summary: "Adds a job, or replaces the one of that name",
      body: "form",
      input: JobInput,
      output: JobRecord,
      handler: async ({ principal, input }) => ({ message: await jobs.save(principal, input) }),
    }),
    endpoint({
      method: "DELETE",
      path: "/job/*",
      permission: "jobs:write",
      summary: "Deletes the job <name>@<dir>",
      input: JobSelect,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await jobs.remove(principal, input["*"]);
        return { message: "" };
      },
    }),
  ];
}

function executionRoutes({ jobs, runs, audit }: JobRouteDependencies): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/job/exec/*",
      permission: "jobs:run",
      summary: "Executes the job <name>@<dir>",
      input: JobExecution,
      output: Type.Unknown(),
      handler: (call) => execute(runs, call),
    }),
    endpoint({
      method: "GET",
      path: "/job/*",
      permission: "jobs:read",
      summary: "The job <name>@<dir>; with param, its execution",
      input: JobExecution,
      output: Type.Unknown(),
      handler: async (call) => {
        const { principal, input } = call;
        if (input.param === undefined && input.receive_output === undefined)
          return { message: await jobs.get(principal, input["*"]) };
        return audited(audit, call, () => execute(runs, call));
      },
    }),
  ];
}

type ExecutionCall = Call<Static<typeof JobExecution>>;

/** The output when it was asked for, else the run's id at once. */
async function execute(runs: JobRuns, { principal, input, signal }: ExecutionCall): Promise<Answer<unknown>> {
  const execution = await runs.execute(principal, input["*"], {
    ...(input.param === undefined ? {} : { param: input.param }),
    ...(input.timeout === undefined ? {} : { timeoutSeconds: input.timeout }),
  });
  const { runId } = execution;
  if (!input.receive_output) return { message: runId, meta: { runid: runId } };
  const finished = await untilAborted(execution.finished, signal, runId);
  const meta = {
    runid: runId,
    runs: finished.map(({ host, state, code, message }) => ({ host, state, code, message })),
  };
  return { message: outputOf(finished), meta };
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal, runId: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = (): void =>
      reject(new AppError("deadline", `The job run ${runId} goes on, but this call no longer waits for its output.`));
    if (signal.aborted) return gone();
    signal.addEventListener("abort", gone, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", gone));
  });
}

const CODE_OF_STATE: Readonly<Record<Exclude<FinalState, "ok">, ErrorCode>> = {
  failed: "unavailable",
  timeout: "deadline",
  unreachable: "unavailable",
  cancelled: "cancelled",
  expired: "deadline",
};

/** Of one host its output as it is, also of a command that ended with an exit code; of several one block each. */
function outputOf(runs: readonly HostRun[]): string {
  const [only] = runs;
  if (only === undefined || runs.length > 1)
    return runs.map((run) => `# ${run.host}: ${run.state}\n${run.output || run.message}`).join("\n");
  if (only.state === "ok" || (only.state === "failed" && only.code !== undefined)) return only.output || only.message;
  throw new AppError(
    CODE_OF_STATE[only.state],
    `${only.host}: ${only.state}: ${only.message}${only.output === "" ? "" : `\n${only.output}`}`,
  );
}

/** This route reads by its permission, so that nobody else writes the record of what it makes happen. */
async function audited(
  audit: Pick<Audit, "ready" | "write">,
  { principal, input, client }: ExecutionCall,
  work: () => Promise<Answer<unknown>>,
): Promise<Answer<unknown>> {
  const entry = {
    tenant: principal.tenant,
    user: principal.user,
    permission: "jobs:run",
    action: `GET /job/${input["*"]}`,
    remote: client.remote,
    traceparent: principal.traceparent,
  };
  await audit.ready(principal.tenant);
  try {
    const answer = await work();
    await audit.write({ ...entry, outcome: "ok", code: "" });
    return answer;
  } catch (error) {
    const code = error instanceof AppError ? error.code : "internal";
    await audit.write({ ...entry, outcome: code === "denied" ? "denied" : "failed", code });
    throw error;
  }
}
