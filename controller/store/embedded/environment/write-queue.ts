import { AppError } from "../../../../common/errors.ts";
import { STORE_CALL_DEADLINE_MS, STORE_WRITE_TURN_MAX_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";

/** Runs the work in one write transaction; resolves when it is committed. Rejects, and never throws. */
export type Transaction = (work: () => void) => Promise<unknown>;

/** An action with the callbacks of its caller. It is one object without closures, because every write makes one. */
interface Waiting {
  readonly action: () => unknown;
  readonly committed: (() => void) | undefined;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly sinceMs: number;
  /** Value of the action, or what it threw. */
  result?: unknown;
  hasThrown: boolean;
}

/**
 * Write actions in the order of arrival; waiting ones share a commit. The library runs all work of a transaction in one
 * turn of the event loop, so a transaction takes no more actions after they have lasted `STORE_WRITE_TURN_MAX_MS`. The
 * rest waits for the next one. It begins after the callers of the one before know their outcome: so an action may build
 * on what earlier ones wrote, and more actions share a commit.
 *
 * An action that is not committed `STORE_CALL_DEADLINE_MS` after its arrival ends for its caller with
 * `AppError("unknown_outcome")`. One timer, for the oldest action, serves all of them.
 */
export class WriteQueue {
  readonly #clock: Clock;
  readonly #transaction: Transaction;
  readonly #faultOf: (error: unknown) => unknown;
  readonly #waiting: Waiting[] = [];
  /** Actions whose callers wait, oldest first. */
  readonly #timed = new Set<Waiting>();
  /** Actions that are neither committed nor failed. */
  #open = 0;
  /** The current transaction. */
  #writing: Promise<void> | undefined;
  #cancel: (() => void) | undefined;

  /** `faultOf` translates what an action throws. */
  constructor(clock: Clock, transaction: Transaction, faultOf: (error: unknown) => unknown = (error) => error) {
    this.#clock = clock;
    this.#transaction = transaction;
    this.#faultOf = faultOf;
  }

  /** True if every added action is committed or has failed. */
  get isIdle(): boolean {
    return this.#open === 0;
  }

  /**
   * Resolves with the action's value when it is committed; rejects with the error of the action or of the commit.
   * `committed` is called after the commit, even if that was too late for the caller.
   */
  add<T>(action: () => T, committed?: () => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const sinceMs = this.#clock.monotonicMs();
      const settle = resolve as (value: unknown) => void;
      const waiting: Waiting = {
        action,
        committed,
        resolve: settle,
        reject,
        sinceMs,
        result: undefined,
        hasThrown: false,
      };
      this.#waiting.push(waiting);
      this.#open += 1;
      this.#timed.add(waiting);
      this.#cancel ??= this.#clock.after(STORE_CALL_DEADLINE_MS, () => this.#late());
      this.#ask();
    });
  }

  /** Resolves when every added action is committed or has failed. */
  async idle(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #ask(): void {
    if (this.#writing === undefined && this.#waiting.length > 0) this.#writing = this.#write();
  }

  async #write(): Promise<void> {
    const turn: { taken?: readonly Waiting[] } = {};
    try {
      await this.#transaction(() => (turn.taken = this.#run()));
      for (const one of turn.taken ?? []) this.#committed(one);
    } catch (error) {
      // A transaction that did not run its actions would run no others: the store is closed or has failed.
      for (const one of turn.taken ?? this.#waiting.splice(0)) this.#failed(one, error);
    } finally {
      this.#writing = undefined;
      this.#ask();
    }
  }

  #run(): readonly Waiting[] {
    const beganMs = this.#clock.monotonicMs();
    let count = 0;
    do act(this.#waiting[count++]!);
    while (count < this.#waiting.length && this.#clock.monotonicMs() - beganMs < STORE_WRITE_TURN_MAX_MS);
    return this.#waiting.splice(0, count);
  }

  #committed(one: Waiting): void {
    if (one.hasThrown) return this.#failed(one, this.#faultOf(one.result));
    try {
      one.committed?.();
    } catch (error) {
      return this.#failed(one, error);
    }
    one.resolve(one.result);
    this.#end(one);
  }

  #failed(one: Waiting, error: unknown): void {
    one.reject(error);
    this.#end(one);
  }

  #end(one: Waiting): void {
    this.#open -= 1;
    this.#timed.delete(one);
    if (this.#timed.size > 0) return;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #late(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#cancel = undefined;
    for (const one of this.#timed) {
      const leftMs = one.sinceMs + STORE_CALL_DEADLINE_MS - nowMs;
      if (leftMs > 0) {
        this.#cancel = this.#clock.after(leftMs, () => this.#late());
        return;
      }
      this.#timed.delete(one);
      one.reject(new AppError("unknown_outcome", "The disk did not answer in time."));
    }
  }
}

/** Runs the action inside the transaction; never throws. */
function act(one: Waiting): void {
  try {
    one.result = one.action();
  } catch (error) {
    one.result = error;
    one.hasThrown = true;
  }
}
