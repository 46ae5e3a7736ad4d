import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type {
  CommandOutcome,
  DispatchOptions,
  ProxiedHost,
  HostCommand,
  Hosts,
} from "../../../controller/areas/hosts/index.ts";
import {
  jobClasses,
  JobRuns,
  JobService,
  ProxiedHosts,
  RunAccess,
  RunCancelling,
  RunRetention,
  RunRetrying,
  RunStates,
} from "../../../controller/areas/jobs/index.ts";
import type { ServerScripts } from "../../../controller/areas/jobs/runs/scripts.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { QueryService, visibleObjects } from "../../../controller/areas/query/index.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import type { BlobStore } from "../../../controller/store/blobs.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { realClock } from "../time/clock.ts";
import { openTestEngine } from "../engines/engine.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../time/runtime.ts";
import { NAMED_HOSTS } from "../hosts/named-hosts.ts";

export interface SentCommand extends DispatchOptions {
  readonly host: string;
  readonly command: HostCommand;
  readonly principal: Principal;
  /** Present if a group of type proxy declares how the host is reached. */
  readonly behind?: ProxiedHost;
}

export interface TestController {
  /** Result of a command on a host. Absent: success. */
  readonly dispatch?: (sent: SentCommand) => Partial<CommandOutcome> | Promise<Partial<CommandOutcome>>;
  /** Ids of the other controllers that it sees. */
  readonly sees?: readonly string[];
  readonly aheadMs?: number;
  readonly stores?: Stores;
  /** Address of the HTTP interface for hosts. */
  readonly address?: string;
  /** Result of a script. Absent: this controller runs no scripts. */
  readonly script?: ServerScripts["runOfJob"];
}

const WHO = testPrincipal();

/** Controllers that run jobs over shared stores, on simulated hosts. */
export async function openJobRuns() {
  const engine = await openTestEngine();
  const runtime = {
    ...testRuntime(realClock),
    random: { next: () => Math.random(), bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) },
  };
  const objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const jobs = new JobService({ targets: NAMED_HOSTS, stores: engine, runtime, objects });
  for (const definition of jobClasses(jobs)) objects.registerSystemClass(definition);
  const query = new QueryService({ objects, runtime });
  const shared = { engine, runtime, objects, jobs, query };
  const { kv, blobs } = await engine.tenant("matrix");
  const openKeys = async (runId: string): Promise<readonly string[]> => {
    const found = await Promise.all(["jobs/open/", "jobs/execution/"].map((prefix) => kv.list(prefix + runId)));
    return found.flatMap(({ entries }) => entries.map(({ key }) => key));
  };
  return {
    engine,
    objects,
    jobs,
    query,
    controller: (own: string, of: TestController = {}) => controllerOf(shared, own, of),
    openKeys,
    rowsOf: (runId: string): Promise<readonly Row[]> =>
      query.rows(WHO, "SELECT * FROM /matrix/jobs/jobrun WHERE runid = ? ORDER BY host", [runId]),
    outputOf: (runId: string, host: string) => outputOf(blobs, `jobs/${runId}/${host}`),
    async [Symbol.asyncDispose]() {
      await objects.close();
      await engine[Symbol.asyncDispose]();
    },
  };
}

interface Shared {
  readonly engine: Stores;
  readonly runtime: Runtime;
  readonly objects: ObjectService;
  readonly jobs: JobService;
  readonly query: QueryService;
}

function controllerOf({ engine, runtime, objects, jobs, query }: Shared, own: string, of: TestController) {
  const { dispatch, sees = [], aheadMs = 0, stores = engine, address, script } = of;
  const clock = hastyClock(aheadMs);
  const access = new RunAccess({ stores, runtime: { clock }, secrets: TEST_SECRETS, address });
  const hosts = simulatedHosts(dispatch);
  const retention = new RunRetention({ stores, objects, runtime });
  const runs = new JobRuns({
    targets: NAMED_HOSTS,
    retention,
    stores,
    jobs,
    objects,
    hosts,
    proxied: new ProxiedHosts({ stores, objects, runtime, hosts, secrets: TEST_SECRETS }),
    secrets: TEST_SECRETS,
    stored: { outcome: () => Promise.resolve(undefined) },
    access,
    runtime: { ...runtime, clock },
    notifications: { publish: () => undefined },
    controllers: { own, has: (id) => id === own || sees.includes(id) },
    ...(script && { scripts: { runOfJob: script }, authors: { present: () => Promise.resolve(WHO) } }),
  });
  return Object.assign(runs, {
    access,
    retention,
    retrying: new RunRetrying({ runs, query }),
    cancelling: new RunCancelling({ runs, jobs, query }),
    states: new RunStates({ stores, jobs, query }),
  });
}

/** Hosts on which every command succeeds, unless `dispatch` answers otherwise. */
function simulatedHosts(dispatch: TestController["dispatch"]): Pick<Hosts, "dispatch" | "dispatchBehind"> {
  const answer = async (sent: SentCommand): Promise<CommandOutcome> => ({
    host: sent.host,
    state: "ok",
    message: "",
    startedMs: 1,
    endedMs: 2,
    ...((await dispatch?.(sent)) ?? { code: 0 }),
  });
  return {
    dispatch: (principal, host, command, options) => answer({ ...options, host, command, principal }),
    dispatchBehind: (principal, behind, command, options) =>
      answer({ ...options, host: behind.host, behind, command, principal }),
  };
}

/** Output of the last attempt that wrote any. */
async function outputOf(blobs: BlobStore, stream: string): Promise<string> {
  let bytes: Uint8Array = new Uint8Array();
  for (let attempt = 0; attempt < 5; attempt++) {
    const part = await blobs.readStream(attempt === 0 ? stream : `${stream}/${attempt}`, 0, 100_000);
    if (part.size > 0) ({ bytes } = part);
  }
  return new TextDecoder().decode(bytes);
}

/** Pauses up to ten seconds end at once, but count as elapsed. Longer deadlines are real. */
function hastyClock(aheadMs: number): Clock {
  let skippedMs = 0;
  return {
    nowMs: () => realClock.nowMs() + aheadMs,
    monotonicMs: () => realClock.monotonicMs() + skippedMs,
    after(delayMs, callback) {
      if (delayMs > 10_000) return realClock.after(delayMs, callback);
      skippedMs += delayMs;
      return realClock.after(0, callback);
    },
  };
}

/** Work that blocks until it is released. */
export function heldWork<T>(answer: T) {
  let release: () => void = () => undefined;
  let reached: () => void = () => undefined;
  const asleep = new Promise<void>((resolve) => (reached = resolve));
  const awake = new Promise<void>((resolve) => (release = resolve));
  return { asleep, release, wait: async () => (reached(), await awake, answer) };
}

/** Output of a command in the form of `onOutput`. */
export const said = (text: string) => ({ stderr: false, data: new TextEncoder().encode(text) });
