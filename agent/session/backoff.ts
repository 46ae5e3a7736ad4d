import { SESSION_BACKOFF_MAX_MS, SESSION_BACKOFF_MIN_MS } from "../../common/limits.ts";
import type { Random } from "../../common/time.ts";

/**
 * Result of an attempt to connect: `none` without a session, `short` with a session that ended before
 * `SESSION_STEADY_MS`, `steady` with a longer one.
 */
export type Attempt = "none" | "short" | "steady";

/**
 * Computes the pause between rounds of connection attempts. In a round, the agent tries every controller once. The
 * pause doubles, up to `SESSION_BACKOFF_MAX_MS`, with each round in which no controller accepted the agent. It also
 * doubles with each session that ended soon; these are counted separately. The first count starts again with each
 * accepted session. So the agent stays away at most about twice as long as the controllers were unavailable, no matter
 * how many outages there were before.
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

  /**
   * The pause after a round. It is random, between half and the whole of the computed pause, so that a thousand agents
   * do not reconnect at the same time.
   */
  nextPauseMs(): number {
    const failures = this.#taken ? this.#shortSessions : ++this.#emptyRounds;
    this.#taken = false;
    return longestPauseMs(failures) * (0.5 + this.#random.next() / 2);
  }
}

function longestPauseMs(failures: number): number {
  return Math.min(SESSION_BACKOFF_MAX_MS, SESSION_BACKOFF_MIN_MS * 2 ** Math.min(failures, 16));
}
