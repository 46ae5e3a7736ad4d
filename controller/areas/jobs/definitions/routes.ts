import { Type } from "typebox";
import { JobChange, JobInput, JobList, JobPatch, JobRecord, JobSelect } from "../../../../common/api/jobs.ts";
import { endpoint, type Answer, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { JobService, SavedJob } from "../service.ts";

export function definitionRoutes(jobs: JobService): readonly Endpoint[] {
  return [...readingRoutes(jobs), ...writingRoutes(jobs), switchRoute(jobs, true), switchRoute(jobs, false)];
}

function readingRoutes(jobs: JobService): readonly Endpoint[] {
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
      method: "GET",
      path: "/job/exist/*",
      permission: "jobs:read",
      summary: "Whether there is a job <name>@<dir>",
      input: JobSelect,
      output: Type.Boolean(),
      handler: async ({ principal, input }) => ({ message: await jobs.exists(principal, input["*"]) }),
    }),
    endpoint({
      method: "GET",
      path: "/job/sync",
      permission: "jobs:read",
      summary: "How many jobs there are; what MQL shows of them is always what is stored",
      input: JobList,
      output: Type.Integer(),
      handler: async ({ principal }) => ({ message: (await jobs.list(principal)).length }),
    }),
  ];
}

function writingRoutes(jobs: JobService): readonly Endpoint[] {
  const writing = { permission: "jobs:write", body: "form", output: JobRecord, revised: true } as const;
  return [
    endpoint({
      ...writing,
      method: "POST",
      path: "/job",
      summary: "Adds a job, or replaces the one of that name",
      input: JobInput,
      handler: async ({ principal, input, expected }) => answerOf(await jobs.save(principal, input, expected)),
    }),
    endpoint({
      ...writing,
      method: "PUT",
      path: "/job",
      summary: "Changes the members that are sent",
      input: JobChange,
      handler: async ({ principal, input, expected }) => answerOf(await jobs.edit(principal, input, expected)),
    }),
    endpoint({
      ...writing,
      method: "POST",
      path: "/job/merge",
      summary: "Changes the members that are sent; adds a job that is not there",
      input: JobChange,
      handler: async ({ principal, input, expected }) => answerOf(await jobs.merge(principal, input, expected)),
    }),
    endpoint({
      ...writing,
      method: "PATCH",
      path: "/job/*",
      summary: "Changes the members that are sent of the job <name>@<dir>",
      input: JobPatch,
      handler: async ({ principal, input: { "*": fullName, ...change }, expected }) =>
        answerOf(await jobs.patch(principal, fullName, change, expected)),
    }),
    endpoint({
      method: "DELETE",
      path: "/job/*",
      permission: "jobs:write",
      summary: "Deletes the job <name>@<dir>",
      input: JobSelect,
      output: Type.String(),
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await jobs.remove(principal, input["*"], expected);
        return { message: "", revision: undefined };
      },
    }),
  ];
}

function answerOf({ job, warnings }: SavedJob): Answer<JobRecord> {
  return { message: job, warnings, revision: job.revision };
}

function switchRoute(jobs: JobService, enable: boolean): Endpoint {
  return endpoint({
    method: "GET",
    path: enable ? "/job/enable/*" : "/job/disable/*",
    permission: "jobs:write",
    summary: `Schedules ${enable ? "start" : "no longer start"} the job <name>@<dir>`,
    input: JobSelect,
    output: Type.Boolean(),
    handler: async ({ principal, input }) => {
      await jobs.enable(principal, input["*"], enable);
      return { message: true };
    },
  });
}
