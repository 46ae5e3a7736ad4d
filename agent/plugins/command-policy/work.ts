import type { OutputCutting } from "../../../common/agent/output-records.ts";
import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import type { Host } from "../../policies/host.ts";
import type { PolicyWork } from "../../policies/plugin.ts";

/** The parts that both kinds of runners need. */
export interface CommandWork extends Omit<PolicyWork, "spec">, Omit<OutputCutting, "spec"> {
  readonly spec: CommandPolicySpec;
  readonly host: Host;
}
