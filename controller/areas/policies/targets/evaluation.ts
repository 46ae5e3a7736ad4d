import { isAppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { POLICY_RACES_MAX } from "../../../../common/limits.ts";
import { isExpression } from "../../../../common/targets/index.ts";
import type { Runtime } from "../../../runtime.ts";
import type { HostTargets } from "../../hosts/index.ts";
import type { Authors } from "../../jobs/index.ts";
import { allows, type Principal } from "../../permissions/index.ts";
import type { PolicyAssignments } from "../assignments.ts";
import { changedMeanwhile, toSettleMoved, type PolicyStore, type StoredTargets } from "../store.ts";
import { type EvaluatedTargets, type Evaluation, type HoldLimit, nextTargets } from "./next.ts";

export interface EvaluationDependencies {
  readonly store: PolicyStore;
  readonly runtime: Runtime;
  readonly assignments: Pick<PolicyAssignments, "settle">;
  readonly targets: Pick<HostTargets, "hosts" | "among" | "existing">;
  /** Absent: no user is known, so expressions match no host. */
  readonly authors?: Authors | undefined;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  readonly limit: HoldLimit;
}

/** Errors by which the author of a policy learns that an expression is not allowed any more. */
const LOST = ["denied", "invalid", "not_found", "syntax"] as const;

/**
 * Evaluates the expressions of deployed policies by the present rights of the users who saved them. Each result is
 * written on condition that the policy did not change, so controllers that evaluate at the same time do no harm.
 */
export class PolicyEvaluation {
  readonly #with: EvaluationDependencies;

  constructor(dependencies: EvaluationDependencies) {
    this.#with = dependencies;
  }

  /**
   * Brings the hosts of a policy up to date. With `changed`, only these hosts are looked at. Returns true if a removal of
   * hosts is held. Idempotent.
   */
  async evaluate(tenant: string, name: string, changed?: readonly string[]): Promise<boolean> {
    const { store, assignments } = this.#with;
    for (let race = 0; race < POLICY_RACES_MAX; race++) {
      const seen = await store.get(tenant, name);
      const now = seen.targets.value;
      if (!isEvaluated(now) || !now.deployed) return false;
      const next = this.decided(now, await this.#evaluated(tenant, now, changed));
      if (!next) return now.entries.held !== undefined;
      const targets = toSettleMoved(now, next);
      if (!(await store.write(tenant, name, { seen, targets }))) continue;
      this.#report(tenant, name, { now, next });
      await assignments.settle(tenant, name);
      return next.entries.held !== undefined;
    }
    throw changedMeanwhile(name);
  }

  /** The targets after the evaluation; undefined if it changes nothing. */
  decided(now: EvaluatedTargets, evaluation: Evaluation): EvaluatedTargets | undefined {
    const { limit, runtime } = this.#with;
    const nowMs = runtime.clock.nowMs();
    return nextTargets(now, evaluation, { limit, nowMs, newId: () => ulidOf(nowMs, runtime.random.bytes(10)) });
  }

  /** Those of the targets' hosts that are not among `wanted` and have no record any more. */
  async gone(tenant: string, now: StoredTargets, wanted: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const absent = now.hosts.filter((host) => !wanted.has(host));
    if (absent.length === 0) return new Set();
    const existing = await this.#with.targets.existing(await this.#with.actAs(tenant, ""), absent);
    return new Set(absent.filter((host) => !existing.has(host)));
  }

  async #evaluated(tenant: string, now: EvaluatedTargets, changed: readonly string[] | undefined): Promise<Evaluation> {
    const { list, held } = now.entries;
    const named = list.filter((entry) => !isExpression(entry));
    const asked = changed && [...new Set([...changed, ...(held?.hosts ?? [])])];
    const matched = await this.#matched(tenant, now, asked);
    const unasked = asked ? without(now.hosts, asked) : [];
    const wanted = [...new Set([...named, ...unasked, ...matched])];
    return { wanted, named, gone: await this.gone(tenant, now, new Set(wanted)) };
  }

  async #matched(
    tenant: string,
    { entries: { list, by } }: EvaluatedTargets,
    asked: readonly string[] | undefined,
  ): Promise<Iterable<string>> {
    const { authors, targets, runtime } = this.#with;
    const author = await authors?.present(tenant, by);
    if (!author || !allows(author, "policies:run")) return [];
    try {
      if (asked) return await targets.among(author, list, asked);
      return (await targets.hosts(author, list.filter(isExpression))).hosts;
    } catch (error) {
      if (!isAppError(error, ...LOST)) throw error;
      runtime.log.warn({ tenant, user: by, reason: error.message }, "expressions of a policy match no host");
      return [];
    }
  }

  #report(tenant: string, policy: string, { now, next }: Record<"now" | "next", EvaluatedTargets>): void {
    const joined = without(next.hosts, now.hosts).length;
    const left = without(now.hosts, next.hosts).length;
    const held = next.entries.held?.hosts.length ?? 0;
    this.#with.runtime.log.info({ tenant, policy, joined, left, held }, "the hosts of a policy were evaluated");
  }
}

export function isEvaluated(targets: StoredTargets | undefined): targets is EvaluatedTargets {
  return targets?.entries !== undefined;
}

function without(hosts: readonly string[], others: readonly string[]): readonly string[] {
  const left = new Set(others);
  return hosts.filter((host) => !left.has(host));
}
