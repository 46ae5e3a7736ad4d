import type { PolicySpec } from "../../../common/api/policies.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { POLICY_HOSTS_MAX, POLICY_PARALLEL_HOSTS } from "../../../common/limits.ts";
import { listed } from "../../../common/text/listed.ts";
import type { Depots } from "../depots/index.ts";
import type { Hosts, HostTargets, ResolvedHosts } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Rules } from "../rules/index.ts";
import { unableOverSsh } from "./ssh/unable.ts";
import { checkSpec } from "./validation.ts";

export interface NamedDependencies {
  readonly rules: Pick<Rules, "load">;
  readonly depots: Pick<Depots, "toDeploy">;
  readonly hosts: Pick<Hosts, "wayTo">;
  readonly targets: Pick<HostTargets, "hosts">;
}

/** The policy that hosts are named for. */
export interface ForHosts {
  /** Absent: hosts on which the policy cannot run over SSH are not refused. */
  readonly spec?: PolicySpec;
  readonly warn?: ((text: string) => void) | undefined;
}

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
  async resolved(principal: Principal, entries: readonly string[], placing: ForHosts = {}): Promise<ResolvedHosts> {
    const resolved = await this.#with.targets.hosts(principal, entries);
    await this.hosts(principal, resolved.named, placing);
    return resolved;
  }

  /**
   * The names, each once. `AppError("not_found")` if a host does not exist, `too_large` for too many, `unsupported` if
   * the policy cannot run over SSH and a host has no agent but SSH. `warn` is called once if some hosts have neither.
   */
  async hosts(principal: Principal, hosts: readonly string[], { spec, warn }: ForHosts): Promise<readonly string[]> {
    const names = [...new Set(hosts)];
    if (names.length > POLICY_HOSTS_MAX) throw tooManyHosts();
    const ways = await mapLimited(names, POLICY_PARALLEL_HOSTS, (host) => this.#with.hosts.wayTo(principal, host));
    const unknown = names.filter((_, at) => ways[at] === undefined);
    if (unknown.length > 0) throw new AppError("not_found", `There is no host ${listed(unknown)}.`);
    refuseOverSsh(
      spec,
      names.filter((_, at) => ways[at] === "ssh"),
    );
    const unable = names.filter((_, at) => ways[at] === "none");
    if (unable.length > 0) warn?.(`There is no agent on ${listed(unable)}: the policy runs there once one has joined.`);
    return names;
  }

  /** `AppError("unsupported")` if the policy cannot run over SSH and one of its hosts has no agent but SSH. */
  async requireRunnable(principal: Principal, spec: PolicySpec, hosts: readonly string[]): Promise<void> {
    if (unableOverSsh(spec) === undefined) return;
    const ways = await mapLimited(hosts, POLICY_PARALLEL_HOSTS, (host) => this.#with.hosts.wayTo(principal, host));
    refuseOverSsh(
      spec,
      hosts.filter((_, at) => ways[at] === "ssh"),
    );
  }
}

function refuseOverSsh(spec: PolicySpec | undefined, hosts: readonly string[]): void {
  if (spec === undefined || hosts.length === 0) return;
  const reason = unableOverSsh(spec);
  if (reason === undefined) return;
  throw new AppError("unsupported", `The policy ${spec.name} cannot run on ${listed(hosts)} over SSH. ${reason}`);
}

export function tooManyHosts(): AppError {
  return new AppError("too_large", `A policy has at most ${POLICY_HOSTS_MAX} hosts.`);
}
