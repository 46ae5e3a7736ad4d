import { Type } from "typebox";
import { JobBatch, JobChange, JobInput } from "../../../common/api/jobs.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostFunction, type HostObject, membersOf } from "../../scripting/index.ts";
import { requirePermission } from "../permissions/index.ts";
import type { Query } from "../query/index.ts";
import { runBatch } from "./runs/batch.ts";
import { JOB_RUN_PATH } from "./classes.ts";
import { contextFunctions } from "./context/host-contexts.ts";
import type { JobContexts } from "./context/contexts.ts";
import type { JobGroups } from "./groups/groups.ts";
import { endOf, outputOf, untilAborted } from "./history/answers.ts";
import type { RunCancelling } from "./runs/cancelling.ts";
import type { RunRetrying } from "./runs/retrying.ts";
import type { JobRuns } from "./runs/runs.ts";
import type { JobService } from "./service.ts";

export interface JobHostParts {
  readonly jobs: JobService;
  readonly runs: JobRuns;
  readonly retrying: RunRetrying;
  readonly cancelling: RunCancelling;
  readonly contexts: JobContexts;
  readonly groups: JobGroups;
  readonly query: Pick<Query, "rows">;
}

const NAME = { name: "name", schema: Type.String({ description: "<name>@<dir>" }) } as const;
const JOB = { name: "job", schema: Type.Object({}, { description: "Its members, as POST /job takes them" }) } as const;
const RUN = [
  NAME,
  {
    name: "param",
    schema: Type.Object(
      {},
      { description: "HOST! for another host, STDIN! for the standard input, timeout; the rest is the environment" },
    ),
    optional: true,
  },
  { name: "timeout", schema: Type.Integer({ minimum: 1, description: "Seconds" }), optional: true },
] as const;
const MADE = 'job.define({ name: "example", dir: "demo", exec: ["date"], host: ["web-1"] }); ';

/** `job`: definitions, executions and contexts of jobs. */
export function jobHostObject(parts: JobHostParts): HostObject {
  return {
    name: "job",
    summary: "Jobs, their executions and their contexts, with the rights of the script",
    functions: [
      ...reading(parts),
      ...defining(parts),
      ...executing(parts),
      ...overseeing(parts),
      ...contextFunctions(parts.contexts),
    ],
  };
}

function reading({ jobs, groups }: JobHostParts): readonly HostFunction[] {
  return [
    hostFunction({
      name: "list",
      summary: "The jobs",
      parameters: [],
      returns: "list of records of jobs",
      example: 'OUTPUT = _.pluck(job.list(), "fullname")',
      call: async ({ principal }) => valueOf(await jobs.list(principal)),
    }),
    hostFunction({
      name: "get",
      summary: "One job",
      parameters: [NAME],
      returns: "its record",
      example: `${MADE}OUTPUT = job.get("example@demo").exec`,
      call: async ({ principal }, name) => valueOf(await jobs.get(principal, name)),
    }),
    hostFunction({
      name: "exist",
      summary: "Whether there is a job",
      parameters: [NAME],
      returns: "boolean",
      example: 'OUTPUT = job.exist("none@demo")',
      call: ({ principal }, name) => jobs.exists(principal, name),
    }),
    hostFunction({
      name: "groups",
      summary: "Groups of hosts that jobs name",
      parameters: [],
      returns: "list of {name, gtype, hosts}; passwords are never told",
      example: "OUTPUT = job.groups()",
      call: async ({ principal }) => valueOf(await groups.list(principal)),
    }),
  ];
}

function defining({ jobs }: JobHostParts): readonly HostFunction[] {
  const switching = (name: "enable" | "disable", summary: string): HostFunction =>
    hostFunction({
      name,
      summary,
      parameters: [NAME],
      returns: "nothing",
      example: `${MADE}job.${name}("example@demo")`,
      changes: true,
      call: async ({ principal }, job) => {
        await jobs.enable(principal, job, name === "enable");
        return undefined;
      },
    });
  return [
    hostFunction({
      name: "define",
      summary: "Adds a job, or replaces the one of that name",
      parameters: [JOB],
      returns: "its record",
      example: MADE.trim(),
      changes: true,
      call: async ({ principal, log }, job) =>
        valueOf((await jobs.save(principal, membersOf(JobInput, job, { log }))).job),
    }),
    hostFunction({
      name: "merge",
      summary: "Changes the members that are given; adds a job that is not there",
      parameters: [JOB],
      returns: "its record",
      example: `${MADE}job.merge({ name: "example", dir: "demo", description: "an example" })`,
      changes: true,
      call: async ({ principal, log }, job) =>
        valueOf((await jobs.merge(principal, membersOf(JobChange, job, { log }))).job),
    }),
    hostFunction({
      name: "delete",
      summary: "Deletes a job",
      parameters: [NAME],
      returns: "nothing",
      example: `${MADE}job.delete("example@demo")`,
      changes: true,
      call: async ({ principal }, name) => {
        await jobs.remove(principal, name);
        return undefined;
      },
    }),
    switching("enable", "Schedules start the job"),
    switching("disable", "Schedules no longer start the job"),
  ];
}

