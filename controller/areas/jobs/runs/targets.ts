import { AppError } from "../../../../common/errors.ts";
import { isExpression } from "../../../../common/targets/index.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Objects } from "../../objects/index.ts";
import type { HostTargets } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { groupRow, JOB_GROUP_PATH } from "../classes.ts";
import { namesIn } from "../definitions/definition.ts";
import { GroupStore } from "../groups/store.ts";
import { formatJobName } from "../definitions/names.ts";
import type { Parameters } from "../definitions/parameters.ts";
import type { ProxiedHosts } from "../groups/proxied.ts";
import { authorOf, type StoredJob } from "../store.ts";
import type { Authors } from "../types.ts";

/** The hosts of an execution. */
export interface Targets {
  readonly hosts: readonly string[];
  /** By host: the group of type `proxy` through which it is reached. */
  readonly behind: Readonly<Record<string, string>>;
}

export const NO_TARGETS: Targets = { hosts: [], behind: {} };

export interface TargetDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "visible">;
  readonly targets: Pick<HostTargets, "hosts">;
  /** Absent: no user is known, so expressions of jobs that another user saved match no host. */
  readonly authors?: Authors;
  /** Reaches hosts of groups of type `proxy`; absent: there are no such groups. */
  readonly proxied?: ProxiedHosts;
}

/** Hosts and groups in a request that replace those of the job. */
export type TargetOverride = Pick<Parameters, "hosts" | "groups">;

interface Member {
  readonly host: string;
  /** Absent: the host's own record says how it is reached. */
  readonly group?: string;
}

/** Finds the hosts that the definitions of jobs run on. */
export class JobTargets {
  readonly #with: TargetDependencies;

  constructor(dependencies: TargetDependencies) {
    this.#with = dependencies;
  }

  /**
   * Answers each host once. These are the requested hosts; without a request, the job's own hosts, followed by those
   * that its groups have now. Requested groups replace the job's hosts and groups. A host in a group of type `proxy` is
   * reached through that group, unless the job itself names the host. This also applies to a requested host.
   * Expressions among the hosts are resolved: requested ones by the principal's rights, those of the job by the present
   * rights of the user who saved it and by the principal's.
   * `AppError("not_found")` for a group that the principal does not see, unless hosts and no groups are requested.
   * `AppError("invalid")` for requested hosts that are in none of the requested groups.
   */
  async of(principal: Principal, job: StoredJob, asked: TargetOverride): Promise<Targets> {
    const names = asked.groups ?? namesIn(job.group.split(","));
    const requested = asked.hosts && (await this.#with.targets.hosts(principal, asked.hosts)).hosts;
    if (names.length === 0) return { hosts: requested ?? (await this.#ownHosts(principal, job)), behind: {} };
    const own = asked.groups ? [] : (await this.#ownHosts(principal, job)).map((host): Member => ({ host }));
    const found = await Promise.all(names.map((name) => this.#members(principal, name)));
    const missing = names.find((_, at) => found[at] === undefined);
    if (missing !== undefined && (asked.groups || !asked.hosts))
      throw new AppError(
        "not_found",
        `The job ${formatJobName(job)} runs on the group ${missing}, which is not there.`,
      );
    const members = [...own, ...found.flatMap((some) => some ?? [])];
    // If a host occurs several times, its first occurrence decides how it is reached.
    const first = new Map(members.toReversed().map((member) => [member.host, member]));
    const hosts = requested ?? [...new Set(members.map(({ host }) => host))];
    const stranger = asked.groups && hosts.find((host) => !first.has(host));
    if (stranger !== undefined)
      throw new AppError("invalid", `The host ${stranger} is in none of the groups of GROUP!: ${names.join(", ")}.`);
    return { hosts, behind: behindOf(hosts, first) };
  }

  async #ownHosts(principal: Principal, job: StoredJob): Promise<readonly string[]> {
    const { targets, authors } = this.#with;
    const { hosts, named } = await targets.hosts(principal, job.host);
    if (!job.host.some(isExpression) || authorOf(job) === principal.user) return hosts;
    const author = await authors?.present(principal.tenant, authorOf(job));
    const opened = new Set([...named, ...(author ? (await targets.hosts(author, job.host)).hosts : [])]);
    return hosts.filter((host) => opened.has(host));
  }

  /** The hosts of a group. `undefined`: the principal sees no group of that name. */
  async #members(principal: Principal, name: string): Promise<readonly Member[] | undefined> {
    const { stores, runtime, objects, proxied } = this.#with;
    const { kv } = await stores.tenant(principal.tenant);
    const plain = await new GroupStore(kv, runtime).read({ gtype: "group", name });
    if (plain) {
      const filter = await objects.visible.records(principal, principal.ospace + JOB_GROUP_PATH);
      return filter.sees(groupRow(principal, plain.group))
        ? plain.group.hosts.map(({ host }) => ({ host }))
        : undefined;
    }
    const behind = await proxied?.members(principal, name);
    return behind?.map(({ host, proxy }) => (proxy === "" ? { host } : { host, group: name }));
  }
}

function behindOf(hosts: readonly string[], members: ReadonlyMap<string, Member>): Targets["behind"] {
  const pairs = hosts.flatMap((host) => {
    const group = members.get(host)?.group;
    return group === undefined ? [] : [[host, group] as const];
  });
  return Object.fromEntries(pairs);
}
