import { parentPort, workerData } from "node:worker_threads";
import { runHistory, type Outcome } from "./run.ts";

/** What a worker is given, and what it tells: which history it is at, then how it ended. */
export interface WorkerTask {
  readonly from: number;
  readonly count: number;
  /** Distance of this worker's seeds: each of several workers takes every `step`th one. */
  readonly step: number;
}

export type WorkerNews =
  | { readonly kind: "at"; readonly seed: number }
  | { readonly kind: "over"; readonly outcome: Outcome };

const { from, count, step }: WorkerTask = workerData;
for (let seed = from; seed < from + count; seed += step) {
  tell({ kind: "at", seed });
  tell({ kind: "over", outcome: await runHistory({ seed }) });
}

function tell(news: WorkerNews): void {
  parentPort?.postMessage(news);
}
