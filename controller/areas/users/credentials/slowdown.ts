import { AppError } from "../../../../common/errors.ts";
import {
  SIGN_IN_FREE_FAILURES_PER_ADDRESS,
  SIGN_IN_FREE_FAILURES_PER_USER,
  SIGN_IN_TABLE_MAX_ENTRIES,
} from "../../../../common/limits.ts";
import { networkOf } from "../../../settings/network.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { type CheckOutcome, LocalFailures } from "./failures.ts";
import { type CountedBefore, SharedFailures } from "./shared-failures.ts";

export interface Guess {
  /** Tenant and user name. */
  readonly user: string;
  readonly remote: string;
  /** True if the user has a session from that network. Called only while the network has to wait. */
  readonly hasSessionFrom: (network: string) => Promise<boolean>;
}

/** A counter of failures, of one user from one network or of one network. */
interface Counter {
  readonly name: string;
  readonly free: number;
  /**
   * An attempt is counted before its check if the number of failures plus unfinished attempts on this controller is
   * greater than this. The number includes the attempt itself.
   */
  readonly countedBeforeFrom: number;
  /** True if a right password forgives all failures; false if it forgives only its own attempt. */
  readonly isForgiven: boolean;
}

interface Begun {
  readonly counter: Counter;
  readonly isThere: boolean;
  readonly before: CountedBefore | undefined;
}

/**
 * Slows down guessing. Failures of one user from one network cost a waiting time that doubles, and so do all failures
 * of one network. Other networks do not wait. A user who signed in from that network before waits only for the user's
 * own failures. The store counts failures of all controllers together. After failures, an attempt is counted before it
 * is checked, so that parallel attempts on several controllers do not get one free try each. A right first attempt
 * writes nothing.
 */
export class SignInSlowdown {
  readonly #local: LocalFailures;
  readonly #shared: SharedFailures;
  readonly #log: Runtime["log"];
  /** User and network of successful sign-ins, latest last. */
  readonly #known = new Set<string>();

  constructor(stores: Stores, { clock, log }: Pick<Runtime, "clock" | "log">) {
    this.#local = new LocalFailures(clock);
    this.#shared = new SharedFailures(stores, clock);
    this.#log = log;
  }

  /**
   * Runs the check and answers its value. While the caller has to wait, throws `AppError("limited")` without running
   * the check or counting the attempt. A check that throws counts as wrong.
   */
  async during<T>(
    { user, remote, hasSessionFrom }: Guess,
    check: () => Promise<{ readonly outcome: CheckOutcome; readonly value: T }>,
  ): Promise<T> {
    const network = networkOf(remote);
    const byUser = `${network} ${user}`;
    const isKnown = async (): Promise<boolean> => this.#known.has(byUser) || (await hasSessionFrom(network));
    refuse(this.#local.waitMs(byUser));
    if (this.#local.waitMs(network) > 0 && !(await isKnown())) refuse(this.#local.waitMs(network));
    const own = { name: byUser, free: SIGN_IN_FREE_FAILURES_PER_USER, countedBeforeFrom: 1, isForgiven: true };
    const free = SIGN_IN_FREE_FAILURES_PER_ADDRESS;
    const all = { name: network, free, countedBeforeFrom: free / 2, isForgiven: false };
    const ends = [own, all].map(({ name, free: costless }) => this.#local.begin(name, costless));
    let outcome: CheckOutcome = "half";
    try {
      const begun = await this.#begin(own, all, isKnown);
      outcome = "wrong";
      const checked = await check();
      outcome = checked.outcome;
      await this.#settle(begun, outcome);
      if (outcome === "right") this.#know(byUser);
      return checked.value;
    } finally {
      ends.forEach((end, at) => end(outcome, at === 0));
    }
  }

  async #begin(own: Counter, all: Counter, isKnown: () => Promise<boolean>): Promise<readonly Begun[]> {
    const counters = [own, all];
    const found = await Promise.all(counters.map(({ name }) => this.#shared.read(name)));
    const [ownFound, allFound] = found;
    refuse(ownFound?.waitMs ?? 0);
    const isExempt = (allFound?.waitMs ?? 0) > 0 && (await isKnown());
    if (!isExempt) refuse(allFound?.waitMs ?? 0);
    const begun: Begun[] = [];
    for (const [at, counter] of counters.entries()) {
      const { record, isThere } = found[at] ?? { record: { count: 0 }, isThere: false };
      const isBefore = record.count + this.#local.underWay(counter.name) > counter.countedBeforeFrom;
      const before = isBefore ? await this.#countBefore(counter, isExempt && counter === all, begun) : undefined;
      begun.push({ counter, isThere, before });
    }
    return begun;
  }

  /**
   * Counts an attempt before its check. If another attempt came first and caused a waiting time, takes back the counts
   * made so far and throws `AppError("limited")`.
   */
  async #countBefore({ name, free }: Counter, isExempt: boolean, begun: readonly Begun[]): Promise<CountedBefore> {
    const counted = await this.#shared.count(name, free, !isExempt);
    if (counted !== undefined) return counted;
    await this.#settle(begun, "half");
    const { waitMs } = await this.#shared.read(name);
    throw tooMany(Math.max(waitMs, 1));
  }

  /**
   * Stores the result of the check for all controllers. An error of the store is only logged: the local count of this
   * controller still applies.
   */
  async #settle(begun: readonly Begun[], outcome: CheckOutcome): Promise<void> {
    try {
      await Promise.all(begun.map((one) => this.#settled(one, outcome)));
    } catch (error) {
      this.#log.warn({ err: error }, "a sign-in could not be counted for other controllers");
    }
  }

  async #settled(
    { counter: { name, free, isForgiven }, isThere, before }: Begun,
    outcome: CheckOutcome,
  ): Promise<void> {
    if (outcome === "wrong") {
      if (before === undefined) await this.#shared.count(name, free);
    } else if (outcome === "right" && isForgiven) {
      if (isThere || before !== undefined) await this.#shared.forget(name);
    } else if (before !== undefined) await this.#shared.takeBack(name, before);
  }

  #know(byUser: string): void {
    this.#known.delete(byUser);
    this.#known.add(byUser);
    const [oldest] = this.#known;
    if (this.#known.size > SIGN_IN_TABLE_MAX_ENTRIES && oldest !== undefined) this.#known.delete(oldest);
  }
}

function refuse(waitMs: number): void {
  if (waitMs > 0) throw tooMany(waitMs);
}

function tooMany(waitMs: number): AppError {
  const seconds = Math.ceil(waitMs / 1_000);
  return new AppError("limited", `Too many failed sign-ins; try again in ${String(seconds)} s.`, {
    details: { retryAfterSeconds: seconds },
  });
}
