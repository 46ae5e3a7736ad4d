import { Worker } from "node:worker_threads";
import { MIB } from "../../common/limits/units.ts";
import type { TaskMessage, ThreadMessage } from "./types.ts";

export interface ThreadOptions {
  readonly file: URL | string;
  readonly heapMaxBytes: number;
  /** `workerData` of the thread's main file. */
  readonly data?: unknown;
  readonly onMessage: (message: ThreadMessage) => void;
  /**
   * Called once when the thread is gone, with the error that ended it; without one if it was told to end or ended
   * itself.
   */
  readonly onExit: (error: Error | undefined) => void;
}

/** One thread that runs tasks. */
export class TaskThread {
  readonly #worker: Worker;
  readonly exited: Promise<void>;

  constructor({ file, heapMaxBytes, data, onMessage, onExit }: ThreadOptions) {
    let failure: Error | undefined;
    this.#worker = new Worker(file, {
      name: "odp-worker",
      // The thread needs neither settings nor secrets of the environment.
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

  /** Throws if the message cannot be cloned; then nothing was sent to the thread. */
  send({ name, input, transfer = [] }: TaskMessage): void {
    this.#worker.postMessage({ name, input } satisfies TaskMessage, transfer);
  }

  end(): void {
    void this.#worker.terminate();
  }
}

/** Returns true if the thread ended because its heap was full. */
export function isOutOfMemory(error: Error | undefined): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === "ERR_WORKER_OUT_OF_MEMORY";
}
