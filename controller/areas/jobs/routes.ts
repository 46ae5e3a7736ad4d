import { Type, type Static } from "typebox";
import { GroupInput, GroupSelect, GroupView } from "../../../common/api/job-groups.ts";
import {
  ContextDelete,
  ContextRead,
  ContextValues,
  ContextWrite,
  JobBatch,
  JobBatchEnds,
  JobCancel,
  JobExecution,
  JobOutputLine,
  JobOutputPart,
  JobOutputSelect,
  JobRetry,
  JobRunSelect,
  JobRunState,
} from "../../../common/api/jobs.ts";
import { AppError } from "../../../common/errors.ts";
import {
  HTTP_CALL_DEADLINE_MS,
  HTTP_SMALL_BODY_MAX_BYTES,
  JOB_CALL_GRACE_MS,
  JOB_MAX_S,
} from "../../../common/limits.ts";
import { reportFailed } from "../../http/answer/failed.ts";
import { endpoint, type Answer, type BareAnswers, type Call, type Endpoint } from "../../http/interface/endpoint.ts";
import { followedEvents, followOnSocket, positionOf } from "../../http/sockets/following.ts";
import { socketEndpoint, type SocketEndpoint } from "../../http/sockets/socket.ts";
import type { Audit } from "../audit/index.ts";
import { runBatch } from "./runs/batch.ts";
import type { RunCancelling } from "./runs/cancelling.ts";
import type { JobContexts } from "./context/contexts.ts";
import { definitionRoutes } from "./definitions/routes.ts";
import type { JobGroups, SavedGroup } from "./groups/groups.ts";
import type { OutputFollowing } from "./output/following.ts";
import type { JobRuns } from "./runs/runs.ts";
import { endOf, executionsOf, hostsOf, outputOf, untilAborted } from "./history/answers.ts";
import type { RunRetrying } from "./runs/retrying.ts";
import type { RunStates } from "./runs/states.ts";
import type { JobService } from "./service.ts";
import { OutputStream } from "./output/stream.ts";
import type { ExecutionRequest } from "./types.ts";

export interface JobRouteDependencies {
  readonly jobs: JobService;
  readonly runs: JobRuns;
  readonly following: OutputFollowing;
  readonly retrying: RunRetrying;
  readonly cancelling: RunCancelling;
  readonly states: RunStates;
  readonly audit: Pick<Audit, "ready" | "record">;
}

export function jobRoutes(dependencies: JobRouteDependencies): readonly Endpoint[] {
  return [
    ...definitionRoutes(dependencies.jobs),
    ...executionRoutes(dependencies),
    batchRoute(dependencies.runs),
    retryRoute(dependencies.retrying),
    cancelRoute(dependencies.cancelling),
    stateRoute(dependencies.states),
    outputRoute(dependencies),
  ];
}

const OUTPUT_PATH = "/job/output/:runid/:host";
const OUTPUT_SUMMARY = "Follows the output of a run on one host from a position until the run is over";

function outputRoute({ following }: JobRouteDependencies): Endpoint {
  return endpoint({
    method: "GET",
    path: OUTPUT_PATH,
    permission: "jobs:read",
    events: true,
    summary: OUTPUT_SUMMARY,
    input: JobOutputSelect,
    output: JobOutputPart,
    statuses: { 204: { summary: "The client has all of it" } },
    handler: async ({ principal, input: { runid: runId, host, ...part }, client, signal, present }) => {
      const position = positionOf(client.lastEventId, part.from);
      if (position === undefined) return { empty: 204 };
      // A client that reconnects continues at its last position. Its original `from`, `tail` or `lines` no longer
      // applies.
      const reader = client.lastEventId ? { ...toOf(part), from: position } : { ...part, from: position };
      const parts = await following.follow(principal, { runId, host }, { ...reader, signal, present });
      return { events: followedEvents(parts) };
    },
  });
}

function toOf({ to }: { readonly to?: number }): { readonly to?: number } {
  return to === undefined ? {} : { to };
}

export function jobSockets({ following }: Pick<JobRouteDependencies, "following">): readonly SocketEndpoint[] {
  return [
    socketEndpoint({
      path: OUTPUT_PATH,
      permission: "jobs:read",
      summary: `${OUTPUT_SUMMARY}, as JSON text frames`,
      input: JobOutputSelect,
      frames: JobOutputPart,
      open: ({ principal, input: { runid: runId, host, from = 0, ...part }, line, present }) => {
        const reader = { ...part, from, signal: line.closed, present };
        void followOnSocket(line, () => following.follow(principal, { runId, host }, reader));
      },
    }),
  ];
}

const CONTEXT_PATH = "/job/context/:sid";

