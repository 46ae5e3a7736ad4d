import type { RecordCutter } from "../../../common/agent/records.ts";
import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import type { Host } from "../../policies/host.ts";
import type { PolicyWork } from "../../policies/plugin.ts";

/** The parts that both kinds of runners need. */
export interface CommandWork extends Omit<PolicyWork, "spec"> {
  readonly spec: CommandPolicySpec;
  readonly cutter: RecordCutter;
  /** Cuts output in `encoding`. Absent without an encoding, or when the delimiter cannot be found in it. */
  readonly encodedCutter: RecordCutter | undefined;
  readonly host: Host;
  /** Encoding of the output. Without one, the output is sent unchanged. */
  readonly encoding: Encoding | undefined;
}
