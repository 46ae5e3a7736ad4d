import { AsyncLocalStorage } from "node:async_hooks";
import { AppError } from "../../common/errors.ts";
import { CALL_ANSWER_RESERVE_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";

const calls = new AsyncLocalStorage<CallDeadline | undefined>();

export interface CallDeadlineOptions {
  readonly clock: Clock;
  /** How long the call may wait, in all, for what does not answer. */
  readonly lengthMs: number;
  /** Called once when it has waited for so long; `parts` names what it waits for. */
  readonly atEnd: (parts: string) => void;
}

/**
 * The end of one call from outside. Only the time counts in which something the call needs does not answer: a long
 * query over stores that are well has no end here, and ten store calls of one call to a store that is away share one
 * time. Every store call made inside `run` is bounded by what is left; work that goes on after `end` is not.
 */
export class CallDeadline {
  readonly #clock: Clock;
  readonly #options: CallDeadlineOptions;
  /** What does not answer, with the number of those who wait for it. */
  readonly #silent = new Map<string, number>();
  #sinceMs = 0;
  /** When the last wait ended. */
  #untilMs = 0;
  #spentMs = 0;
  #cancel: () => void = () => undefined;
  #ended = false;

  constructor(options: CallDeadlineOptions) {
    this.#clock = options.clock;
    this.#options = options;
  }

  /** The one this code runs in; undefined outside of calls and after their end. */
  static current(): CallDeadline | undefined {
    const call = calls.getStore();
    return call === undefined || call.#ended ? undefined : call;
  }

  /** For work that calls share, or that none of them waits for. */
  static outside<T>(work: () => T): T {
    return calls.getStore() === undefined ? work() : calls.run(undefined, work);
  }

  run<T>(work: () => T): T {
    return calls.run(this, work);
  }

  /** For store calls: they end a little earlier than the call, so that its answer can say what was away. */
  leftMs(): number {
    if (this.#ended) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#leftMs() - CALL_ANSWER_RESERVE_MS);
  }

  /** `part` has been silent since then; to be followed by `answers`, once its caller has an answer or gives up. */
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

  /** What `work` comes to, or `unavailable` when there is no time left for it; the wait counts. */
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

  /** The call is answered: what goes on has deadlines of its own. */
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
