import { afterAll, beforeAll, expect } from "vitest";
import type { Clock } from "../../../common/time.ts";
import {
  COMMAND_CLASSES,
  StoredCommands,
  type CommandOutcome,
  type DispatchOptions,
  type Hosts,
} from "../../../controller/areas/hosts/index.ts";
import { jobClasses, JobRuns, JobService } from "../../../controller/areas/jobs/index.ts";
import { JobOutputs } from "../../../controller/areas/jobs/output/outputs.ts";
import { ObjectService, type Unrestricted, type UnrestrictedObjects } from "../../../controller/areas/objects/index.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import { realClock } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../time/runtime.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";
import { NAMED_HOSTS } from "../hosts/named-hosts.ts";

export const ADMIN = testPrincipal();
export const HOUR_MS = 3_600_000;
const RUNTIME = {
  ...testRuntime(realClock),
  random: { next: () => Math.random(), bytes: (count: number) => crypto.getRandomValues(new Uint8Array(count)) },
};

/** Stores that all tests of the calling file share. */
export let engine: TestEngine;
/** Objects of every controller of the calling file. */
export let objects: ObjectService;
/** Jobs of every controller of the calling file. */
export let jobs: JobService;

/** Opens one engine with the classes of jobs and commands for all tests of the calling file. */
export function openRuns(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime: RUNTIME });
    jobs = new JobService({ targets: NAMED_HOSTS, stores: engine, runtime: RUNTIME, objects });
    for (const definition of [...jobClasses(jobs), ...COMMAND_CLASSES]) objects.registerSystemClass(definition);
  });
  afterAll(async () => {
    await objects.close();
    await engine[Symbol.asyncDispose]();
  });
}

type Dispatch = (host: string, options: DispatchOptions) => Promise<Partial<CommandOutcome>>;
/** The part of objects that runs use. */
export type Used = Unrestricted<"insert" | "get">;

interface ControllerOptions {
  /** Result of the command on a host. Absent: success. */
  readonly dispatch?: Dispatch;
  /** The other controllers that it sees. */
  readonly sees?: readonly string[];
  /** How far its clock is ahead of the others. */
  readonly aheadMs?: number;
  /** Time by which each of its pauses ends late. */
  readonly lateMs?: number;
  readonly objects?: Used;
  readonly stores?: Stores;
  /** Gets the published states. */
  readonly published?: (status: string) => void;
}

/** Returns the runs of one controller on the shared stores. */
export function controller(own: string, options: ControllerOptions = {}): JobRuns {
  const hosts: Pick<Hosts, "dispatch"> = {
    dispatch: async (_principal, host, _command, dispatched) => ({
      host,
      state: "ok",
      code: 0,
      message: "",
      startedMs: 1,
      endedMs: 2,
      ...(await options.dispatch?.(host, dispatched)),
    }),
  };
  return new JobRuns({
    targets: NAMED_HOSTS,
    secrets: TEST_SECRETS,
    jobs,
    hosts,
    stored: new StoredCommands({ objects, actAs: () => Promise.resolve(ADMIN) }),
    stores: options.stores ?? engine,
    objects: {
      catalog: (principal) => objects.catalog(principal),
      visible: objects.visible,
      ...(options.objects ?? used),
    },
    runtime: { ...RUNTIME, clock: hastyClock(() => options.aheadMs ?? 0, options.lateMs) },
    notifications: {
      publish: (_tenant, { msg }) => options.published?.((JSON.parse(msg) as { readonly status: string }).status),
    },
    controllers: { own, has: (id) => id === own || (options.sees ?? []).includes(id) },
  });
}

/** Pauses of up to a second end at once, but count; deadlines keep their length. */
function hastyClock(aheadMs: () => number, lateMs = 0): Clock {
  let skippedMs = 0;
  return {
    nowMs: () => realClock.nowMs() + aheadMs(),
    monotonicMs: () => realClock.monotonicMs() + skippedMs,
    after(delayMs, callback) {
      if (delayMs > 1_000) return realClock.after(delayMs, callback);
      skippedMs += delayMs + lateMs;
      return realClock.after(0, callback);
    },
  };
}

/** Writes and reads the shared objects. */
export const used: Used = {
  unrestricted: {
    insert: (...call) => objects.unrestricted.insert(...call),
    get: (...call) => objects.unrestricted.get(...call),
  },
};

/** The shared objects with another way to insert. */
export const inserting = (insert: UnrestrictedObjects["insert"]): Used => ({
  unrestricted: { ...used.unrestricted, insert },
});

/** Returns work that waits until `release`. `asleep` resolves when the work begins to wait. */
export function held<T>(answer: T) {
  let release: () => void = () => undefined;
  let reached: () => void = () => undefined;
  const asleep = new Promise<void>((resolve) => (reached = resolve));
  const awake = new Promise<void>((resolve) => (release = resolve));
  return { asleep, release, wait: async () => (reached(), await awake, answer) };
}

/** Returns objects whose writes of rows with this status wait. */
export const sleepingBefore = (status: (text: unknown) => boolean, hold: ReturnType<typeof held>): Used =>
  inserting(async (principal, path, rows, options) => {
    if (rows.some((row) => status(row["status"]))) await hold.wait();
    return objects.unrestricted.insert(principal, path, rows, options);
  });

/** Executes a command on the hosts. */
export const execute = (runs: JobRuns, ...hosts: readonly string[]) =>
  runs.execute(ADMIN, "remote_command@system/common", { param: JSON.stringify({ cmd: "x", "HOST!": hosts }) });
/** Returns a piece of standard output. */
export const bytes = (text: string) => ({ stderr: false, data: new TextEncoder().encode(text) });

/** Returns the rows of a run, one for each host. */
export async function rowsOf(runId: string) {
  const found = [];
  for await (const page of objects.unrestricted.read(ADMIN, {
    class: "/matrix/jobs/jobrun",
    subtree: false,
    where: [{ kind: "equals", column: "runid", values: [runId] }],
  })) {
    found.push(...page.map((row) => row.values).filter((values) => values["runid"] === runId));
  }
  return found;
}

/** Returns the stored output of a run on a host. */
export const outputOf = async (runId: string, host: string) =>
  new TextDecoder().decode(
    (await new JobOutputs(engine).read("matrix", { runId, host }, { offset: 0, maxBytes: 1_000 })).bytes,
  );

/** Returns the keys of the hosts on which the run is open. */
export const openKeys = async (runId: string) =>
  (await (await engine.tenant("matrix")).kv.list(`jobs/open/${runId}/`)).entries.map(({ key }) => key);

/** Resolves when the end of the run is recorded. */
export const closed = (runId: string) => expect.poll(() => openKeys(runId)).toEqual([]);
