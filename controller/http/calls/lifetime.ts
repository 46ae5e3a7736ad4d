import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";

/** How long one call may last: up to its deadline, or to a reason from outside. The first reason stands. */
export class CallLifetime {
  readonly #clock: Clock;
  readonly #abort = new AbortController();
  #over: AppError | undefined;
  #deadlineMs = 0;
  #cancelDeadline: () => void = () => {};
  /** Ends the work that is waited for. */
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

  /** How long the call was given when its deadline was set last. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Replaces the one before. */
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

  /** Resolves as `work` does. Rejects with the reason if the call ends first; the work may then go on for a while. */
  until<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#stop = reject;
      if (this.#over !== undefined) reject(this.#over);
      work.then(resolve, reject);
    });
  }
}
