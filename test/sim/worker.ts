import { parentPort, workerData } from "node:worker_threads";
import { runHistory, type Outcome } from "./run.ts";

/** Task of a worker. It reports the history that it runs, then its outcome. */
export interface WorkerTask {
  readonly from: number;
  readonly count: number;
  /** Step between this worker's seeds: with several workers each one takes every `step`th seed. */
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
