import { AppError } from "../../../common/errors.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { recordFilter } from "../query/index.ts";
import { groupRow, JOB_GROUP_PATH } from "./classes.ts";
import { namesIn } from "./definition.ts";
import { GroupStore } from "./group-store.ts";
import { formatJobName } from "./names.ts";
import type { Parameters } from "./parameters.ts";
import type { ProxiedHosts } from "./proxied.ts";
import type { StoredJob } from "./store.ts";

/** Where an execution runs. */
export interface Targets {
  readonly hosts: readonly string[];
  /** The group of type proxy of each host that is reached by one. */
  readonly behind: Readonly<Record<string, string>>;
}

export const NO_TARGETS: Targets = { hosts: [], behind: {} };

export interface TargetDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "catalog">;
  /** What reaches hosts of groups of type proxy; absent: there are no such groups. */
  readonly proxied?: ProxiedHosts;
}

/** What executions are asked for instead of what the job says. */
export type Asked = Pick<Parameters, "hosts" | "groups">;

interface Member {
  readonly host: string;
  /** Absent: its own record says how it is reached. */
  readonly group?: string;
}

/** What the definitions of jobs say of where they run. */
export class JobTargets {
  readonly #with: TargetDependencies;

  constructor(dependencies: TargetDependencies) {
    this.#with = dependencies;
  }

  /**
   * The hosts that are asked for, else the job's own and then those its groups have now, each once; groups that are asked
   * for take the place of the job's hosts and groups. A host that a group of type proxy has, and the job itself has not, is
   * reached by that group, also when it is asked for. `AppError("not_found")` for a group that is not there for the
   * principal, unless the hosts are asked for; `invalid` for hosts that are in none of the groups that are asked for.
   */
  async of(principal: Principal, job: StoredJob, asked: Asked): Promise<Targets> {
    const names = asked.groups ?? namesIn(job.group.split(","));
    const own = (asked.groups ? [] : job.host).map((host): Member => ({ host }));
    if (names.length === 0) return { hosts: asked.hosts ?? job.host, behind: {} };
    const found = await Promise.all(names.map((name) => this.#members(principal, name)));
    const missing = names.find((_, at) => found[at] === undefined);
    if (missing !== undefined && (asked.groups || !asked.hosts))
      throw new AppError(
        "not_found",
        `The job ${formatJobName(job)} runs on the group ${missing}, which is not there.`,
      );
    const members = [...own, ...found.flatMap((some) => some ?? [])];
    // Of a host in several places the first one counts.
    const first = new Map(members.toReversed().map((member) => [member.host, member]));
    const hosts = asked.hosts ?? [...new Set(members.map(({ host }) => host))];
    const stranger = asked.groups && hosts.find((host) => !first.has(host));
    if (stranger !== undefined)
      throw new AppError("invalid", `The host ${stranger} is in none of the groups of GROUP!: ${names.join(", ")}.`);
    return { hosts, behind: behindOf(hosts, first) };
  }

  /** `undefined`: there is no group of that name for the principal. */
  async #members(principal: Principal, name: string): Promise<readonly Member[] | undefined> {
    const { stores, runtime, objects, proxied } = this.#with;
    const { kv } = await stores.tenant(principal.tenant);
    const plain = await new GroupStore(kv, runtime).read({ gtype: "group", name });
    if (plain) {
      const filter = await recordFilter(principal, objects, principal.ospace + JOB_GROUP_PATH);
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
