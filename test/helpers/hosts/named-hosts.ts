import { isExpression } from "../../../common/targets/index.ts";
import type { Controllers, HostTargets } from "../../../controller/areas/hosts/index.ts";

/** Targets for tests without records of hosts: every entry is the name of a host. */
export const NAMED_HOSTS: Pick<HostTargets, "hosts" | "among" | "existing"> = {
  hosts: (_principal, entries) => {
    if (entries.some(isExpression)) return Promise.reject(new Error("This test has no hosts to match."));
    const hosts = [...new Set(entries)];
    return Promise.resolve({ hosts, named: hosts, warnings: [] });
  },
  among: () => Promise.reject(new Error("This test has no hosts to match.")),
  existing: (_principal, hosts) => Promise.resolve(new Set(hosts)),
};

/** The controllers of an installation with one. */
export const ALONE: Controllers = {
  own: "this",
  all: () => [{ id: "this" }],
  has: () => true,
  onChange: () => () => undefined,
};

/** Reports of agents, for tests without hosts. */
export async function* noReports(): AsyncGenerator<never> {}
