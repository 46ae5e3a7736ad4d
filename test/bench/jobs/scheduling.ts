import { Firings, jobClasses, JobRuns, JobScheduler, JobService } from "../../../controller/areas/jobs/index.ts";
import { formatJobName } from "../../../controller/areas/jobs/definitions/names.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import type { KvStore } from "../../../controller/store/kv.ts";
import { realClock } from "../../helpers/time/clock.ts";
import { openBenchEngine } from "../driver/engine.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../helpers/time/runtime.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";
import { NAMED_HOSTS } from "../../helpers/hosts/named-hosts.ts";

const principal = testPrincipal();

interface Watched {
  /** Called when the command of a run is given to its host, which answers at once. */
  readonly began?: (runId: string) => void;
  /** Called when the run of a job is on record. */
  readonly fired?: (name: string) => void;
  /** Called when the scheduler receives the due time of a job. */
  readonly due?: (name: string, atMs: number | undefined) => void;
}

/** The parts of a controller that fire schedules, as a library on embedded. */
export interface Scheduling extends AsyncDisposable {
  readonly kv: KvStore;
  readonly scheduler: Pick<JobScheduler, "start">;
  define(job: Parameters<JobService["save"]>[1]): Promise<unknown>;
}

export async function openScheduling({ began, fired, due }: Watched): Promise<Scheduling> {
  const engine = await openBenchEngine();
  const random = { next: Math.random, bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) };
  const runtime = { ...testRuntime(realClock), random };
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const jobs = new JobService({ targets: NAMED_HOSTS, stores: engine, runtime, objects });
  for (const definition of jobClasses(jobs)) objects.registerSystemClass(definition);
  const runs = new JobRuns({
    targets: NAMED_HOSTS,
    ...{ stores: engine, runtime, jobs, objects, secrets: TEST_SECRETS },
    hosts: {
      dispatch: (_principal, host, _command, { commandId = "" }) => {
        began?.(commandId);
        return Promise.resolve({ host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: 2 });
      },
    },
    stored: { outcome: () => Promise.resolve(undefined) },
    notifications: { publish: () => undefined },
    controllers: { own: "bench", has: () => true },
  });
  const firings = new Firings({
    ...{ stores: engine, runtime, endings: runs.endings, zone: "UTC" },
    authors: { present: () => Promise.resolve(principal) },
    ospaceOf: () => Promise.resolve("/matrix"),
    runs: {
      goesOn: (tenant, runId) => runs.goesOn(tenant, runId),
      fire: async (who, job, firing) => {
        const isBegun = await runs.fire(who, job, firing);
        fired?.(formatJobName(job));
        return isBegun;
      },
    },
  });
  const noted = (name: string, atMs: number | undefined): number | undefined => {
    due?.(name, atMs);
    return atMs;
  };
  const scheduler = new JobScheduler({
    ...{ stores: engine, runtime, controllers: { own: "bench" } },
    tenants: { list: () => Promise.resolve([{ name: "matrix" }]) },
    firings: {
      attend: async (tenant, name) => noted(name, await firings.attend(tenant, name)),
      firstMs: (name, job, state) => noted(name, firings.firstMs(name, job, state)),
    },
  });
  return {
    kv: (await engine.tenant("matrix")).kv,
    scheduler,
    define: (job) => jobs.save(principal, job),
    [Symbol.asyncDispose]: async () => {
      await scheduler.stop();
      await runs.close();
      await objects.close();
      await engine[Symbol.asyncDispose]();
    },
  };
}
