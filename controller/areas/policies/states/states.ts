import type { PolicyRecord, PolicySpec } from "../../../../common/api/policies.ts";
import { POLICY_STATES_PER_PAGE } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { Hosts, PolicyReport } from "../../hosts/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import { CONF_NEEDS_AGENT, unableOverSsh } from "../ssh/unable.ts";
import type { PolicyStore } from "../store.ts";
import { POLICY_STATE_PATH } from "./class.ts";
import { REMOVED, unwantedState, wantedState, type PolicyState } from "./state.ts";

interface Dependencies {
  readonly store: Pick<PolicyStore, "assignments">;
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
  async *rows(principal: Principal): AsyncGenerator<readonly Row[]> {
    requirePermission(principal, "policies:read");
    yield* inPages(this.#rowsOfHosts(principal));
  }

  /** The rows of one host after the other: of those that have a record, then of those that have none. */
  async *#rowsOfHosts(principal: Principal): AsyncGenerator<readonly Row[]> {
    const { store, hosts } = this.#with;
    const visibility = await this.#visibility(principal);
    const lists = new Map(await store.assignments(principal.tenant));
    const wantedOn = (host: string): readonly string[] =>
      (lists.get(host)?.value?.policies ?? []).filter((policy) => visibility.isShown(policy));
    const unable = (policy: string, host: string): string | undefined => {
      if (lists.get(host)?.value?.confs?.[policy]) return CONF_NEEDS_AGENT;
      return visibility.unable.get(policy);
    };
    for await (const reports of hosts.policyReports(principal))
      for (const report of reports) {
        yield rowsOf(principal, report, { policies: new Set(wantedOn(report.host)), visibility, unable });
        lists.delete(report.host);
      }
    for (const host of lists.keys())
      yield wantedOn(host).map((policy) => rowOf(principal, { policy, host, isWanted: true }, REMOVED));
  }

  async #visibility(principal: Principal): Promise<Visibility> {
    const [all, visible] = await Promise.all([this.#with.policies.all(principal), this.#with.policies.list(principal)]);
    // Who may not see the hosts of a policy sees none of its states.
    const shown = new Set(visible.flatMap(({ name, hosts }) => (hosts === undefined ? [] : (name ?? []))));
    const hidden = new Set(all.map(({ name }) => name).filter((name) => !shown.has(name)));
    const unable = new Map(all.map((policy) => [policy.name, unableOverSsh(policy as PolicySpec)]));
    return { isShown: (policy) => shown.has(policy), isHidden: (policy) => hidden.has(policy), unable };
  }
}

interface Visibility {
  readonly isShown: (policy: string) => boolean;
  /** False also for a policy that was deleted, of which an agent may still report. */
  readonly isHidden: (policy: string) => boolean;
  /** The reason why each policy cannot run over SSH. Undefined: it can. */
  readonly unable: ReadonlyMap<string, string | undefined>;
}

interface WantedPolicies {
  readonly policies: ReadonlySet<string>;
  readonly visibility: Visibility;
  /** The reason why a policy cannot run on a host over SSH. Undefined: it can. */
  readonly unable: (policy: string, host: string) => string | undefined;
}

function rowsOf(
  principal: Principal,
  report: PolicyReport,
  { policies, visibility, unable }: WantedPolicies,
): readonly Row[] {
  const { host } = report;
  const left = Object.keys(report.policies).filter((policy) => !policies.has(policy) && !visibility.isHidden(policy));
  return [
    ...Array.from(policies, (policy) =>
      rowOf(
        principal,
        { policy, host, isWanted: true },
        wantedState({ policy, unable: unable(policy, report.host) }, report),
      ),
    ),
    ...left.map((policy) => rowOf(principal, { policy, host, isWanted: false }, unwantedState(policy, report))),
  ];
}

function rowOf(
  principal: Principal,
  { policy, host, isWanted }: { readonly policy: string; readonly host: string; readonly isWanted: boolean },
  { state, message, sinceMs, usage }: PolicyState,
): Row {
  const path = principal.ospace + POLICY_STATE_PATH;
  return {
    id: `policystate:${policy}/${host}`,
    class: path,
    ...{ policy, host, wanted: isWanted, state, message },
    ...(sinceMs !== undefined && { since: sinceMs }),
    ...(usage?.cpu !== undefined && { cpu_usedpercent: usage.cpu }),
    ...(usage && { memory_bytes: usage.memory }),
  };
}

async function* inPages(parts: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
  let page: Row[] = [];
  for await (const rows of parts) {
    page.push(...rows);
    if (page.length < POLICY_STATES_PER_PAGE) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}
