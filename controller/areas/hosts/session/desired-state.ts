import { errorText } from "../../../../common/errors.ts";
import { DESIRED_RECHECK_MS } from "../../../../common/limits.ts";
import type { ControllerFrame } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type { AgentIdentity, DesiredStateSource } from "../types.ts";
import { depotDigests, desiredFrame } from "./frames.ts";

export interface DesiredStateDependencies {
  readonly runtime: Runtime;
  readonly source: DesiredStateSource;
  readonly identity: AgentIdentity;
  readonly send: (frame: ControllerFrame["frame"]) => void;
  /** Returns true if the session is over. */
  readonly isOver: () => boolean;
}

/** Sends the desired state of one host in its session. */
export class DesiredState {
  readonly #with: DesiredStateDependencies;
  #digests: ReadonlySet<string> = new Set();
  #sending: Promise<void> | undefined;
  #stale = false;
  /** True if the state must be sent even though its revision was already sent. */
  #asked = false;
  #readAtMs: number;
  #revision: number | undefined;

  constructor(dependencies: DesiredStateDependencies) {
    this.#with = dependencies;
    this.#readAtMs = dependencies.runtime.clock.monotonicMs();
  }

  /** Returns true if the content belongs to a policy of this host. */
  refersTo(digest: string): boolean {
    return this.#digests.has(digest);
  }

  /** Sends the desired state. Calls while it is being sent are combined into one more send. */
  refresh(): Promise<void> {
    this.#stale = true;
    this.#asked = true;
    return this.#sendStale();
  }

  /** Reads the desired state again after an interval and sends it if it changed. */
  recheck(nowMs: number): void {
    if (nowMs - this.#readAtMs >= DESIRED_RECHECK_MS) void this.#recheck();
  }

  #sendStale(): Promise<void> {
    this.#sending ??= this.#send();
    return this.#sending;
  }

  async #send(): Promise<void> {
    const { runtime, source, identity, send, isOver } = this.#with;
    try {
      while (this.#stale && !isOver()) {
        this.#stale = false;
        this.#readAtMs = runtime.clock.monotonicMs();
        const state = await source.desired(identity.tenant, identity.host);
        this.#digests = new Set(state.policies.flatMap((policy) => depotDigests(policy.depot)));
        const known = this.#revision === state.revision && !this.#asked;
        this.#asked = false;
        if (known) continue;
        this.#revision = state.revision;
        send(desiredFrame(state));
      }
    } finally {
      this.#sending = undefined;
    }
  }

  /** Covers a lost notification. Normally the controller that changes the state notifies the others. */
  async #recheck(): Promise<void> {
    try {
      this.#stale = true;
      await this.#sendStale();
    } catch (error) {
      const { tenant, host } = this.#with.identity;
      this.#with.runtime.log.warn(
        { tenant, host, reason: errorText(error) },
        "the desired state could not be read again",
      );
    }
  }
}
