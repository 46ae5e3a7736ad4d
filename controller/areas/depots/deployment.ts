import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import { DEPLOY_DEFAULT_S, DEPLOY_MAX_S, DEPLOY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Controllers } from "../../store/journal/index.ts";
import type { Hosts, HostTargets, StoredCommands } from "../hosts/index.ts";
import type { Notifications } from "../notifications/index.ts";
import type { Objects, Unrestricted } from "../objects/index.ts";
import { allows, requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import { DEPLOYMENT_PATH } from "./classes.ts";
import { DeploymentChecks } from "./deployment-checks.ts";
import { DeploymentCommands } from "./deployment-commands.ts";
import { DeploymentEndings, outcomeOf } from "./deployment-endings.ts";
import {
  deploymentNotice,
  DeploymentRecords,
  type DeploymentAction,
  type DeploymentTarget,
  type NewDeployment,
  type OpenDeployment,
  type VersionedDeployment,
} from "./deployment-records.ts";
import { byHost, type DeploymentRequest, type HostWork } from "./deployment-requests.ts";
import { DeploymentWork } from "./deployment-work.ts";
import type { DeploymentOutcome, Depots } from "./types.ts";

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
  readonly #work: DeploymentWork;
  readonly #checks: DeploymentChecks;
  readonly #commands: DeploymentCommands;
  readonly #stored: DeploymentDependencies["stored"];
  readonly #records: DeploymentRecords;
  readonly #endings: DeploymentEndings;
  readonly #objects: DeploymentDependencies["objects"];
  readonly #notifications: DeploymentDependencies["notifications"];
  readonly #runtime: Runtime;

  constructor(dependencies: DeploymentDependencies) {
    this.#work = new DeploymentWork(dependencies);
    this.#checks = new DeploymentChecks(dependencies);
    this.#commands = new DeploymentCommands(dependencies);
    this.#stored = dependencies.stored;
    this.#records = new DeploymentRecords(dependencies);
    this.#endings = new DeploymentEndings(dependencies, { records: this.#records, commands: this.#commands });
    this.#objects = dependencies.objects;
    this.#notifications = dependencies.notifications;
    this.#runtime = dependencies.runtime;
  }

  /**
   * Checks a request and its rights, and returns its work on each host. Throws like `deploy` and `undeploy`, which do
   * the work.
   */
  async prepared(
    principal: Principal,
    request: DeploymentRequest,
    action: "deploy" | "undeploy",
  ): Promise<readonly HostWork[]> {
    requirePermission(principal, "depots:run");
    const work = await this.#work.of(principal, request, action);
    await this.#checks.require(principal, work, { action, force: request.force });
    return work;
  }

  /** `AppError("conflict")` if another version of a depot is in use on one of the hosts, unless `force` is true. */
  async deploy(principal: Principal, request: DeploymentRequest): Promise<readonly DeploymentOutcome[]> {
    requirePermission(principal, "depots:run");
    return this.carryOut(principal, await this.#work.of(principal, request, "deploy"), {
      ...request,
      action: "deploy",
    });
  }

  /**
   * Removes depots from hosts. On a host without that version nothing runs, and its outcome has the message
   * `NOT_DEPLOYED`. The version need not be stored on the controllers any more. `AppError("not_found")` for a depot that
   * is neither stored nor on one of the hosts, `conflict` for a version that is in use on one of them, unless `force` is
   * true.
   */
  async undeploy(principal: Principal, request: DeploymentRequest): Promise<readonly DeploymentOutcome[]> {
    requirePermission(principal, "depots:run");
    const work = await this.#work.of(principal, request, "undeploy");
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
      return this.#endings.end(each, outcomes);
    });
    return ended.flat();
  }

  /**
   * Carries out one attempt of a deployment that waits for its host, whose entry the caller began. `work` has one member
   * for each target. Targets from the first one on that the host was not sent wait for the next attempt. Commands keep
   * their ids, so that none runs twice.
   */
  async attempt(principal: Principal, held: VersionedDeployment, work: readonly HostWork[]): Promise<void> {
    requirePermission(principal, "depots:run");
    const { tenant, host, traceparent, action, deadlineMs, targets } = held.open;
    const { clock } = this.#runtime;
    const deadlineMonotonicMs = clock.monotonicMs() + deadlineMs - clock.nowMs();
    const outcomes: DeploymentOutcome[] = [];
    for (const [at, { commandId, depot, version }] of targets.entries()) {
      const { command } = work[at] ?? {};
      if (command === undefined) throw new AppError("internal", "A deployment lost its command.");
      const outcome =
        (await this.#stored.outcome({ tenant, host, traceparent }, commandId)) ??
        (await this.#commands.send(principal, { host, command, commandId, deadlineMonotonicMs }));
      if (outcome.state === "unreachable") break;
      outcomes.push(await this.#told(principal, action, outcomeOf(outcome, { host, depot, version })));
    }
    await this.#endings.end(held, outcomes);
  }

  /** The parts of a transaction that begin an attempt, or that record outcomes of a host that was sent nothing. */
  beginning(
    principal: Principal,
    deployment: NewDeployment,
    end?: readonly DeploymentOutcome[],
  ): ReturnType<DeploymentRecords["beginning"]> {
    requirePermission(principal, "depots:run");
    return this.#records.beginning(deployment, end);
  }

  /** Records and announces outcomes of a host that was sent nothing. */
  async recordUnsent(principal: Principal, open: OpenDeployment): Promise<void> {
    requirePermission(principal, "depots:run");
    for (const target of open.end ?? [])
      this.#notifications.publish(principal.tenant, deploymentNotice(open, open.action, target));
    await this.#endings.record(open);
  }

  /** See `DeploymentEndings.maintain`. */
  maintain(tenant: string): Promise<void> {
    return this.#endings.maintain(tenant);
  }

  /** See `DeploymentEndings.gave`. */
  gave(tenant: string, host: string, commandId: string): Promise<boolean> {
    return this.#endings.gave(tenant, host, commandId);
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

  async #target(
    principal: Principal,
    run: Run,
    { work, commandId }: { work: HostWork; commandId: string },
  ): Promise<DeploymentOutcome> {
    const { host, depot, version, command } = work;
    const { deadlineMonotonicMs } = run;
    const outcome = await this.#commands.send(principal, { host, command, commandId, deadlineMonotonicMs });
    return this.#told(principal, run.action, outcomeOf(outcome, { host, depot, version }));
  }

  /** Notes a success on the record of the host, and announces the outcome. */
  async #told(principal: Principal, action: DeploymentAction, target: DeploymentOutcome): Promise<DeploymentOutcome> {
    const noted = target.state === "ok" ? await this.#commands.note(principal, action, target) : target;
    this.#notifications.publish(principal.tenant, deploymentNotice(principal, action, noted));
    return noted;
  }
}
