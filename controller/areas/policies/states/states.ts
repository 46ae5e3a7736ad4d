import type { PolicyRecord } from "../../../../common/api/policies.ts";
import { POLICY_STATES_PER_PAGE } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { Hosts, PolicyReport } from "../../hosts/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { POLICY_STATE_PATH } from "./class.ts";
import { REMOVED, unwantedState, wantedState, type PolicyState } from "./state.ts";

interface Dependencies {
  readonly hosts: Pick<Hosts, "policyReports">;
  /** All policies, and those that the principal may see without the members that are hidden from it. */
  readonly policies: {
    all(principal: Principal): Promise<readonly PolicyRecord[]>;
    list(principal: Principal): Promise<readonly Partial<PolicyRecord>[]>;
  };
}

/**
 * The policies that hosts are to run beside those that their agents reported: one row for each policy of each host. Rows
 * are computed when they are read, so nothing is written when hosts come and go.
 */
export class PolicyStates {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /** Rows of `/system/policystate`, in pages. Policies and hosts that the principal may not see are left out. */
  async *rows(principal: Principal): AsyncIterable<readonly Row[]> {
    requirePermission(principal, "policies:read");
    const { hosts } = this.#with;
    const { wanted, hidden } = await this.#wanted(principal);
    for await (const reports of hosts.policyReports(principal)) {
      const rows = reports.flatMap((report) => {
        const policies = wanted.get(report.host) ?? [];
        wanted.delete(report.host);
        return rowsOf(principal, report, { policies, hidden });
      });
      yield* pages(rows);
    }
    for (const [host, policies] of wanted)
      yield policies.map((policy) => rowOf(principal, { policy, host, isWanted: true }, REMOVED));
  }

  /** Names of the policies that each host is to run, and of those that the principal may not see. */
  async #wanted(principal: Principal): Promise<{
    readonly wanted: Map<string, readonly string[]>;
    readonly hidden: ReadonlySet<string>;
  }> {
    const [all, visible] = await Promise.all([this.#with.policies.all(principal), this.#with.policies.list(principal)]);
    const wanted = new Map<string, string[]>();
    for (const { name = "", status, hosts = [], matched = hosts } of visible)
      if (status === "deployed") for (const host of matched) wanted.set(host, [...(wanted.get(host) ?? []), name]);
    const seen = new Set(visible.map(({ name }) => name));
    return { wanted, hidden: new Set(all.map(({ name }) => name).filter((name) => !seen.has(name))) };
  }
}

function rowsOf(
  principal: Principal,
  report: PolicyReport,
  { policies, hidden }: { readonly policies: readonly string[]; readonly hidden: ReadonlySet<string> },
): readonly Row[] {
  const { host } = report;
  const left = Object.keys(report.policies).filter((policy) => !policies.includes(policy) && !hidden.has(policy));
  return [
    ...policies.map((policy) => rowOf(principal, { policy, host, isWanted: true }, wantedState(policy, report))),
    ...left.map((policy) => rowOf(principal, { policy, host, isWanted: false }, unwantedState(policy, report))),
  ];
}

function rowOf(
  principal: Principal,
  { policy, host, isWanted }: { readonly policy: string; readonly host: string; readonly isWanted: boolean },
  { state, message, sinceMs }: PolicyState,
): Row {
  const path = principal.ospace + POLICY_STATE_PATH;
  return {
    id: `policystate:${policy}/${host}`,
    class: path,
    ...{ policy, host, wanted: isWanted, state, message },
    ...(sinceMs !== undefined && { since: sinceMs }),
  };
}

function* pages(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += POLICY_STATES_PER_PAGE) yield rows.slice(at, at + POLICY_STATES_PER_PAGE);
}
