import type { Clock } from "../time.ts";
import { OdpError } from "./error.ts";

/** Ends one call: at its deadline, after a silence, or when its caller wants it. The first reason counts. */
export class Watch {
  readonly signal: AbortSignal;
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #abort = new AbortController();
  readonly #caller: AbortSignal | undefined;
  #cancelTimer: () => void = () => {};
  #dueMs = Infinity;

  constructor(clock: Pick<Clock, "monotonicMs" | "after">, caller: AbortSignal | undefined) {
    this.#clock = clock;
    this.#caller = caller;
    this.signal = this.#abort.signal;
    if (caller?.aborted === true) this.#cancelled();
    else caller?.addEventListener("abort", this.#cancelled, { once: true });
  }

  /** Replaces the deadline: from now on, the call has this time. `Infinity`: it has no deadline. */
  within(ms: number, what = ""): void {
    this.#cancelTimer();
    this.#dueMs = this.#clock.monotonicMs() + ms;
    if (ms === Infinity) return;
    this.#cancelTimer = this.#clock.after(ms, () =>
      this.#abort.abort(new OdpError("deadline", `${what} within ${ms} ms.`)),
    );
  }

  /** Time until the deadline. */
  get leftMs(): number {
    return this.#dueMs - this.#clock.monotonicMs();
  }

  /** Throws the reason if the call is ended. */
  check(): void {
    if (this.signal.aborted) throw this.signal.reason;
  }

  /** Resolves after the time; rejects with the reason if the call is ended before. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal } = this;
      const leave = (): void => {
        cancel();
        reject(signal.reason as Error);
      };
      const cancel = this.#clock.after(ms, () => {
        signal.removeEventListener("abort", leave);
        resolve();
      });
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** The call is over: nothing ends it any more. */
  leave(): void {
    this.#cancelTimer();
    this.#caller?.removeEventListener("abort", this.#cancelled);
  }

  readonly #cancelled = (): void => {
    const cause: unknown = this.#caller?.reason;
    this.#abort.abort(new OdpError("cancelled", "The caller ended the call.", { cause }));
  };
}
