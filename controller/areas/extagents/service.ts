import { AppError, isAppError } from "../../../common/errors.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { DEPLOY_MAX_S, DEPLOY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import { EXTERNAL_AGENT_KEY } from "../../../common/masking.ts";
import { fileName } from "../../../common/paths.ts";
import type { Clock } from "../../../common/time.ts";
import {
  depotVersion,
  refuseTooMany,
  type DeploymentAction,
  type DeploymentOutcome,
  type DeploymentService,
  type Depots,
  type HostWork,
} from "../depots/index.ts";
import type { DepotToDeploy, HostCommand, Hosts, HostTargets } from "../hosts/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { STOPPED_CODE } from "./functions.ts";
import { deployScript, restartScript, startScript, stopScript, undeployScript } from "./script.ts";
import { externalAgentOf, type ExternalAgent } from "./settings.ts";

export interface ExtAgentDependencies {
  readonly depots: Pick<Depots, "toDeploy">;
  readonly deployments: Pick<DeploymentService, "carryOut">;
  readonly hosts: Pick<Hosts, "settings">;
  readonly targets: Pick<HostTargets, "hosts">;
  readonly clock: Clock;
}

export interface ExtAgentTargets {
  /** Names of hosts, and expressions that hosts match (`HostTargets`). */
  readonly hosts: readonly string[];
  readonly timeoutSeconds?: number | undefined;
  /** Called with each expression that matches no host. */
  readonly warn?: (text: string) => void;
}

export interface ExtAgentRemoval extends ExtAgentTargets {
  readonly name: string;
  readonly version: string;
  /** True: also if the versions that leave the hosts are in use there. */
  readonly force?: boolean | undefined;
}

export interface ExtAgentDeployment extends ExtAgentRemoval {
  /** Content of the agent's key file. Absent or empty: the file is not changed. */
  readonly key?: string | undefined;
  /** Replaces the depot's own command. */
  readonly command?: string | undefined;
}

type Outcomes = readonly DeploymentOutcome[];

/** One command for a host, as its settings say. */
type CommandOf = (agent: ExternalAgent) => HostCommand;

const LINES = { start: startScript, stop: stopScript, restart: restartScript };

/**
 * Agents of other makers on hosts: brings them there as depots, starts and stops them. Every host has one final state by
 * the deadline, as in a deployment.
 */
export class ExtAgentService {
  readonly #with: ExtAgentDependencies;

  constructor(dependencies: ExtAgentDependencies) {
    this.#with = dependencies;
  }

  /**
   * Puts the depot into the folder of the agent, writes its key, runs the command and starts it. A running agent is
   * stopped before the start. If a step fails, the former version is in place again, and started again if it was stopped.
   */
  async deploy(principal: Principal, request: ExtAgentDeployment): Promise<Outcomes> {
    requirePermission(principal, "depots:run");
    const { key = "", name, version } = request;
    if (key.includes("\0")) throw new AppError("invalid", "The key contains the character NUL.");
    const depot = await this.#with.depots.toDeploy(principal, name, version);
    const command = request.command || depot.command;
    const untilMs = this.#with.clock.monotonicMs() + DEPLOY_MAX_S * 1_000;
    const outcomes = await this.#carryOut(principal, "deploy", {
      targets: request,
      depot,
      commandOf: (agent) => ({
        kind: "deploy",
        ...depot,
        remotePath: agent.dir,
        command: deployScript(agent, { command, files: depot.files, hasKey: key !== "" }),
        ...(key !== "" && { environment: { [EXTERNAL_AGENT_KEY]: key } }),
      }),
    });
    return this.#startFormer(principal, outcomes, untilMs);
  }

  /**
   * Stops the agent and removes its depot and its key. On a host without that version nothing runs. Throws like
   * `DeploymentService.undeploy`.
   */
  async undeploy(principal: Principal, request: ExtAgentRemoval): Promise<Outcomes> {
    requirePermission(principal, "depots:run");
    const depot = { name: fileName(request.name), version: depotVersion(request.version) };
    return this.#carryOut(principal, "undeploy", {
      targets: request,
      depot,
      commandOf: (agent) => ({
        kind: "undeploy",
        ...depot,
        remotePath: agent.dir,
        command: undeployScript(agent),
      }),
    });
  }

  /** Starts agents, stops them, or stops and then starts them. */
  async run(principal: Principal, action: keyof typeof LINES, targets: ExtAgentTargets): Promise<Outcomes> {
    requirePermission(principal, "depots:run");
    const commandOf: CommandOf = (agent) => ({ kind: "exec", line: LINES[action](agent) });
    return this.#carryOut(principal, action, { targets, commandOf });
  }

  async #carryOut(
    principal: Principal,
    action: DeploymentAction,
    of: {
      targets: ExtAgentTargets & Pick<ExtAgentRemoval, "force">;
      depot?: Pick<DepotToDeploy, "name" | "version">;
      commandOf: CommandOf;
    },
  ): Promise<Outcomes> {
    const { timeoutSeconds, force, warn } = of.targets;
    const { hosts, warnings } = await this.#with.targets.hosts(principal, of.targets.hosts);
    for (const warning of warnings) warn?.(warning);
    refuseTooMany(hosts.length, 1);
    const { name: depot = "", version = "" } = of.depot ?? {};
    const work = await mapLimited(hosts, DEPLOY_PARALLEL_HOSTS, async (host): Promise<HostWork> => {
      return { host, depot, version, command: await this.#commandFor(principal, host, of.commandOf) };
    });
    return this.#with.deployments.carryOut(principal, work, { action, timeoutSeconds, force });
  }

  async #commandFor(principal: Principal, host: string, commandOf: CommandOf): Promise<HostWork["command"]> {
    try {
      const agent = externalAgentOf(host, await this.#with.hosts.settings(principal, host));
      return typeof agent === "string" ? { kind: "none", state: "failed", message: agent } : commandOf(agent);
    } catch (error) {
      if (isAppError(error, "not_found")) return { kind: "none", state: "unreachable", message: error.message };
      throw error;
    }
  }

  /** Starts the former version, which is in place again, on hosts where the new one did not start. */
  async #startFormer(principal: Principal, outcomes: Outcomes, untilMs: number): Promise<Outcomes> {
    const hosts = outcomes.filter(({ code }) => code === STOPPED_CODE).map(({ host }) => host);
    if (hosts.length === 0) return outcomes;
    const timeoutSeconds = Math.max(1, Math.floor((untilMs - this.#with.clock.monotonicMs()) / 1_000));
    const started = await this.run(principal, "start", { hosts, timeoutSeconds });
    return outcomes.map((outcome) => {
      const again = started.find(({ host }) => host === outcome.host);
      if (!again) return outcome;
      return {
        ...outcome,
        message: `${outcome.message}\nStart of the former version: ${again.state}, ${again.message}`,
      };
    });
  }
}
