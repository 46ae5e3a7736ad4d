import { mapLimited, withinTime } from "../../../common/concurrency.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { ulidOf } from "../../../common/ids.ts";
import {
  DEPLOY_DEFAULT_S, DEPLOY_DEPOTS_MAX, DEPLOY_HOSTS_MAX, DEPLOY_MAX_S, DEPLOY_PARALLEL_HOSTS, DEPLOY_TARGETS_MAX,
  DEPOT_COMMAND_MAX_CHARS, DISPATCH_GRACE_MS,
} from "../../../common/limits.ts";
import { absolutePath, fileName } from "../../../common/paths.ts";
import type { Runtime } from "../../runtime.ts";
import type { CommandOutcome, FinalState, HostCommand, Hosts } from "../hosts/index.ts";
import type { Notifications } from "../notifications/index.ts";
import type { Objects } from "../objects/index.ts";
import { requirePermission, systemPrincipal, type Principal } from "../permissions/index.ts";
import { DEPLOYMENT_PATH } from "./classes.ts";
import type { DeploymentOutcome, Depots } from "./types.ts";
import { depotVersion } from "./version.ts";

export interface DeploymentDependencies {
  readonly depots: Pick<Depots, "toDeploy">;
  readonly hosts: Pick<Hosts, "dispatch" | "noteDepot">;
  readonly objects: Pick<Objects, "ingest">;
  readonly notifications: Pick<Notifications, "publish">;
  readonly runtime: Runtime;
}

export interface DeploymentRequest {
  readonly hosts: readonly string[];
  readonly depots: readonly string[];
  /** One for each of `depots`. */
  readonly versions: readonly string[];
  /** Instead of the depot's own. */
  readonly command?: string;
  readonly remotepath?: string;
  readonly timeoutSeconds?: number;
}

type Action = "deploy" | "undeploy";

interface Run {
  readonly id: string;
  readonly action: Action;
  /** By the monotonic clock. */
  readonly deadlineMs: number;
  readonly hosts: readonly string[];
  readonly commands: readonly (HostCommand & { readonly kind: Action })[];
}

/** Every host × depot ends in exactly one final state by the deadline, whatever becomes of the host. */
export class DeploymentService {
  readonly #depots: DeploymentDependencies["depots"];
  readonly #hosts: DeploymentDependencies["hosts"];
  readonly #objects: DeploymentDependencies["objects"];
  readonly #notifications: DeploymentDependencies["notifications"];
  readonly #runtime: Runtime;

  constructor(dependencies: DeploymentDependencies) {
    this.#depots = dependencies.depots;
    this.#hosts = dependencies.hosts;
    this.#objects = dependencies.objects;
    this.#notifications = dependencies.notifications;
    this.#runtime = dependencies.runtime;
  }

  async deploy(principal: Principal, request: DeploymentRequest): Promise<readonly DeploymentOutcome[]> {
    requirePermission(principal, "depots:run");
    const pairs = checkedPairs(request);
    const place = placeOf(request);
    const commands = await mapLimited(pairs, DEPLOY_PARALLEL_HOSTS, async (pair) => {
      const depot = await this.#depots.toDeploy(principal, pair.depot, pair.version);
      return { kind: "deploy" as const, ...depot, ...place };
    });
    return this.#run(principal, this.#begin("deploy", request, commands));
  }

  /** The version need not be kept here any more: what is on a host can always be taken away. */
  async undeploy(principal: Principal, request: DeploymentRequest): Promise<readonly DeploymentOutcome[]> {
    requirePermission(principal, "depots:run");
    const place = placeOf(request);
    const commands = checkedPairs(request).map(({ depot, version }) => ({
      kind: "undeploy" as const, name: fileName(depot), version: depotVersion(version), ...place,
    }));
    return this.#run(principal, this.#begin("undeploy", request, commands));
  }

