import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";

/** The lifetime of one call, which ends at its deadline or for another reason. The first reason counts. */
export class CallLifetime {
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #over: AppError | undefined;
  #deadlineMs = 0;
  #cancelDeadline: () => void = () => {};
  /** Rejects the promise that `until` has returned. */
  #stop: (reason: AppError) => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** Duration that the last call of `setDeadline` gave. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Replaces an earlier deadline. */
  setDeadline(afterMs: number): void {
    this.#cancelDeadline();
    this.#deadlineMs = afterMs;
    this.#cancelDeadline = this.#clock.after(afterMs, () => {
      this.end(new AppError("deadline", `Not done within ${String(afterMs)} ms.`));
    });
  }

  cancelDeadline(): void {
    this.#cancelDeadline();
  }

  end(reason: AppError): void {
    this.#over ??= reason;
    this.#abort.abort(reason);
    this.#stop(reason);
  }

  /** Settles as `work` does. Rejects with the reason if the call ends first; the work may continue for a while. */
  until<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#stop = reject;
      if (this.#over !== undefined) reject(this.#over);
      work.then(resolve, reject);
    });
  }
}
