import type { PolicyRecord, PolicySpec } from "../../../../common/api/policies.ts";
import type { PolicyPreview } from "../../../../common/api/policy-previews.ts";
import { TIME_ZONE } from "../../../../common/api/policies.ts";
import { AppError } from "../../../../common/errors.ts";
import { POLICY_PREVIEW_RECORDS_DEFAULT } from "../../../../common/limits.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";
import type { RawRecord, RuleTrials } from "../../rules/index.ts";
import { policyInput } from "../input.ts";
import { NamedByPolicies, type NamedDependencies } from "../named.ts";
import { readCommand } from "./command-preview.ts";
import type { HostRead, HostReadingParts } from "./host-reading.ts";
import { readLog } from "./log-preview.ts";
import type { PreviewRead } from "./types.ts";

type Trial = Awaited<ReturnType<RuleTrials["ofRecords"]>>;

export interface PolicyPreviewParts extends Omit<HostReadingParts, "hosts">, NamedDependencies {
  readonly hosts: HostReadingParts["hosts"] & NamedDependencies["hosts"];
  readonly policies: { get(principal: Principal, name: string): Promise<PolicyRecord> };
  readonly trials: Pick<RuleTrials, "ofRecords">;
  /** Zone of the host for times without a zone. */
  readonly zoneOf: (principal: Principal, host: string) => Promise<string | undefined>;
}

export interface PreviewResult extends Trial, Omit<HostRead, "code"> {
  /** `command`, or the path of the log file; empty without one. */
  readonly source: string;
  readonly code?: number;
}

/** Shows what a policy would send from a host, and what its rule makes of it. Nothing is stored. */
export class PolicyPreviews {
  readonly #with: PolicyPreviewParts;
  readonly #named: NamedByPolicies;

  constructor(parts: PolicyPreviewParts) {
    this.#with = parts;
    this.#named = new NamedByPolicies(parts);
  }

  /**
   * Previews a saved policy, or a draft after the checks of saving. The command runs on the host once more, beside the
   * runs of an agent. The caller needs the rights to save and to deploy policies and to run jobs. `AppError("unavailable")` if the
   * host is away or lacks the depot. Also throws the errors of `PolicyService.save` and of `RuleTrials.ofRecords`.
   */
  async run(principal: Principal, asked: PolicyPreview, signal: AbortSignal): Promise<PreviewResult> {
    requirePermission(principal, "policies:write");
    // A draft is any command, so what a preview runs takes the rights of a deployment and of a job.
    requirePermission(principal, "policies:run");
    requirePermission(principal, "jobs:run");
    const spec = await this.#spec(principal, asked);
    await this.#named.check(principal, spec);
    const { host, records: count = POLICY_PREVIEW_RECORDS_DEFAULT } = asked;
    const reading = { host, count, signal };
    const read =
      spec.kind === "command"
        ? await readCommand(principal, this.#with, { ...reading, spec })
        : await readLog(principal, this.#with, { ...reading, spec });
    const raw = await this.#raw(principal, { spec, host, read });
    const trial = await this.#with.trials.ofRecords(principal, spec.rule, { raw, signal });
    const { state, code, errors, source, warnings } = read;
    return {
      ...trial,
      state,
      errors,
      source,
      ...(code !== undefined && { code }),
      warnings: [...warnings, ...trial.warnings],
    };
  }

  async #spec(principal: Principal, { name, command, log }: PolicyPreview): Promise<PolicySpec> {
    if ([name, command, log].filter((one) => one !== undefined).length !== 1)
      throw new AppError("invalid", "Give one of name, the saved policy, and command or log, a draft.");
    if (command) return policyInput("command", command).spec;
    if (log) return policyInput("log", log).spec;
    const record = await this.#with.policies.get(principal, name ?? "");
    const isShown = record.rule !== undefined && (record.command ?? record.dir) !== undefined;
    if (isShown) return record as unknown as PolicySpec;
    throw new AppError("denied", `Members of the policy ${record.name} that a preview needs are hidden from you.`);
  }

  async #raw(
    principal: Principal,
    { spec, host, read }: { readonly spec: PolicySpec; readonly host: string; readonly read: PreviewRead },
  ): Promise<readonly RawRecord[]> {
    const ofPolicy = spec.attrs?.[TIME_ZONE]?.trim() ?? "";
    const zone = ofPolicy === "" ? await this.#with.zoneOf(principal, host) : ofPolicy;
    const timeMs = this.#with.runtime.clock.nowMs();
    return read.records.map((record) => ({ ...record, timeMs, host, source: read.source, zone }));
  }
}