  #begin(action: Action, request: DeploymentRequest, commands: Run["commands"]): Run {
    const seconds = Math.min(request.timeoutSeconds ?? DEPLOY_DEFAULT_S, DEPLOY_MAX_S);
    return {
      id: this.#newId(), action, commands,
      hosts: [...new Set(request.hosts)],
      deadlineMs: this.#runtime.clock.monotonicMs() + seconds * 1_000,
    };
  }

  #newId(): string {
    const { clock, random } = this.#runtime;
    return ulidOf(clock.nowMs(), random.bytes(10));
  }

  /** Hosts side by side; on one host the depots in the order given. */
  async #run(principal: Principal, run: Run): Promise<readonly DeploymentOutcome[]> {
    const byHost = await mapLimited(run.hosts, DEPLOY_PARALLEL_HOSTS, async (host) => {
      const outcomes: DeploymentOutcome[] = [];
      for (const [index] of run.commands.entries()) outcomes.push(await this.#target(principal, run, { host, index }));
      return outcomes;
    });
    const outcomes = byHost.flat();
    await this.#record(principal, run, outcomes);
    return outcomes;
  }

  async #target(principal: Principal, run: Run, { host, index }: { host: string; index: number }): Promise<DeploymentOutcome> {
    const command = run.commands[index];
    if (command === undefined) throw new AppError("internal", "A deployment lost its command.");
    const outcome = await this.#dispatch(principal, run, { host, command, commandId: `${run.action}/${this.#newId()}` });
    const target: DeploymentOutcome = { ...outcome, host, depot: command.name, version: command.version };
    const noted = target.state === "ok" ? await this.#note(principal, run, target) : target;
    this.#publish(principal, run, noted);
    return noted;
  }

  async #dispatch(
    principal: Principal, run: Run, { host, command, commandId }: { host: string; command: HostCommand; commandId: string },
  ): Promise<CommandOutcome> {
    const { clock } = this.#runtime;
    const startedMs = clock.nowMs();
    const ended = (state: FinalState, message: string): CommandOutcome => ({ host, state, message, startedMs, endedMs: clock.nowMs() });
    const timeoutMs = run.deadlineMs - clock.monotonicMs();
    if (timeoutMs <= 0) return ended("timeout", "Its turn did not come before the deadline.");
    try {
      const work = this.#hosts.dispatch(principal, host, command, { timeoutMs, commandId });
      return (await withinTime(clock, work, timeoutMs + DISPATCH_GRACE_MS)) ?? ended("timeout", "The host did not answer in time.");
    } catch (error) {
      if (isAppError(error, "not_found")) return ended("unreachable", `There is no host ${host}.`);
      this.#runtime.log.warn({ err: error, host, commandId }, "deployment could not be sent");
      return ended("failed", errorText(error));
    }
  }

  async #note(principal: Principal, run: Run, target: DeploymentOutcome): Promise<DeploymentOutcome> {
    try {
      const depot = { name: target.depot, version: target.version };
      await this.#hosts.noteDepot(principal, target.host, depot, run.action === "deploy");
      return target;
    } catch (error) {
      return { ...target, message: `Done, but the host record does not show it yet: ${errorText(error)}` };
    }
  }

  #publish(principal: Principal, { action }: Run, target: DeploymentOutcome): void {
    this.#notifications.publish(principal.tenant, {
      keyspace: principal.ospace,
      source: target.host,
      subject: "deployment",
      title: `${action} ${target.depot} ${target.version}`,
      reply: "",
      msg: JSON.stringify({ action, ...target }),
    });
  }

  /** The records are the platform's, not the caller's: who may deploy need not be able to write records. */
  async #record(principal: Principal, { id, action }: Run, outcomes: readonly DeploymentOutcome[]): Promise<void> {
    const platform = systemPrincipal(principal.tenant, principal.ospace, principal.traceparent);
    const records = outcomes.map(({ startedMs, endedMs, code, ...rest }, ordinal) => ({
      timeMs: endedMs,
      identity: `deployment/${id}/${ordinal}`,
      values: { action, ...rest, code: code ?? null, started: startedMs, ended: endedMs, username: principal.user },
    }));
    try {
      await this.#objects.ingest(platform, `${principal.ospace}${DEPLOYMENT_PATH}`, records);
    } catch (error) {
      // What happened on the hosts happened: the caller must get the states all the same.
      this.#runtime.log.error({ err: error, deployment: id }, "the records of a deployment could not be written");
    }
  }
}

function checkedPairs(request: DeploymentRequest): readonly { readonly depot: string; readonly version: string }[] {
  const { hosts, depots, versions } = request;
  if (hosts.length === 0) throw new AppError("invalid", "hosts is empty.");
  if (depots.length === 0) throw new AppError("invalid", "depots is empty.");
  if (depots.length !== versions.length) {
    throw new AppError("invalid", `There are ${depots.length} depots but ${versions.length} versions; there must be one version for each depot.`);
  }
  refuseTooMany(hosts.length, depots.length);
  const pairs = new Map(depots.map((depot, at) => [`${depot}/${versions[at]}`, { depot, version: versions[at] ?? "" }]));
  return [...pairs.values()];
}

function refuseTooMany(hosts: number, depots: number): void {
  if (hosts > DEPLOY_HOSTS_MAX) throw new AppError("too_large", `One deployment reaches at most ${DEPLOY_HOSTS_MAX} hosts.`);
  if (depots > DEPLOY_DEPOTS_MAX) throw new AppError("too_large", `One deployment carries at most ${DEPLOY_DEPOTS_MAX} depots.`);
  if (hosts * depots > DEPLOY_TARGETS_MAX) throw new AppError("too_large", `One deployment has at most ${DEPLOY_TARGETS_MAX} targets.`);
}

function placeOf({ command, remotepath }: DeploymentRequest): { command?: string; remotePath?: string } {
  if ((command ?? "").length > DEPOT_COMMAND_MAX_CHARS) {
    throw new AppError("too_large", `The command has more than ${DEPOT_COMMAND_MAX_CHARS} characters.`);
  }
  return {
    ...(command === undefined || command === "" ? {} : { command }),
    ...(remotepath === undefined || remotepath === "" ? {} : { remotePath: absolutePath(remotepath) }),
  };
}