export function contextRoutes(contexts: JobContexts): readonly Endpoint[] {
  const write = (method: "POST" | "PUT"): Endpoint =>
    endpoint({
      method,
      path: CONTEXT_PATH,
      permission: "jobs:run",
      commands: true,
      summary: "Set one value of a job context",
      input: ContextWrite,
      output: Type.String(),
      body: "form",
      handler: async ({ principal, input: { sid, name, value, ttl } }) => {
        await contexts.set(principal, sid, { name, value, ...(ttl !== undefined && { ttlSeconds: ttl }) });
        return { message: "" };
      },
    });
  return [
    endpoint({
      method: "GET",
      path: CONTEXT_PATH,
      permission: "jobs:read",
      commands: true,
      summary: "Values of a job context by name",
      input: ContextRead,
      output: ContextValues,
      handler: async ({ principal, input: { sid, prefix } }) => ({
        message: await contexts.read(principal, sid, prefix),
      }),
    }),
    write("POST"),
    write("PUT"),
    endpoint({
      method: "DELETE",
      path: CONTEXT_PATH,
      permission: "jobs:run",
      commands: true,
      summary: "Remove one value of a job context, or with clear all of them",
      input: ContextDelete,
      output: Type.String(),
      handler: async ({ principal, input: { sid, name, clear } }) => {
        if (clear) await contexts.clear(principal, sid);
        else if (name !== undefined) await contexts.remove(principal, sid, name);
        else throw new AppError("invalid", "Nothing is named: give name, or clear=true for the whole context.");
        return { message: "" };
      },
    }),
  ];
}

export function groupRoutes(groups: JobGroups): readonly Endpoint[] {
  const written = {
    path: "/group",
    permission: "jobs:write",
    input: GroupInput,
    output: Type.String(),
    body: "json",
    revised: true,
  } as const;
  return [
    endpoint({
      method: "GET",
      path: "/group",
      permission: "jobs:read",
      summary: "Groups of hosts that jobs name",
      input: Type.Object({}),
      output: Type.Array(GroupView),
      handler: async ({ principal }) => ({ message: [...(await groups.list(principal))] }),
    }),
    endpoint({
      ...written,
      method: "POST",
      summary: "Make a group, or replace the one of that type and name",
      handler: async ({ principal, input, expected }) => answerOf(await groups.save(principal, input, expected)),
    }),
    endpoint({
      ...written,
      method: "PUT",
      summary: "Replace the group of that type and name",
      handler: async ({ principal, input, expected }) => answerOf(await groups.replace(principal, input, expected)),
    }),
    endpoint({
      method: "DELETE",
      path: "/group/:gtype/:name",
      permission: "jobs:write",
      summary: "Remove a group",
      input: GroupSelect,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await groups.remove(principal, input, expected);
        return { message: "", revision: undefined };
      },
    }),
  ];
}

function answerOf({ group, warnings }: SavedGroup): Answer<string> {
  return { message: "", warnings, revision: group.revision };
}

function executionRoutes({ jobs, runs, audit }: JobRouteDependencies): readonly Endpoint[] {
  const executing = {
    path: "/job/exec/*",
    permission: "jobs:run",
    summary: "Executes the job <name>@<dir>",
    failsInPart: true,
    input: JobExecution,
    output: Type.Unknown(),
    bare: STREAMED,
    deadlineMs: waitsFor,
    handler: (call: ExecutionCall) => execute(runs, call),
  } as const;
  return [
    endpoint({ ...executing, method: "GET" }),
    // A standard input may be longer than a URL.
    endpoint({ ...executing, method: "POST", body: "json" }),
    endpoint({
      method: "GET",
      path: "/job/*",
      permission: "jobs:read",
      summary: "The job <name>@<dir>; with param, its execution",
      failsInPart: true,
      input: JobExecution,
      output: Type.Unknown(),
      revised: true,
      executes: isExecution,
      bare: STREAMED,
      deadlineMs: waitsFor,
      handler: async (call) => {
        const { principal, input } = call;
        if (isExecution(input)) return audited(audit, call, () => execute(runs, call));
        const job = await jobs.get(principal, input["*"]);
        return { message: job, revision: job.revision };
      },
    }),
  ];
}

type ExecutionCall = Call<Static<typeof JobExecution>>;

/** True if a call that could only read the job executes it. */
function isExecution({ param, receive_output, stream }: Static<typeof JobExecution>): boolean {
  return param !== undefined || receive_output !== undefined || stream !== undefined;
}

/**
 * Deadline of the call, in milliseconds. With `stream` the call may take as long as any run. With `receive_output` it
 * may take as long as its own `timeout`, at least `HTTP_CALL_DEADLINE_MS`.
 */
function waitsFor({ stream, receive_output, timeout = 0 }: Static<typeof JobExecution>): number {
  if (stream) return 1_000 * JOB_MAX_S + JOB_CALL_GRACE_MS;
  const runMs = receive_output ? 1_000 * Math.min(Math.max(timeout, 0), JOB_MAX_S) : 0;
  return Math.max(HTTP_CALL_DEADLINE_MS, runMs + JOB_CALL_GRACE_MS);
}

