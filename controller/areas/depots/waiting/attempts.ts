import { errorText, isAppError } from "../../../../common/errors.ts";
import { DEPLOY_DEFAULT_S, DEPLOY_MAX_S, DEPLOY_PARALLEL_HOSTS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Hosts } from "../../hosts/index.ts";
import { systemPrincipal, type Principal } from "../../permissions/index.ts";
import type { NewDeployment } from "../deployment-records.ts";
import type { HostWork } from "../deployment-requests.ts";
import type { DeploymentService } from "../deployment.ts";
import type { DeploymentOutcome } from "../types.ts";
import { HostQueue } from "./host-queue.ts";
import type { HostOfWait, Stored, WaitingStore } from "./store.ts";
import type { WaitingDeployment, WaitingHost } from "./types.ts";

export interface AttemptDependencies {
  readonly deployments: Pick<DeploymentService, "prepared" | "beginning" | "attempt" | "recordUnsent">;
  readonly hosts: Pick<Hosts, "agentState" | "settings">;
  readonly authors: {
    /** `undefined`: the user does not exist or is inactive. */
    present(tenant: string, username: string): Promise<Principal | undefined>;
  };
  readonly runtime: Runtime;
}

interface Due {
  readonly of: Stored<WaitingDeployment>;
  readonly from: Stored<WaitingHost>;
}

interface UnsentEnd {
  readonly state: "expired" | "cancelled" | "failed";
  readonly message: string;
}

/** Deploys to hosts that were waited for, one deployment after another on each host. */
export class WaitingAttempts {
  readonly #with: AttemptDependencies;
  readonly #store: WaitingStore;
  readonly #queue: HostQueue;
  #isStopping = false;

  constructor(dependencies: AttemptDependencies, store: WaitingStore) {
    this.#with = dependencies;
    this.#store = store;
    this.#queue = new HostQueue(DEPLOY_PARALLEL_HOSTS, (key) => this.#serve(key));
  }

