import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { ulidOf, ulidTimeMs } from "../../../common/ids.ts";
import { DEPLOY_DEFAULT_S, DEPLOY_LOST_AFTER_MS, DEPLOY_MAX_S, DEPLOY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import { fileName } from "../../../common/paths.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers } from "../../store/journal/index.ts";
import type { CommandOutcome, Hosts, HostTargets, StoredCommands } from "../hosts/index.ts";
import type { Notifications } from "../notifications/index.ts";
import type { Objects, Unrestricted } from "../objects/index.ts";
import { allows, requireOneOf, requirePermission, systemPrincipal, type Principal } from "../permissions/index.ts";
import { DEPLOYMENT_PATH } from "./classes.ts";
import { DeploymentChecks } from "./deployment-checks.ts";
import { DeploymentCommands } from "./deployment-commands.ts";
import {
  deploymentNotice,
  DeploymentRecords,
  type DeploymentAction,
  type DeploymentTarget,
  type NewDeployment,
  type OpenDeployment,
  type VersionedDeployment,
} from "./deployment-records.ts";
import {
  byHost,
  checkedPairs,
  placeOf,
  resolvedRequest,
  workOf,
  type DeploymentRequest,
  type HostWork,
} from "./deployment-requests.ts";
import { LateResults } from "./late-results.ts";
import type { DeploymentOutcome, Depots } from "./types.ts";
import { depotVersion } from "./version.ts";

export interface DeploymentDependencies {
  readonly depots: Pick<Depots, "toDeploy" | "isStored" | "users">;
  readonly hosts: Pick<Hosts, "dispatch" | "noteDepot" | "depotsOn">;
  readonly targets: Pick<HostTargets, "hosts">;
  readonly stores: Stores;
  readonly stored: Pick<StoredCommands, "outcome">;
  readonly objects: Pick<Objects, "visible"> & Unrestricted<"ingest">;
  readonly notifications: Pick<Notifications, "publish">;
  readonly controllers: Controllers;
  readonly runtime: Runtime;
}

interface WorkOptions {
  readonly action: DeploymentAction;
  readonly timeoutSeconds?: number | undefined;
  /** True: also if versions that leave the hosts are in use there. */
  readonly force?: boolean | undefined;
}

interface Run {
  readonly id: string;
  readonly action: DeploymentAction;
  /** The deadline by the wall clock. `deadlineMonotonicMs` is the same deadline by the monotonic clock. */
  readonly deadlineMs: number;
  readonly deadlineMonotonicMs: number;
  /** Work by host, in the order in which it is done. */
  readonly hosts: ReadonlyMap<string, readonly HostWork[]>;
}

/**
 * Deploys depots to hosts. Every depot on every host has exactly one final state by the deadline, even if the host
 * fails. If a controller dies, another one ends its deployments: with the results that agents reported, or as
 * `expired`.
 */
export class DeploymentService {
  readonly #depots: DeploymentDependencies["depots"];
  readonly #checks: DeploymentChecks;
  readonly #commands: DeploymentCommands;
  readonly #targets: DeploymentDependencies["targets"];
  readonly #stored: DeploymentDependencies["stored"];
  readonly #records: DeploymentRecords;
  readonly #late: LateResults;
  readonly #objects: DeploymentDependencies["objects"];
  readonly #notifications: DeploymentDependencies["notifications"];
  readonly #runtime: Runtime;

  constructor(dependencies: DeploymentDependencies) {
    this.#depots = dependencies.depots;
    this.#checks = new DeploymentChecks(dependencies);
    this.#commands = new DeploymentCommands(dependencies);
    this.#targets = dependencies.targets;
    this.#stored = dependencies.stored;
    this.#records = new DeploymentRecords(dependencies);
    this.#late = new LateResults(dependencies.stores);
    this.#objects = dependencies.objects;
    this.#notifications = dependencies.notifications;
    this.#runtime = dependencies.runtime;
  }

  /** `AppError("conflict")` if another version of a depot is in use on one of the hosts, unless `force` is true. */
  async deploy(principal: Principal, request: DeploymentRequest): Promise<readonly DeploymentOutcome[]> {
    requirePermission(principal, "depots:run");
    const pairs = checkedPairs(request);
    const place = placeOf(request);
    const commands = await mapLimited(pairs, DEPLOY_PARALLEL_HOSTS, async (pair) => {
      const depot = await this.#depots.toDeploy(principal, pair.depot, pair.version);
      return { kind: "deploy" as const, ...depot, ...place };
    });
    const work = workOf(await resolvedRequest(this.#targets, principal, request), commands);
    return this.carryOut(principal, work, { ...request, action: "deploy" });
  }

  /**
   * Removes depots from hosts. On a host without that version nothing runs, and its outcome has the message
   * `NOT_DEPLOYED`. The version need not be stored on the controllers any more. `AppError("not_found")` for a depot that
   * is neither stored nor on one of the hosts, `conflict` for a version that is in use on one of them, unless `force` is
   * true.
   */
  async undeploy(principal: Principal, request: DeploymentRequest): Promise<readonly DeploymentOutcome[]> {
    requirePermission(principal, "depots:run");
    const place = placeOf(request);
    const commands = checkedPairs(request).map(({ depot, version }) => ({
      kind: "undeploy" as const,
      name: fileName(depot),
      version: depotVersion(version),
      ...place,
    }));
    const work = workOf(await resolvedRequest(this.#targets, principal, request), commands);
    return this.carryOut(principal, work, { ...request, action: "undeploy" });
  }

  /**
   * Carries out prepared work, with the promises of a deployment. Hosts work in parallel, and the work of a host is done
   * in order. Every host has the same number of works. Throws like `deploy` and `undeploy`.
   */
  async carryOut(
    principal: Principal,
    work: readonly HostWork[],
    options: WorkOptions,
  ): Promise<readonly DeploymentOutcome[]> {
    requirePermission(principal, "depots:run");
    if (work.length === 0) return [];
    await this.#checks.require(principal, work, options);
    return this.#run(principal, this.#begin(work, options));
  }

  #begin(work: readonly HostWork[], { action, timeoutSeconds }: WorkOptions): Run {
    const seconds = Math.min(timeoutSeconds ?? DEPLOY_DEFAULT_S, DEPLOY_MAX_S);
    return {
      id: this.#newId(),
      action,
      hosts: byHost(work),
      deadlineMs: this.#runtime.clock.nowMs() + seconds * 1_000,
      deadlineMonotonicMs: this.#runtime.clock.monotonicMs() + seconds * 1_000,
    };
  }

  #newId(): string {
    return ulidOf(this.#runtime.clock.nowMs(), this.#runtime.random.bytes(10));
  }

  /**
   * Ids of open deployments that these users began, if the principal may see one of their records. See
   * `BegunWork.goesOn`.
   */
  async goesOn(principal: Principal, isTheirs: (username: string) => Promise<boolean>): Promise<readonly string[]> {
    requireOneOf(principal, ["users:write", "perms:write"]);
    if (!allows(principal, "depots:read")) return [];
    const { sees } = await this.#objects.visible.records(principal, principal.ospace + DEPLOYMENT_PATH);
    const seen = new Set<string>();
    for await (const { open } of this.#records.all(principal.tenant)) {
      const { deployment, host, user, action, targets, end } = open;
      const isSeen = ({ depot, version }: DeploymentTarget): boolean =>
        sees({ id: deployment }, { action, host, depot, version, username: user });
      if (end === undefined && targets.some(isSeen) && (await isTheirs(user))) seen.add(deployment);
    }
    return [...seen];
  }

  /**
   * Writes decided outcomes as records. Ends deployments that are open long after their deadline. Records late results
   * on the hosts. Idempotent; safe on several controllers.
   */
  async maintain(tenant: string): Promise<void> {
    const nowMs = this.#runtime.clock.nowMs();
    for await (const held of this.#records.all(tenant)) {
      if (held.open.end) await this.#settle(held.open);
      else if (held.open.deadlineMs + DEPLOY_LOST_AFTER_MS <= nowMs) await this.#endLate(held);
    }
    await this.#takeLate(tenant);
  }

  /**
   * Records late results of hosts. Skips a depot that is being deployed to the host again, because that deployment will
   * record the current state.
   */
  async #takeLate(tenant: string): Promise<void> {
    const underWay = new Set<string>();
    for await (const { open } of this.#records.all(tenant))
      for (const { depot } of open.targets) underWay.add(`${open.host}/${depot}`);
    for await (const { late, close } of this.#late.waiting(tenant, this.#runtime.clock.nowMs())) {
      const { ospace, traceparent, host, depot, version, action } = late;
      if (underWay.has(`${host}/${depot}`)) continue;
      const said = await this.#stored.outcome({ tenant, host, traceparent }, late.commandId);
      if (!said || !(await close()) || said.state !== "ok") continue;
      const target = outcomeOf(said, { host, depot, version });
      await this.#commands.note(systemPrincipal(tenant, ospace, traceparent), action, target);
    }
  }

  /**
   * True if the host was given this command, by a deployment that is open or that ended without a result of the host.
   */
  async gave(tenant: string, host: string, commandId: string): Promise<boolean> {
    const [, deployment] = /^(?:(?:un)?deploy|(?:re)?start|stop)\/([^/]+)\/[^/]+$/.exec(commandId) ?? [];
    if (deployment === undefined) return false;
    const isId = ulidTimeMs(deployment) !== undefined;
    const open = isId ? await this.#records.find(tenant, { deployment, host }) : undefined;
    const isOpen = open?.targets.some((target) => target.commandId === commandId) ?? false;
    return isOpen || this.#late.hear(tenant, host, commandId);
  }

  /** Runs hosts in parallel and the depots of a host in order. Records every target before anything is sent. */
  async #run(principal: Principal, run: Run): Promise<readonly DeploymentOutcome[]> {
    const intended = [...run.hosts.values()].map((work, at) => this.#intended(principal, run, { work, at }));
    const held = await this.#records.open(intended);
    const ended = await mapLimited(held, DEPLOY_PARALLEL_HOSTS, async (each) => {
      const outcomes: DeploymentOutcome[] = [];
      for (const [index, { commandId }] of each.open.targets.entries()) {
        const work = run.hosts.get(each.open.host)?.[index];
        if (work === undefined) throw new AppError("internal", "A deployment lost its command.");
        outcomes.push(await this.#target(principal, run, { work, commandId }));
      }
      return this.#end(each, outcomes);
    });
    return ended.flat();
  }

  #intended(principal: Principal, run: Run, of: { work: readonly HostWork[]; at: number }): NewDeployment {
    const { tenant, ospace, traceparent, user } = principal;
    const { id: deployment, action, deadlineMs } = run;
    const targets = of.work.map(
      ({ depot, version }): DeploymentTarget => ({
        depot,
        version,
        commandId: `${action}/${deployment}/${this.#newId()}`,
      }),
    );
    return {
      deployment,
      host: of.work[0]?.host ?? "",
      tenant,
      ospace,
      traceparent,
      user,
      action,
      deadlineMs,
      targets,
      ordinal: of.at * targets.length,
    };
  }

  /**
   * Decides and records the outcomes for a host. Returns the final ones: these, or those that another controller
   * decided because this one took too long.
   */
  async #end(held: VersionedDeployment, outcomes: readonly DeploymentOutcome[]): Promise<readonly DeploymentOutcome[]> {
    try {
      const decided = await this.#records.decide(held, outcomes);
      if (!decided) return (await this.#records.find(held.open.tenant, held.open))?.end ?? outcomes.map(endedElsewhere);
      await this.#settle(decided);
    } catch (error) {
      // The commands have already run on the hosts, so the caller gets their states even if the records fail.
      this.#runtime.log.error(
        { err: error, deployment: held.open.deployment, host: held.open.host },
        "the records of a deployment could not be written yet",
      );
    }
    return outcomes;
  }

  async #endLate(held: VersionedDeployment): Promise<void> {
    const { tenant, ospace, traceparent, host, targets, action } = held.open;
    const nowMs = this.#runtime.clock.nowMs();
    const outcomes: DeploymentOutcome[] = [];
    for (const { depot, version, commandId } of targets) {
      const said = await this.#stored.outcome({ tenant, host, traceparent }, commandId);
      const expired = {
        state: "expired" as const,
        message: "The controller that deployed it went away before it ended.",
        startedMs: nowMs,
        endedMs: nowMs,
      };
      outcomes.push(outcomeOf(said ?? expired, { host, depot, version }));
    }
    const decided = await this.#records.decide(held, outcomes);
    if (!decided) return;
    const platform = systemPrincipal(tenant, ospace, traceparent);
    for (const target of outcomes) if (target.state === "ok") await this.#commands.note(platform, action, target);
    await this.#settle(decided);
  }

  /**
   * Stores which late results may come, and then writes the rows. In this order, no late result of a host is refused.
   */
  async #settle(decided: OpenDeployment): Promise<void> {
    await this.#late.expect(decided);
    await this.#records.settle(decided);
  }

  async #target(
    principal: Principal,
    run: Run,
    { work, commandId }: { work: HostWork; commandId: string },
  ): Promise<DeploymentOutcome> {
    const { host, depot, version, command } = work;
    const { deadlineMonotonicMs } = run;
    const outcome = await this.#commands.send(principal, { host, command, commandId, deadlineMonotonicMs });
    const target = outcomeOf(outcome, { host, depot, version });
    const noted = target.state === "ok" ? await this.#commands.note(principal, run.action, target) : target;
    this.#notifications.publish(principal.tenant, deploymentNotice(principal, run.action, noted));
    return noted;
  }
}

/** The outcome of a command without its other members, such as the number of its process. */
function outcomeOf(
  { state, code, message, startedMs, endedMs }: Omit<CommandOutcome, "host">,
  of: Pick<DeploymentOutcome, "host" | "depot" | "version">,
): DeploymentOutcome {
  return { ...of, state, ...(code !== undefined && { code }), message, startedMs, endedMs };
}

/**
 * Outcome if another controller has already recorded and removed the deployment, because this one was stopped for
 * minutes.
 */
function endedElsewhere(outcome: DeploymentOutcome): DeploymentOutcome {
  return { ...outcome, state: "expired", message: "Another controller ended it meanwhile; its record says how." };
}
