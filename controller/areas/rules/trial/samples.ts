import { AppError } from "../../../../common/errors.ts";
import { RECENT_POLICY_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { classAccess, isUnrestricted, requirePermission, seesWhole, type Principal } from "../../permissions/index.ts";
import type { RecentOfPolicy, RecentRecord, RecentRecords } from "../parsing/recent.ts";
import type { RawRecord } from "../types.ts";

export interface PolicySampleParts {
  readonly recent: Pick<RecentRecords, "of">;
  /** Returns the records of each other controller; `undefined` for a controller that did not answer. */
  readonly others: (tenant: string, policy: string) => Promise<readonly (RecentOfPolicy | undefined)[]>;
  /**
   * `AppError("not_found")` if the policy does not exist for the principal. `rule` is absent if it is hidden from the
   * principal.
   */
  readonly policies: {
    get(principal: Principal, name: string): Promise<{ readonly rule?: string | undefined }>;
  };
}

export interface PolicySample {
  /** Key of the rule that the policy names. */
  readonly rule: string | undefined;
  /** The newest record is the last. */
  readonly records: readonly RawRecord[];
  /** Texts for users about missing records. */
  readonly warnings: readonly string[];
}

/** The latest raw records of policies, from the memory of all running controllers. */
export class PolicySamples {
  readonly #with: PolicySampleParts;

  constructor(parts: PolicySampleParts) {
    this.#with = parts;
  }

  /**
   * Returns at most `count` records. A raw record contains the values of all rows that are made of it. So the caller
   * must be able to read all rows and columns of the classes that its rule names. If the rule names none or could not
   * be used, the caller must be able to read and write everything of the tenant. Otherwise `AppError("denied")`.
   */
  async last(principal: Principal, policy: string, count: number): Promise<PolicySample> {
    requirePermission(principal, "policies:read");
    const { recent, others, policies } = this.#with;
    const { rule } = await policies.get(principal, policy);
    const { tenant } = principal;
    const found = [recent.of(tenant, policy), ...(await others(tenant, policy))];
    const answered = found.filter((one) => one !== undefined);
    const there = answered.filter(({ records, leftOut }) => records.length + leftOut > 0);
    const shown = there.filter(({ classes }) => readsAll(principal, classes));
    if (there.length > 0 && shown.length === 0) throw hidden(policy);
    const records = merged(shown).slice(-count);
    const warnings = missing({
      policy,
      records: records.length,
      silent: found.length - answered.length,
      leftOut: shown.reduce((sum, { leftOut }) => sum + leftOut, 0),
    });
    return { rule, records, warnings };
  }
}

function readsAll(principal: Principal, classes: readonly string[]): boolean {
  if (classes.length === 0) return isUnrestricted(principal, principal.ospace);
  return classes.every((path) => seesWhole(classAccess(principal, path)));
}

/** Records sorted by time. A record that several controllers have is listed once. */
function merged(found: readonly RecentOfPolicy[]): readonly RawRecord[] {
  const byId = new Map<string, RecentRecord>();
  for (const { records } of found) for (const record of records) byId.set(record.id, record);
  return [...byId.values()].sort((a, b) => a.timeMs - b.timeMs);
}

function missing(seen: {
  readonly policy: string;
  readonly records: number;
  readonly silent: number;
  readonly leftOut: number;
}): readonly string[] {
  const { policy, records, silent, leftOut } = seen;
  return [
    ...(records === 0
      ? [`No raw record of ${policy} is there: controllers keep the latest ones in memory, from their start.`]
      : []),
    ...(silent > 0 ? [`Controllers that did not answer, and whose records are left out: ${silent}.`] : []),
    ...(leftOut > 0
      ? [`Records of more than ${RECENT_POLICY_MAX_CHARACTERS} characters, which are not kept: ${leftOut}.`]
      : []),
  ];
}

function hidden(policy: string): AppError {
  const text = "is for who may read all rows and columns of the classes that they go to";
  return new AppError("denied", `To see the raw records of ${policy} ${text}.`);
}