const STREAMED: BareAnswers = {
  content: { "application/x-ndjson": { summary: "With stream=true: the output as it comes", schema: JobOutputLine } },
};

/** Answers a stream of the output. If the client disconnects before the end, the commands are cancelled. */
async function streamed(runs: JobRuns, { principal, input, signal }: ExecutionCall): Promise<Answer<unknown>> {
  const output = new OutputStream();
  const execution = await runs.execute(principal, input["*"], {
    ...requestOf(input),
    signal,
    onOutput: (host, piece) => output.take(host, piece),
  });
  output.follow(execution);
  return { content: output.content, contentType: "application/x-ndjson" };
}

function requestOf(input: Pick<Static<typeof JobExecution>, "param" | "timeout">): ExecutionRequest {
  return {
    ...(input.param === undefined ? {} : { param: input.param }),
    ...(input.timeout === undefined ? {} : { timeoutSeconds: input.timeout }),
  };
}

/** Answers the output if the caller asked for it, otherwise the id of the run at once. */
async function execute(runs: JobRuns, call: ExecutionCall): Promise<Answer<unknown>> {
  const { principal, input, signal } = call;
  if (input.stream) return streamed(runs, call);
  const execution = await runs.execute(principal, input["*"], requestOf(input));
  const { runId } = execution;
  if (!input.receive_output) return { message: runId, meta: { runid: runId } };
  const finished = await untilAborted(execution.finished, signal, `The job run ${runId} goes on`);
  const meta = { runid: runId, runs: finished.map(endOf) };
  return { message: outputOf(finished), meta, ...reportFailed(hostsOf(finished), "host") };
}

function batchRoute(runs: JobRuns): Endpoint {
  return endpoint({
    method: "POST",
    path: "/job/batch",
    permission: "jobs:run",
    summary: "Executes several jobs side by side; none of them when one is wrong",
    failsInPart: true,
    body: "json",
    input: JobBatch,
    output: JobBatchEnds,
    deadlineMs: ({ timeout = -1 }) => {
      const waitsS = timeout === 0 ? JOB_MAX_S : Math.min(Math.max(timeout, 0), JOB_MAX_S);
      return Math.max(HTTP_CALL_DEADLINE_MS, 1_000 * waitsS + JOB_CALL_GRACE_MS);
    },
    handler: async ({ principal, input, signal }) => {
      const ends = await runBatch(runs, principal, { input, signal });
      return { message: ends, ...reportFailed(executionsOf(ends), "execution") };
    },
  });
}

function retryRoute(retrying: RunRetrying): Endpoint {
  return endpoint({
    method: "POST",
    path: "/job/retry/:runid",
    bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
    permission: "jobs:run",
    summary: "Executes the job again on the hosts on which a run that has ended failed; answers the id of the new run",
    body: "form",
    input: JobRetry,
    output: Type.String(),
    handler: async ({ principal, input: { runid, ...request } }) => {
      const { runId } = await retrying.retry(principal, runid, requestOf(request));
      return { message: runId, meta: { runid: runId } };
    },
  });
}

function cancelRoute(cancelling: RunCancelling): Endpoint {
  return endpoint({
    method: "POST",
    path: "/job/cancel/:runid",
    bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
    permission: "jobs:run",
    summary: "Cancels a run, or its part on one host; answers whether it was not over yet",
    body: "form",
    input: JobCancel,
    output: Type.Boolean(),
    handler: async ({ principal, input: { runid, host } }) => ({
      message: await cancelling.cancel(principal, runid, host),
    }),
  });
}

function stateRoute(states: RunStates): Endpoint {
  return endpoint({
    method: "GET",
    path: "/job/run/:runid",
    permission: "jobs:read",
    summary: "How a run stands as a whole, with all its hosts and scripts: it waits, runs, or has ended",
    input: JobRunSelect,
    output: JobRunState,
    handler: async ({ principal, input: { runid } }) => ({ message: await states.of(principal, runid) }),
  });
}

/** Writes the audit entry of an execution. Calls that need only a permission to read get no entry from other code. */
async function audited(
  audit: Pick<Audit, "ready" | "record">,
  { principal, input, client }: ExecutionCall,
  work: () => Promise<Answer<unknown>>,
): Promise<Answer<unknown>> {
  const entry = {
    tenant: principal.tenant,
    user: principal.user,
    permission: "jobs:run",
    action: `GET /job/${input["*"]}`,
    object: input["*"],
    remote: client.remote,
    traceparent: principal.traceparent,
  };
  await audit.ready(principal.tenant);
  let answer: Answer<unknown>;
  try {
    answer = await work();
  } catch (error) {
    const code = error instanceof AppError ? error.code : "internal";
    await audit.record({ ...entry, outcome: code === "denied" ? "denied" : "failed", code });
    throw error;
  }
  await audit.record({ ...entry, outcome: "ok", code: "" });
  return answer;
}
