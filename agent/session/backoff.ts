import { SESSION_BACKOFF_MAX_MS, SESSION_BACKOFF_MIN_MS } from "../../common/limits.ts";
import type { Random } from "../../common/time.ts";

/** How an attempt to have a session ended: without one, with one that broke soon, with one that held for a while. */
export type Attempt = "none" | "short" | "steady";

/**
 * How long to wait between rounds of attempts: doubled with every round in which no controller took the agent, and,
 * apart from that, with every session that broke soon. So each outage begins anew: the agent is never away longer than
 * about twice the time for which the controllers were, however often they went before.
 */
export class Backoff {
  readonly #random: Random;
  #emptyRounds = 0;
  #shortSessions = 0;
  #taken = false;

  constructor(random: Random) {
    this.#random = random;
  }

  note(attempt: Attempt): void {
    if (attempt === "none") return;
    this.#taken = true;
    this.#emptyRounds = 0;
    this.#shortSessions = attempt === "steady" ? 0 : this.#shortSessions + 1;
  }

  /** At the end of a round. Somewhere between half and all of it, so that a thousand agents do not come back at once. */
  nextPauseMs(): number {
    const failures = this.#taken ? this.#shortSessions : ++this.#emptyRounds;
    this.#taken = false;
    return longestPauseMs(failures) * (0.5 + this.#random.next() / 2);
  }
}

function longestPauseMs(failures: number): number {
  return Math.min(SESSION_BACKOFF_MAX_MS, SESSION_BACKOFF_MIN_MS * 2 ** Math.min(failures, 16));
}
