import { withinTime } from "../../../../common/concurrency.ts";
import { AppError } from "../../../../common/errors.ts";
import { ulidOf, ulidTimeMs } from "../../../../common/ids.ts";
import {
  DEPLOY_WAIT_BEGIN_MS,
  DEPLOY_WAIT_MAX_MS,
  DEPLOY_WAITING_HOSTS_MAX,
  DEPLOY_WAITS_KEPT_HOSTS_MAX,
  DEPLOY_WAITS_KEPT_MAX,
  DEPLOY_WAITS_MAX,
  SHUTDOWN_WORK_MS,
} from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Objects } from "../../objects/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { DEPLOYMENT_PATH } from "../classes.ts";
import type { DeploymentRequest, HostWork } from "../deployment-requests.ts";
import { WaitingAttempts, type AttemptDependencies } from "./attempts.ts";
import { WaitingStore, type HostOfWait } from "./store.ts";
import type { WaitingDeployment, WaitingHost } from "./types.ts";

export interface WaitingDependencies extends AttemptDependencies {
  readonly stores: Stores;
  readonly objects: Pick<Objects, "visible">;
}

interface WaitOptions {
  readonly action: "deploy" | "undeploy";
  readonly waitMs: number;
}

/** A deployment and the states of its hosts. */
export interface WaitingDetails {
  readonly deployment: WaitingDeployment;
  readonly hosts: readonly WaitingHost[];
}

export interface WaitingListed {
  readonly deployment: WaitingDeployment;
  /** True if the state of a host is not final. */
  readonly isOpen: boolean;
}

/**
 * Deployments that wait for hosts that are away. A host gets each of them once, the oldest first, when it comes back.
 * The store holds them, so any controller goes on with them.
 */
export class WaitingDeployments {
  readonly #with: WaitingDependencies;
  readonly #store: WaitingStore;
  readonly #attempts: WaitingAttempts;

  constructor(dependencies: WaitingDependencies) {
    this.#with = dependencies;
    this.#store = new WaitingStore(dependencies.stores);
    this.#attempts = new WaitingAttempts(dependencies, this.#store);
  }

