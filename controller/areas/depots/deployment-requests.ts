import { AppError } from "../../../common/errors.ts";
import {
  DEPLOY_DEPOTS_MAX,
  DEPLOY_HOSTS_MAX,
  DEPLOY_TARGETS_MAX,
  DEPOT_COMMAND_MAX_CHARS,
} from "../../../common/limits.ts";
import { absolutePath } from "../../../common/paths.ts";
import { counted } from "../../../common/text/counted.ts";
import type { HostCommand, HostTargets } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { NotSent } from "./deployment-commands.ts";

export interface DeploymentRequest {
  /** Names of hosts, and expressions that hosts match (`HostTargets`). */
  readonly hosts: readonly string[];
  readonly depots: readonly string[];
  /** One version per depot, in the order of `depots`. */
  readonly versions: readonly string[];
  /** Replaces the depot's own command. */
  readonly command?: string;
  readonly remotepath?: string;
  readonly timeoutSeconds?: number;
  /** True: also if the versions that leave the hosts are in use there. */
  readonly force?: boolean;
  /** Called with each expression that matches no host. */
  readonly warn?: (text: string) => void;
}

/** One part of the work on a host. */
export interface HostWork {
  readonly host: string;
  /** Empty, as the version, if it is not about a depot. */
  readonly depot: string;
  readonly version: string;
  readonly command: HostCommand | NotSent;
}

/** The depots of a request with their versions, without repetitions. Throws if the request is no deployment. */
export function checkedPairs(
  request: DeploymentRequest,
): readonly { readonly depot: string; readonly version: string }[] {
  const { hosts, depots, versions } = request;
  if (hosts.length === 0) throw new AppError("invalid", "hosts is empty.");
  if (depots.length === 0) throw new AppError("invalid", "depots is empty.");
  if (depots.length !== versions.length) {
    throw new AppError(
      "invalid",
      `The request names ${counted(depots.length, "depot")} but ${counted(versions.length, "version")}; there must be one version for each depot.`,
    );
  }
  refuseTooMany(hosts.length, depots.length);
  const pairs = new Map<string, { readonly depot: string; readonly version: string }>();
  for (const [at, depot] of depots.entries()) {
    const version = versions[at] ?? "";
    // Versions of one depot replace each other, so the last occurrence counts.
    pairs.delete(`${depot}/${version}`);
    pairs.set(`${depot}/${version}`, { depot, version });
  }
  return [...pairs.values()];
}

/** The request with the hosts that its entries mean now. `AppError("too_large")` for too many. */
export async function resolvedRequest(
  targets: Pick<HostTargets, "hosts">,
  principal: Principal,
  request: DeploymentRequest,
): Promise<DeploymentRequest> {
  const { hosts, warnings } = await targets.hosts(principal, request.hosts);
  refuseTooMany(hosts.length, request.depots.length);
  for (const warning of warnings) request.warn?.(warning);
  return { ...request, hosts };
}

/** `AppError("too_large")` when one deployment may not have so many hosts or depots. */
export function refuseTooMany(hosts: number, depots: number): void {
  if (hosts > DEPLOY_HOSTS_MAX)
    throw new AppError("too_large", `One deployment reaches at most ${DEPLOY_HOSTS_MAX} hosts.`);
  if (depots > DEPLOY_DEPOTS_MAX)
    throw new AppError("too_large", `One deployment carries at most ${DEPLOY_DEPOTS_MAX} depots.`);
  if (hosts * depots > DEPLOY_TARGETS_MAX)
    throw new AppError("too_large", `One deployment has at most ${DEPLOY_TARGETS_MAX} targets.`);
}

/** Work of the commands on every host of the request. */
export function workOf(
  { hosts }: DeploymentRequest,
  commands: readonly (HostCommand & { readonly name: string; readonly version: string })[],
): readonly HostWork[] {
  return [...new Set(hosts)].flatMap((host) =>
    commands.map((command) => ({ host, depot: command.name, version: command.version, command })),
  );
}

/** Work by host, in the order of the hosts. */
export function byHost(work: readonly HostWork[]): ReadonlyMap<string, readonly HostWork[]> {
  const hosts = new Map<string, HostWork[]>();
  for (const one of work) {
    const known = hosts.get(one.host);
    if (known) known.push(one);
    else hosts.set(one.host, [one]);
  }
  return hosts;
}

/** The parts of a command that the request itself gives. */
export function placeOf({ command, remotepath }: DeploymentRequest): { command?: string; remotePath?: string } {
  if ((command ?? "").length > DEPOT_COMMAND_MAX_CHARS) {
    throw new AppError("too_large", `The command has more than ${DEPOT_COMMAND_MAX_CHARS} characters.`);
  }
  return {
    ...(command === undefined || command === "" ? {} : { command }),
    ...(remotepath === undefined || remotepath === "" ? {} : { remotePath: absolutePath(remotepath) }),
  };
}
