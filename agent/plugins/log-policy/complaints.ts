import { LOG_COMPLAINTS_MAX } from "../../../common/limits.ts";
import type { LogWork } from "./work.ts";

/** Reports what a policy does not follow: in the state of the policy, and once in the agent's log. */
export class Complaints {
  readonly #work: LogWork;
  readonly #logged = new Set<string>();
  #problem: string | undefined;

  constructor(work: LogWork) {
    this.#work = work;
  }

  /** The first reason of the last scan. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** `problem`: the reason why the folder itself cannot be read. It is in the state of the policy only. */
  beginLook(problem: string | undefined): void {
    this.#problem = problem;
  }

  add(reason: string): void {
    this.#problem ??= reason;
    if (this.#logged.has(reason) || this.#logged.size >= LOG_COMPLAINTS_MAX) return;
    this.#logged.add(reason);
    this.#work.host.log("warn", reason, { policy: this.#work.policy.name });
  }
}
