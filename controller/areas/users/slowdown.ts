import { AppError } from "../../../common/errors.ts";
import {
  SIGN_IN_DELAY_MAX_MS,
  SIGN_IN_DELAY_MIN_MS,
  SIGN_IN_FORGET_MS,
  SIGN_IN_FREE_FAILURES_PER_ADDRESS,
  SIGN_IN_FREE_FAILURES_PER_USER,
  SIGN_IN_TABLE_MAX_ENTRIES,
} from "../../../common/limits.ts";
import { networkOf } from "../../network.ts";
import type { Clock } from "../../../common/time.ts";

interface Failures {
  count: number;
  lastMs: number;
  blockedUntilMs: number;
}

interface CountedAttempt {
  readonly succeeded: () => void;
  /** It was neither good nor bad: nothing is forgiven but itself. */
  readonly withdrawn: () => void;
}

/**
 * Slows down guessing: failures of one user from one network, and of one network altogether, cost waiting time that
 * doubles. Others are not kept out by it, nor are users who signed in from that network before: of those only their own
 * failures count. Bounded; the oldest is forgotten first.
 */
export class SignInSlowdown {
  readonly #clock: Clock;
  readonly #table = new Map<string, Failures>();
  /** User and network of successful sign-ins, the latest last. */
  readonly #known = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Counts an attempt as failed until `succeeded` says otherwise, so that many at once count as many. Throws
   * `AppError("limited")`, uncounted, while the caller has to wait.
   */
  attempt(user: string, remote: string): CountedAttempt {
    const network = networkOf(remote);
    const byUser = `${network} ${user}`;
    this.#refuseWhileBlocked(byUser);
    if (!this.#known.has(byUser)) this.#refuseWhileBlocked(network);
    this.#count(byUser, SIGN_IN_FREE_FAILURES_PER_USER);
    this.#count(network, SIGN_IN_FREE_FAILURES_PER_ADDRESS);
    return {
      succeeded: () => {
        this.#table.delete(byUser);
        this.#forgive(network);
        this.#know(byUser);
      },
      withdrawn: () => {
        this.#forgive(byUser);
        this.#forgive(network);
      },
    };
  }

  #know(byUser: string): void {
    this.#known.delete(byUser);
    this.#known.add(byUser);
    const [oldest] = this.#known;
    if (this.#known.size > SIGN_IN_TABLE_MAX_ENTRIES && oldest !== undefined) this.#known.delete(oldest);
  }

  #refuseWhileBlocked(key: string): void {
    const failures = this.#table.get(key);
    if (failures === undefined) return;
    const now = this.#clock.monotonicMs();
    if (now - failures.lastMs > SIGN_IN_FORGET_MS) this.#table.delete(key);
    else if (now < failures.blockedUntilMs) {
      const seconds = Math.ceil((failures.blockedUntilMs - now) / 1_000);
      throw new AppError("limited", `Too many failed sign-ins; try again in ${String(seconds)} s.`, {
        details: { retryAfterSeconds: seconds },
      });
    }
  }

  #count(key: string, free: number): void {
    const now = this.#clock.monotonicMs();
    const failures = this.#table.get(key) ?? { count: 0, lastMs: now, blockedUntilMs: 0 };
    failures.count++;
    failures.lastMs = now;
    const over = failures.count - free;
    if (over > 0)
      failures.blockedUntilMs =
        now + Math.min(SIGN_IN_DELAY_MAX_MS, SIGN_IN_DELAY_MIN_MS * 2 ** Math.min(over - 1, 30));
    // Put at the end again: the table is kept in the order of the latest failure.
    this.#table.delete(key);
    this.#table.set(key, failures);
    if (this.#table.size > SIGN_IN_TABLE_MAX_ENTRIES) this.#forgetOldest();
  }

  #forgive(key: string): void {
    const failures = this.#table.get(key);
    if (failures === undefined) return;
    failures.count--;
    failures.blockedUntilMs = 0;
    if (failures.count <= 0) this.#table.delete(key);
  }

  #forgetOldest(): void {
    const [oldest] = this.#table.keys();
    if (oldest !== undefined) this.#table.delete(oldest);
  }
}
