import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import type { OpenCalls } from "./open-calls.ts";

/** The lifetime of one call, which ends at its deadline or for another reason. The first reason counts. */
export class CallLifetime {
  readonly #clock: Clock;
  readonly #calls: OpenCalls;
  /** Made when the signal is asked for: many calls do nothing that could be cancelled. */
  #abort: AbortController | undefined;
  #over: AppError | undefined;
  #deadlineMs = 0;
  #dueMs = Number.POSITIVE_INFINITY;
  /** Rejects the promise that `until` has returned. */
  #stop: (reason: AppError) => void = ignore;
  /** True once the endpoint's handler is called. Before that, nothing was changed. */
  hasBegun = false;

  /** The call is open until `leave`. */
  constructor(clock: Clock, calls: OpenCalls) {
    this.#clock = clock;
    this.#calls = calls;
    calls.enter(this);
  }

  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#over !== undefined) this.#abort.abort(this.#over);
    }
    return this.#abort.signal;
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  throwIfOver(): void {
    if (this.#over !== undefined) throw this.#over;
  }

  /** Duration that the last call of `setDeadline` gave. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Monotonic time of the deadline; `Infinity` if there is none. */
  get dueMs(): number {
    return this.#dueMs;
  }

  /** Replaces an earlier deadline. */
  setDeadline(afterMs: number): void {
    this.#deadlineMs = afterMs;
    this.#dueMs = this.#clock.monotonicMs() + afterMs;
    this.#calls.expect(this.#dueMs);
  }

  cancelDeadline(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  /** The deadline has passed. */
  expire(): void {
    this.end(new AppError("deadline", `Not done within ${String(this.#deadlineMs)} ms.`));
  }

  /** The controller stops, and the call has outlasted the time for that. */
  stop(): void {
    this.end(
      this.hasBegun
        ? new AppError("unknown_outcome", "The controller stops: what this call changes may be done, or done in part.")
        : new AppError("unavailable", "The controller stops."),
    );
  }

  end(reason: AppError): void {
    this.#over ??= reason;
    this.#abort?.abort(reason);
    this.#stop(reason);
  }

  /** The call is answered. */
  leave(): void {
    this.cancelDeadline();
    this.#calls.leave(this);
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

function ignore(): void {}