function executing({ runs, retrying, cancelling }: JobHostParts): readonly HostFunction[] {
  return [
    hostFunction({
      name: "execute",
      summary: "Executes a job and does not wait for its end",
      parameters: RUN,
      returns: "the id of the run",
      example: `${MADE}OUTPUT = job.execute("example@demo")`,
      changes: true,
      call: async ({ principal }, ...[name, param, timeout]) =>
        (await runs.execute(principal, name, requestOf(param, timeout))).runId,
    }),
    hostFunction({
      name: "run",
      summary: "Executes a job and waits for its end, as long as the script may take; the commands go on after that",
      parameters: RUN,
      returns: "{runid, output, runs: [{host, state, code, signal, message}]}",
      example: `${MADE}try { OUTPUT = job.run("example@demo").output } catch (unreachable) { OUTPUT = unreachable.code }`,
      changes: true,
      call: async ({ principal, signal }, ...[name, param, timeout]) => {
        const { runId, finished } = await runs.execute(principal, name, requestOf(param, timeout));
        const ended = await untilAborted(finished, signal, `The job run ${runId} goes on`);
        return { runid: runId, output: outputOf(ended), runs: valueOf(ended.map(endOf)) };
      },
    }),
    hostFunction({
      name: "cancel",
      summary: "Cancels a run, or its part on one host; safe to repeat",
      parameters: [
        { name: "runid", schema: Type.String({ description: "As execute answers it" }) },
        { name: "host", schema: Type.String({ description: "Only there" }), optional: true },
      ],
      returns: "whether it was not over yet",
      example: 'try { OUTPUT = job.cancel("none") } catch (unknown) { OUTPUT = unknown.code }',
      changes: true,
      call: ({ principal }, runId, host) => cancelling.cancel(principal, runId, host),
    }),
    hostFunction({
      name: "retry",
      summary: "Executes the job of an ended run again, on the hosts on which that failed; does not wait for the end",
      parameters: [
        { name: "runid", schema: Type.String({ description: "Of the run that has ended" }) },
        {
          name: "param",
          schema: Type.Object({}, { description: "As of that run: what it was given is not kept" }),
          optional: true,
        },
      ],
      returns: "the id of the new run",
      example: 'try { OUTPUT = job.retry("none") } catch (unknown) { OUTPUT = unknown.code }',
      changes: true,
      call: async ({ principal }, runId, param) =>
        (await retrying.retry(principal, runId, requestOf(param, undefined))).runId,
    }),
  ];
}

function overseeing({ runs, query }: JobHostParts): readonly HostFunction[] {
  return [
    hostFunction({
      name: "batch",
      summary: "Executes several jobs side by side; none of them when one is wrong",
      parameters: [
        { name: "batch", schema: Type.Object({}, { description: "{jobs, timeout}, as POST /job/batch takes them" }) },
      ],
      returns: "list of {name, runid, status, message}; with a timeout of 0 or more, message is the output",
      example: `${MADE}OUTPUT = job.batch({ jobs: [{ name: "example@demo" }] })[0].status`,
      changes: true,
      call: async ({ principal, signal, log }, batch) =>
        valueOf(await runBatch(runs, principal, { input: membersOf(JobBatch, batch, { log }), signal })),
    }),
    hostFunction({
      name: "status",
      summary: "What is on record of a run, by host",
      parameters: [{ name: "runid", schema: Type.String({ description: "As execute answers it" }) }],
      returns: "list of records of the run, one for each host",
      example: `${MADE}OUTPUT = _.pluck(job.status(job.execute("example@demo")), "status")`,
      call: async ({ principal }, runId) => {
        requirePermission(principal, "jobs:read");
        const text = `SELECT * FROM ${principal.ospace}${JOB_RUN_PATH} WHERE runid = ? LIMIT -1`;
        return (await query.rows(principal, text, [runId])) as Value;
      },
    }),
  ];
}

function requestOf(param: object | undefined, timeoutSeconds: number | undefined) {
  return {
    ...(param !== undefined && { param: JSON.stringify(param) }),
    ...(timeoutSeconds !== undefined && { timeoutSeconds }),
  };
}

function valueOf(answer: object): Value {
  return answer as Value;
}
