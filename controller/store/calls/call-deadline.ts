import { AsyncLocalStorage } from "node:async_hooks";
import { AppError } from "../../../common/errors.ts";
import { CALL_ANSWER_RESERVE_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

const calls = new AsyncLocalStorage<CallDeadline | undefined>();

export interface CallDeadlineOptions {
  readonly clock: Clock;
  /** Total time that the call may wait for parts that do not answer. */
  readonly lengthMs: number;
  /** Called once when that time has passed; `parts` names the silent parts. */
  readonly atEnd: (parts: string) => void;
}

/**
 * The deadline of one call from outside. It counts only the time in which a part that the call needs does not answer.
 * So a long query on healthy stores never reaches it. Ten store calls to a store that is down have together as much
 * time as one. It limits every store call inside `run`, but not work that continues after `end`.
 */
export class CallDeadline {
  readonly #clock: Clock;
  readonly #options: CallDeadlineOptions;
  /** Parts that do not answer, with the number of their waiting callers. */
  readonly #silent = new Map<string, number>();
  #sinceMs = 0;
  /** The end of the last wait. */
  #untilMs = 0;
  #spentMs = 0;
  #cancel: () => void = () => undefined;
  #ended = false;

  constructor(options: CallDeadlineOptions) {
    this.#clock = options.clock;
    this.#options = options;
  }

  /** The deadline of the call in which this code runs; `undefined` outside of calls and after their end. */
  static current(): CallDeadline | undefined {
    const call = calls.getStore();
    return call === undefined || call.#ended ? undefined : call;
  }

  /** Runs work that calls share, or that no call waits for. */
  static outside<T>(work: () => T): T {
    return calls.getStore() === undefined ? work() : calls.run(undefined, work);
  }

  run<T>(work: () => T): T {
    return calls.run(this, work);
  }

  /**
   * Time left for store calls. They end a little earlier than the call, so that its answer can name the part that is
   * down.
   */
  leftMs(): number {
    if (this.#ended) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#leftMs() - CALL_ANSWER_RESERVE_MS);
  }

  /** `part` has been silent since `sinceMs`. Its caller must call `answers` when it gets an answer or gives up. */
  silent(part: string, sinceMs: number): void {
    const isFirst = this.#silent.size === 0;
    this.#silent.set(part, (this.#silent.get(part) ?? 0) + 1);
    if (!isFirst) return;
    this.#sinceMs = Math.max(sinceMs, this.#untilMs);
    if (!this.#ended) this.#cancel = this.#clock.after(this.#leftMs(), () => this.#options.atEnd(this.#parts()));
  }

  answers(part: string): void {
    const waiting = (this.#silent.get(part) ?? 0) - 1;
    if (waiting > 0) return void this.#silent.set(part, waiting);
    this.#silent.delete(part);
    if (this.#silent.size > 0) return;
    this.#cancel();
    this.#untilMs = this.#clock.monotonicMs();
    this.#spentMs += this.#untilMs - this.#sinceMs;
  }

  /**
   * Result of `work`, or `AppError("unavailable")` when no time is left. The wait counts as time in which `part` does
   * not answer.
   */
  async wait<T>(part: string, work: Promise<T>): Promise<T> {
    this.silent(part, this.#clock.monotonicMs());
    let cancel = (): void => undefined;
    const late = new Promise<never>((_, reject) => {
      cancel = this.#clock.after(this.leftMs(), () => reject(new AppError("unavailable", `${part} does not answer.`)));
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      cancel();
      this.answers(part);
    }
  }

  /** Call it when the call is answered. This deadline no longer limits work that continues. */
  end(): void {
    this.#ended = true;
    this.#cancel();
  }

  #leftMs(): number {
    const waitingMs = this.#silent.size === 0 ? 0 : this.#clock.monotonicMs() - this.#sinceMs;
    return Math.max(0, this.#options.lengthMs - this.#spentMs - waitingMs);
  }

  #parts(): string {
    return [...this.#silent.keys()].join(" and ");
  }
}
