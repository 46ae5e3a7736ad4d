import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { bundle } from "../helpers/programs/bundle.ts";
import type { Outcome } from "./run.ts";
import type { WorkerNews, WorkerTask } from "./worker.ts";

/**
 * A history takes a fraction of a second. If this process uses so much processor time while a thread reports nothing,
 * its history will never end. The clock on the wall says nothing: beside other work, at the lowest priority, a thread
 * may stand still for minutes.
 */
const STUCK_PROCESSOR_MS = 120_000;
const LOOK_EVERY_MS = 5_000;

export interface Histories {
  readonly from: number;
  readonly count: number;
  readonly workers?: number;
  readonly onOutcome?: (outcome: Outcome) => void;
}

export interface Summary {
  readonly histories: number;
  readonly lines: number;
  readonly jobs: number;
  readonly events: number;
  /** Broken promises by seed. */
  readonly wrong: ReadonlyMap<number, readonly string[]>;
}

/** Runs all seeds from `from` on in threads. A history that never ends is reported by its seed and terminated. */
export async function runHistories({ from, count, workers = 2, onOutcome }: Histories): Promise<Summary> {
  const total = { histories: 0, lines: 0, jobs: 0, events: 0 };
  const wrong = new Map<number, readonly string[]>();
  const take = (outcome: Outcome): void => {
    total.histories += 1;
    for (const key of ["lines", "jobs", "events"] as const) total[key] += outcome[key];
    if (outcome.wrong.length > 0) wrong.set(outcome.seed, outcome.wrong);
    onOutcome?.(outcome);
  };
  const tasks = Array.from(
    { length: workers },
    (_, at): WorkerTask => ({ from: from + at, count: count - at, step: workers }),
  );
  // Threads of Node 20 do not load TypeScript.
  const file = await bundle(join(import.meta.dirname, "worker.ts"), `sim/worker-${process.pid}.mjs`, "inline");
  await Promise.all(tasks.map((task) => runWorker({ file, task }, take, wrong)));
  return { ...total, wrong };
}

function runWorker(
  { file, task }: { file: string; task: WorkerTask },
  take: (outcome: Outcome) => void,
  wrong: Map<number, readonly string[]>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, { workerData: task, execArgv: ["--enable-source-maps"] });
    let at = task.from;
    let heardMs = processorMs();
    const watch = setInterval(() => {
      if (processorMs() - heardMs < STUCK_PROCESSOR_MS) return;
      wrong.set(at, [`does not end: nothing was heard of it for ${STUCK_PROCESSOR_MS / 1_000} s of processor time`]);
      void worker.terminate();
    }, LOOK_EVERY_MS);
    worker.on("message", (news: WorkerNews) => {
      heardMs = processorMs();
      if (news.kind === "at") at = news.seed;
      else take(news.outcome);
    });
    worker.once("error", (error) => {
      wrong.set(at, [`broke off: ${String(error)}`]);
      reject(error);
    });
    worker.once("exit", () => {
      clearInterval(watch);
      resolve();
    });
  });
}

/** Processor time of all threads of this process. */
function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
