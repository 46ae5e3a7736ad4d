import { AppError } from "../../common/errors.ts";
import { WORKER_CLOSE_DEADLINE_MS } from "../../common/limits.ts";
import type { Area } from "../area.ts";
import type { Runtime } from "../runtime.ts";
import { type HostFunctionName, ThreadScripts } from "../scripting/index.ts";
import type { ControllerTasks } from "../worker.ts";
import { lowerPriority, threadProcessorMs, WorkerPool } from "../workers/index.ts";
import type { AssemblyOptions } from "./options.ts";

export function workerThreads(
  { workers }: Pick<AssemblyOptions, "workers">,
  { clock, log }: Runtime,
): WorkerPool<ControllerTasks> | undefined {
  return workers && new WorkerPool<ControllerTasks>({ ...workers, clock, log });
}

interface ScriptThreadsDependencies {
  readonly runtime: Runtime;
  /** Names of the functions that scripts may call. Call it only after all areas exist. */
  readonly functions: () => readonly HostFunctionName[];
}

export function scriptThreads(
  { scripts }: Pick<AssemblyOptions, "scripts">,
  { runtime: { clock, random, log }, functions }: ScriptThreadsDependencies,
): ThreadScripts | undefined {
  if (scripts === undefined) return undefined;
  const languages = ["lua", "javascript"] as const;
  const threads = { processorMs: threadProcessorMs, lowerPriority };
  return new ThreadScripts({ file: scripts, languages, functions, clock, random, log, ...threads });
}

export function requireScripts(engine: ThreadScripts | undefined): ThreadScripts {
  if (engine) return engine;
  throw new AppError("unsupported", "This controller runs no scripts.");
}

export function scriptThreadsPart(engine: ThreadScripts): Area {
  return {
    name: "script threads",
    levels: [
      { name: "odp_script_threads", help: "Threads of scripts that are there.", value: () => engine.threads },
      { name: "odp_script_threads_ended", help: "Threads of scripts that had to be ended.", value: () => engine.ended },
      { name: "odp_scripts_running", help: "Scripts that run.", value: () => engine.running },
      { name: "odp_scripts_waiting", help: "Scripts that wait for a thread.", value: () => engine.waiting },
    ],
    close: () => engine.close(),
  };
}

export function workersPart(workers: WorkerPool<ControllerTasks>): Area {
  return {
    name: "workers",
    levels: [
      { name: "odp_worker_threads", help: "Worker threads that are there.", value: () => workers.threads },
      {
        name: "odp_worker_threads_ended",
        help: "Worker threads that broke off or were ended.",
        value: () => workers.ended,
      },
      { name: "odp_worker_tasks_running", help: "Tasks that worker threads are at.", value: () => workers.running },
      { name: "odp_worker_tasks_waiting", help: "Tasks that wait for a worker thread.", value: () => workers.waiting },
    ],
    close: () => workers.close(WORKER_CLOSE_DEADLINE_MS),
  };
}
