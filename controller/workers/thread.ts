import { Worker } from "node:worker_threads";
import { MIB } from "../../common/limits/units.ts";
import type { TaskMessage, ThreadMessage } from "./types.ts";

export interface ThreadOptions {
  readonly file: URL | string;
  readonly heapMaxBytes: number;
  /** What the thread's main file finds as `workerData`. */
  readonly data?: unknown;
  readonly onMessage: (message: ThreadMessage) => void;
  /** Once, when the thread is gone. With the error that ended it; without one it was told to end or ended itself. */
  readonly onExit: (error: Error | undefined) => void;
}

/** One thread that runs tasks, from the first moment to its end. */
export class TaskThread {
  readonly #worker: Worker;
  readonly exited: Promise<void>;

  constructor({ file, heapMaxBytes, data, onMessage, onExit }: ThreadOptions) {
    let failure: Error | undefined;
    this.#worker = new Worker(file, {
      name: "odp-worker",
      // Neither settings nor what the environment may hold of secrets is needed there.
      env: {},
      execArgv: [],
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapMaxBytes / MIB) },
    });
    this.#worker.unref();
    this.#worker.on("message", onMessage);
    this.#worker.on("messageerror", (error) => {
      failure = error;
      this.end();
    });
    this.#worker.on("error", (error: Error) => (failure = error));
    this.exited = new Promise((resolve) => {
      this.#worker.once("exit", () => {
        onExit(failure);
        resolve();
      });
    });
  }

  /** Throws when the message cannot be cloned; then the thread has heard nothing of it. */
  send({ name, input, transfer = [] }: TaskMessage): void {
    this.#worker.postMessage({ name, input } satisfies TaskMessage, transfer);
  }

  end(): void {
    void this.#worker.terminate();
  }
}

/** Whether the thread ended because its heap was full. */
export function isOutOfMemory(error: Error | undefined): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === "ERR_WORKER_OUT_OF_MEMORY";
}