  /** Looks soon whether something waits for the host and can be begun. */
  soon(tenant: string, host: string): void {
    if (!this.#isStopping) this.#queue.add(`${tenant}/${host}`);
  }

  settled(): Promise<void> {
    return this.#queue.settled();
  }

  /** Begins nothing more. */
  stop(): void {
    this.#isStopping = true;
    this.#queue.clear();
  }

  /** Ends the deployment on this host if it waits there and is cancelled or out of time. Returns true if it has ended. */
  async endIfDue(one: HostOfWait): Promise<boolean> {
    const due = await this.#due(one);
    const end = due && endOf(due.of.value, this.#with.runtime.clock.nowMs());
    return end !== undefined && due !== undefined && this.#endUnsent(due, end);
  }

  async #serve(key: string): Promise<void> {
    const at = key.indexOf("/");
    const [tenant, host] = [key.slice(0, at), key.slice(at + 1)];
    try {
      while (!this.#isStopping) {
        const oldest = await this.#store.oldest(tenant, host);
        if (oldest === undefined || !(await this.#advance(oldest))) return;
      }
    } catch (error) {
      // Maintenance looks again.
      this.#with.runtime.log.warn({ err: error, tenant, host }, "a waiting deployment is tried again later");
    }
  }

  /** Returns true if the deployment has ended on the host, so that the next one may begin there. */
  async #advance(one: HostOfWait): Promise<boolean> {
    if (await this.endIfDue(one)) return true;
    const due = await this.#due(one);
    if (due === undefined) return false;
    const { tenant, ospace, traceparent, user } = due.of.value;
    const reach = await this.#reach(systemPrincipal(tenant, ospace, traceparent), one.host);
    if (reach === "away") return false;
    if (reach === "absent") return this.#endUnsent(due, failed(`There is no host ${one.host}.`));
    const principal = await this.#with.authors.present(tenant, user);
    if (principal === undefined)
      return this.#endUnsent(due, failed(`The user ${user} who asked for it does not exist or is inactive.`));
    const work = await this.#work({ ...principal, ospace, traceparent }, due);
    if ("message" in work) return this.#endUnsent(due, failed(work.message));
    await this.#attempt({ ...principal, ospace, traceparent }, due, work);
    const state = (await this.#store.host(one))?.value.state;
    // It may have been cancelled, or its time may have ended, during the attempt.
    return state === "waiting" ? this.endIfDue(one) : state !== "running";
  }

  /** The deployment if it waits for the host. */
  async #due(one: HostOfWait): Promise<Due | undefined> {
    const [of, from] = [await this.#store.find(one.tenant, one.deployment), await this.#store.host(one)];
    return of && from?.value.state === "waiting" ? { of, from } : undefined;
  }

  /** A host without an agent, and one with credentials for SSH, may be there: only an attempt shows it. */
  async #reach(platform: Principal, host: string): Promise<"absent" | "away" | "perhaps"> {
    const agent = await this.#with.hosts.agentState(platform, host);
    if (agent === undefined) return "absent";
    if (agent.isOnline || !agent.hasAgent) return "perhaps";
    const { config } = await this.#with.hosts.settings(platform, host);
    return (config["username"] ?? "") === "" ? "away" : "perhaps";
  }

  /** The work that is left, as the user may do it now; or the reason why it may not be done. */
  async #work(principal: Principal, { of, from }: Due): Promise<readonly HostWork[] | { readonly message: string }> {
    const { action, depots, command, remotepath, force } = of.value;
    const left = depots.slice(from.value.outcomes.length);
    const request = {
      hosts: [from.value.host],
      depots: left.map(({ depot }) => depot),
      versions: left.map(({ version }) => version),
      ...(command !== undefined && { command }),
      ...(remotepath !== undefined && { remotepath }),
      ...(force !== undefined && { force }),
    };
    try {
      return await this.#with.deployments.prepared(principal, request, action);
    } catch (error) {
      if (isAppError(error, "denied", "not_found", "conflict", "invalid", "too_large"))
        return { message: errorText(error) };
      throw error;
    }
  }

  async #attempt(principal: Principal, due: Due, work: readonly HostWork[]): Promise<void> {
    const { of, from } = due;
    const round = from.value.round + 1;
    const { open, within } = this.#with.deployments.beginning(principal, { ...this.#opened(due), round });
    const to = { ...from.value, state: "running", round, sinceMs: this.#with.runtime.clock.nowMs() } as const;
    // Another controller was first, or the deployment was cancelled.
    const revision = await this.#store.change({ of, from, to, within });
    if (revision !== undefined) await this.#with.deployments.attempt(principal, { open, revision }, work);
  }

  /** Returns false if another controller was first. */
  async #endUnsent(due: Due, { state, message }: UnsentEnd): Promise<boolean> {
    const { of, from } = due;
    const { tenant, ospace, traceparent } = of.value;
    const nowMs = this.#with.runtime.clock.nowMs();
    const platform = systemPrincipal(tenant, ospace, traceparent);
    const opened = this.#opened(due);
    const end = opened.targets.map(
      ({ depot, version }): DeploymentOutcome => ({
        ...{ host: from.value.host, depot, version, state, message },
        startedMs: nowMs,
        endedMs: nowMs,
      }),
    );
    const { open, within } = this.#with.deployments.beginning(platform, { ...opened, isUnsent: true }, end);
    const to = { ...from.value, state, outcomes: [...from.value.outcomes, ...end], sinceMs: nowMs };
    if ((await this.#store.change({ of, from, to, within })) === undefined) return false;
    await this.#with.deployments.recordUnsent(platform, open);
    this.soon(tenant, from.value.host);
    return true;
  }

  #opened({ of, from }: Due): NewDeployment {
    const { deployment, tenant, ospace, traceparent, user, action, depots, timeoutSeconds } = of.value;
    const { host, commandIds, ordinal, outcomes } = from.value;
    const seconds = Math.min(timeoutSeconds ?? DEPLOY_DEFAULT_S, DEPLOY_MAX_S);
    return {
      ...{ deployment, host, tenant, ospace, traceparent, user, action },
      deadlineMs: this.#with.runtime.clock.nowMs() + seconds * 1_000,
      ordinal: ordinal + outcomes.length,
      targets: depots.map((pair, at) => ({ ...pair, commandId: commandIds[at] ?? "" })).slice(outcomes.length),
    };
  }
}

function endOf({ cancelledBy, untilMs }: WaitingDeployment, nowMs: number): UnsentEnd | undefined {
  if (cancelledBy !== undefined) return { state: "cancelled", message: `${cancelledBy} cancelled it.` };
  if (untilMs <= nowMs) return { state: "expired", message: "The host did not come back in time." };
  return undefined;
}

function failed(message: string): UnsentEnd {
  return { state: "failed", message };
}
