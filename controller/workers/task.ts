import { AppError } from "../../common/errors.ts";
import type { Clock } from "../../common/time.ts";
import type { RunOptions, Stand } from "./types.ts";

interface TaskOptions extends RunOptions {
  readonly name: string;
  readonly input: unknown;
  readonly clock: Clock;
  /** Called at the deadline or on the signal, unless the task is settled before. */
  readonly onGivenUp: (task: Task, error: AppError) => void;
}

/** One task from the call to its answer. It is settled once; later results have no effect. */
export class Task {
  readonly name: string;
  readonly input: unknown;
  readonly transfer: RunOptions["transfer"];
  readonly tenant: string;
  /** The tenant, then the parts of it to which the task belongs. */
  readonly path: readonly string[];
  readonly #stands: RunOptions["stands"];
  readonly spendsThread: () => boolean;
  readonly answer: Promise<unknown>;
  /** Number of threads that it was given. */
  threads = 0;
  /** True if the current thread has begun it. */
  begun = false;
  #settled = false;
  #resolve!: (output: unknown) => void;
  #reject!: (error: AppError) => void;
  readonly #release: () => void;

  constructor({ name, input, tenant, share = [], timeoutMs, signal, clock, onGivenUp, ...options }: TaskOptions) {
    this.name = name;
    this.input = input;
    this.transfer = options.transfer;
    this.tenant = tenant;
    this.path = [tenant, ...share];
    this.#stands = options.stands;
    this.spendsThread = options.spendsThread ?? (() => false);
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const abort = (): void => onGivenUp(this, cancelled(name));
    const stopClock = clock.after(timeoutMs, () => onGivenUp(this, late(name, timeoutMs)));
    signal?.addEventListener("abort", abort);
    this.#release = () => {
      stopClock();
      signal?.removeEventListener("abort", abort);
    };
  }

  get settled(): boolean {
    return this.#settled;
  }

  get stands(): Stand {
    return !this.#settled && (this.#stands?.() ?? false);
  }

  done(output: unknown): void {
    this.#settle();
    this.#resolve(output);
  }

  fail(error: AppError): void {
    this.#settle();
    this.#reject(error);
  }

  #settle(): void {
    this.#settled = true;
    this.#release();
  }
}

function late(name: string, timeoutMs: number): AppError {
  return new AppError("deadline", `The task ${name} was not done within ${timeoutMs} ms.`);
}

export function cancelled(name: string): AppError {
  return new AppError("cancelled", `The task ${name} was cancelled.`);
}