  /**
   * Checks the request as `deploy` and `undeploy` do, and stores it. Hosts that are there are begun at once.
   * `AppError("too_large")` if too many deployments or hosts wait already.
   */
  async begin(principal: Principal, request: DeploymentRequest, options: WaitOptions): Promise<WaitingDeployment> {
    requirePermission(principal, "depots:run");
    const { action, waitMs } = options;
    if (waitMs <= 0 || waitMs > DEPLOY_WAIT_MAX_MS)
      throw new AppError("invalid", `wait is more than 0 and at most ${DEPLOY_WAIT_MAX_MS / 86_400_000}d.`);
    const work = await this.#with.deployments.prepared(principal, request, action);
    if (work.length === 0) throw new AppError("invalid", "No host matches these targets, so none can be waited for.");
    const deployment = this.#newDeployment(principal, request, { ...options, work });
    await this.#makeRoom(deployment);
    const hosts = [...new Set(work.map(({ host }) => host))].map((host, at) => this.#newHost(deployment, host, at));
    await this.#store.begin(deployment, hosts);
    for (const { host } of hosts) this.#attempts.soon(principal.tenant, host);
    return deployment;
  }

  /** Deployments of which the principal may see a record, the newest first. */
  async list(principal: Principal): Promise<readonly WaitingListed[]> {
    requirePermission(principal, "depots:read");
    const all: WaitingDeployment[] = [];
    for await (const one of this.#store.all(principal.tenant)) all.push(one);
    const open = new Set<string>();
    for await (const { deployment } of this.#store.open(principal.tenant)) open.add(deployment);
    const listed: WaitingListed[] = [];
    for (const deployment of all.reverse()) {
      if (await this.#isSeen(principal, deployment))
        listed.push({ deployment, isOpen: open.has(deployment.deployment) });
    }
    return listed;
  }

  /** The hosts of which the principal may see a record. `AppError("not_found")` if it may see none. */
  async get(principal: Principal, id: string): Promise<WaitingDetails> {
    requirePermission(principal, "depots:read");
    const found = await this.#details(principal, id);
    if (found === undefined) throw notFound(id);
    return found;
  }

  /**
   * Ends the deployment on all hosts that wait. A host on which it runs goes on. Idempotent. `AppError("not_found")` if
   * the principal may see no record of it.
   */
  async cancel(principal: Principal, id: string): Promise<WaitingDetails> {
    requirePermission(principal, "depots:run");
    if ((await this.#details(principal, id)) === undefined) throw notFound(id);
    await this.#store.cancel(principal.tenant, id, principal.user);
    for await (const host of this.#store.hosts(principal.tenant, id))
      if (host.state === "waiting") await this.#attempts.endIfDue(host);
    return (await this.#details(principal, id)) ?? Promise.reject(notFound(id));
  }

  /** The host may have come back. */
  came(tenant: string, host: string): void {
    this.#attempts.soon(tenant, host);
  }

  /**
   * Ends what is cancelled or out of time, and begins what can be begun. Idempotent; safe on several controllers. Does
   * not wait for the hosts.
   */
  async maintain(tenant: string): Promise<void> {
    const hosts = new Set<string>();
    for await (const open of this.#store.open(tenant)) {
      const isThere = (await this.#store.find(tenant, open.deployment)) !== undefined;
      if (isThere) {
        await this.#attempts.endIfDue(open);
        hosts.add(open.host);
      } else await this.#forgetOld(open);
    }
    for (const host of hosts) this.#attempts.soon(tenant, host);
  }

  /** Resolves when no attempt of this controller runs. */
  settled(): Promise<void> {
    return this.#attempts.settled();
  }

  /** Begins nothing more, and waits for the attempts that run, at most `SHUTDOWN_WORK_MS`. */
  async stop(): Promise<void> {
    this.#attempts.stop();
    await withinTime(this.#with.runtime.clock, this.#attempts.settled(), SHUTDOWN_WORK_MS);
  }

  async #forgetOld(open: HostOfWait): Promise<void> {
    const begunMs = ulidTimeMs(open.deployment) ?? 0;
    if (begunMs + DEPLOY_WAIT_BEGIN_MS <= this.#with.runtime.clock.nowMs()) await this.#store.forget(open);
  }

  async #isSeen(principal: Principal, deployment: WaitingDeployment): Promise<boolean> {
    const sees = await this.#seeing(principal, deployment);
    for await (const host of this.#store.hosts(principal.tenant, deployment.deployment)) if (sees(host)) return true;
    return false;
  }

  async #details(principal: Principal, id: string): Promise<WaitingDetails | undefined> {
    const deployment = (await this.#store.find(principal.tenant, id))?.value;
    if (deployment === undefined) return undefined;
    const sees = await this.#seeing(principal, deployment);
    const hosts: WaitingHost[] = [];
    for await (const host of this.#store.hosts(principal.tenant, id)) if (sees(host)) hosts.push(host);
    return hosts.length === 0 ? undefined : { deployment, hosts };
  }

  /** The rules for records of deployments apply to deployments that wait. */
  async #seeing(principal: Principal, of: WaitingDeployment): Promise<(host: WaitingHost) => boolean> {
    const { action, user, deployment, depots } = of;
    const { sees } = await this.#with.objects.visible.records(principal, principal.ospace + DEPLOYMENT_PATH);
    return ({ host }) =>
      depots.every(({ depot, version }) => sees({ id: deployment }, { action, host, depot, version, username: user }));
  }

  #newDeployment(
    { tenant, ospace, traceparent, user }: Principal,
    { command, remotepath, force, timeoutSeconds }: DeploymentRequest,
    { action, waitMs, work }: WaitOptions & { readonly work: readonly HostWork[] },
  ): WaitingDeployment {
    const nowMs = this.#with.runtime.clock.nowMs();
    const [first] = work;
    const depots = work.filter(({ host }) => host === first?.host).map(({ depot, version }) => ({ depot, version }));
    return {
      ...{ deployment: this.#newId(), tenant, ospace, traceparent, user, action, depots },
      ...(command !== undefined && { command }),
      ...(remotepath !== undefined && { remotepath }),
      ...(force !== undefined && { force }),
      ...(timeoutSeconds !== undefined && { timeoutSeconds }),
      hosts: work.length / depots.length,
      createdMs: nowMs,
      untilMs: nowMs + waitMs,
    };
  }

  #newHost(
    { deployment, tenant, action, depots, createdMs }: WaitingDeployment,
    host: string,
    at: number,
  ): WaitingHost {
    return {
      ...{ deployment, tenant, host },
      ordinal: at * depots.length,
      commandIds: depots.map(() => `${action}/${deployment}/${this.#newId()}`),
      state: "waiting",
      round: 0,
      outcomes: [],
      sinceMs: createdMs,
    };
  }

  #newId(): string {
    const { clock, random } = this.#with.runtime;
    return ulidOf(clock.nowMs(), random.bytes(10));
  }

  /** Removes the oldest ended deployments if too many are listed. Calls at the same time may pass a bound together. */
  async #makeRoom(next: WaitingDeployment): Promise<void> {
    const { tenant } = next;
    const open = new Set<string>();
    let hosts = next.hosts;
    for await (const { deployment } of this.#store.open(tenant)) {
      open.add(deployment);
      hosts += 1;
    }
    if (open.size >= DEPLOY_WAITS_MAX || hosts > DEPLOY_WAITING_HOSTS_MAX)
      throw new AppError(
        "too_large",
        `At most ${DEPLOY_WAITS_MAX} deployments wait, for ${DEPLOY_WAITING_HOSTS_MAX} hosts together. Cancel some of them first.`,
      );
    const kept: WaitingDeployment[] = [next];
    for await (const one of this.#store.all(tenant)) kept.push(one);
    let [count, all] = [kept.length, kept.reduce((sum, one) => sum + one.hosts, 0)];
    for (const one of kept) {
      if (count <= DEPLOY_WAITS_KEPT_MAX && all <= DEPLOY_WAITS_KEPT_HOSTS_MAX) return;
      if (one === next || open.has(one.deployment)) continue;
      await this.#store.remove(one);
      [count, all] = [count - 1, all - one.hosts];
    }
  }
}

function notFound(id: string): AppError {
  return new AppError("not_found", `There is no waiting deployment ${id}.`);
}
