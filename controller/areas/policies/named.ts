import type { PolicySpec } from "../../../common/api/policies.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { POLICY_HOSTS_MAX, POLICY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import { listed } from "../../../common/text/listed.ts";
import type { Depots } from "../depots/index.ts";
import type { Hosts, HostTargets, ResolvedHosts } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Rules } from "../rules/index.ts";
import { checkSpec } from "./validation.ts";

export interface NamedDependencies {
  readonly rules: Pick<Rules, "load">;
  readonly depots: Pick<Depots, "toDeploy">;
  readonly hosts: Pick<Hosts, "hasAgent">;
  readonly targets: Pick<HostTargets, "hosts">;
}

type Warn = ((text: string) => void) | undefined;

/** Checks that the rule, the depot and the hosts that a policy names exist, and that its caller may use them. */
export class NamedByPolicies {
  readonly #with: NamedDependencies;

  constructor(dependencies: NamedDependencies) {
    this.#with = dependencies;
  }

  /** Throws for a wrong member, and for a rule or depot that cannot be used. */
  async check(principal: Principal, spec: PolicySpec): Promise<void> {
    checkSpec(spec);
    try {
      await this.#with.rules.load(principal, spec.rule);
    } catch (error) {
      if (!isAppError(error)) throw error;
      throw new AppError(error.code, `The policy's rule ${spec.rule} cannot be used: ${errorText(error)}`, {
        cause: error,
      });
    }
    if (spec.kind === "command" && spec.ctype === 0)
      await this.#with.depots.toDeploy(principal, spec.depotname ?? "", spec.depotversion);
  }

  /** The hosts that the entries mean now. Errors and warnings as of `hosts`. */
  async resolved(principal: Principal, entries: readonly string[], warn?: Warn): Promise<ResolvedHosts> {
    const resolved = await this.#with.targets.hosts(principal, entries);
    await this.hosts(principal, resolved.named, warn);
    return resolved;
  }

  /**
   * The names, each once. `AppError("not_found")` if a host does not exist, `too_large` for too many. `warn` is called
   * once if the policy cannot run on some of them.
   */
  async hosts(principal: Principal, hosts: readonly string[], warn?: Warn): Promise<readonly string[]> {
    const names = [...new Set(hosts)];
    if (names.length > POLICY_HOSTS_MAX) throw tooManyHosts();
    const agents = await mapLimited(names, POLICY_PARALLEL_HOSTS, (host) => this.#with.hosts.hasAgent(principal, host));
    const unknown = names.filter((_, at) => agents[at] === undefined);
    if (unknown.length > 0) throw new AppError("not_found", `There is no host ${listed(unknown)}.`);
    const unable = names.filter((_, at) => agents[at] === false);
    if (unable.length > 0) warn?.(`There is no agent on ${listed(unable)}: the policy runs there once one has joined.`);
    return names;
  }
}

export function tooManyHosts(): AppError {
  return new AppError("too_large", `A policy has at most ${POLICY_HOSTS_MAX} hosts.`);
}
