import { SHUTDOWN_ANSWERS_MS, SHUTDOWN_WORK_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/**
 * The calls in progress on this controller. At an orderly stop they have `SHUTDOWN_WORK_MS` to end by themselves. Those
 * that last longer are ended, and have `SHUTDOWN_ANSWERS_MS` for their answer. A call that enters after that is ended
 * immediately.
 */
export class OpenCalls {
  readonly #clock: Clock;
  readonly #open = new Set<() => void>();
  #cancel: () => void = () => undefined;
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `end` if a stop cannot wait for the call any longer, unless the returned function is called before. */
  enter(end: () => void): () => void {
    this.#open.add(end);
    if (this.#isOver) end();
    return () => this.#open.delete(end);
  }

  /** Begins the stop. `closeAll` must close every connection, also those in use. */
  close(closeAll: () => void): void {
    this.#cancel();
    this.#cancel = this.#clock.after(SHUTDOWN_WORK_MS, () => {
      this.#isOver = true;
      for (const end of [...this.#open]) end();
      this.#cancel = this.#clock.after(SHUTDOWN_ANSWERS_MS, closeAll);
    });
  }

  /** Call it when the server is closed: nothing is left to end. */
  closed(): void {
    this.#cancel();
  }
}
