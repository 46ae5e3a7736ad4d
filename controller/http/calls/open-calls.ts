import { SHUTDOWN_ANSWERS_MS, SHUTDOWN_WORK_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";

/**
 * The calls that this controller carries out now. At an orderly stop they have `SHUTDOWN_WORK_MS` to end by themselves;
 * those that last longer are ended, and have `SHUTDOWN_ANSWERS_MS` for their answer. A call that comes then is ended
 * before it begins.
 */
export class OpenCalls {
  readonly #clock: Clock;
  readonly #open = new Set<() => void>();
  #cancel: () => void = () => undefined;
  #isOver = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `end` is called when the call lasts too long, unless the answered function is called before. */
  enter(end: () => void): () => void {
    this.#open.add(end);
    if (this.#isOver) end();
    return () => this.#open.delete(end);
  }

  /** `closeAll` closes every connection, also those in use. */
  close(closeAll: () => void): void {
    this.#cancel();
    this.#cancel = this.#clock.after(SHUTDOWN_WORK_MS, () => {
      this.#isOver = true;
      for (const end of [...this.#open]) end();
      this.#cancel = this.#clock.after(SHUTDOWN_ANSWERS_MS, closeAll);
    });
  }

  /** The server is closed: nothing is left to end. */
  closed(): void {
    this.#cancel();
  }
}
