import type { RecordCutter } from "../../../common/agent/records.ts";
import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import type { Host } from "../../policies/host.ts";
import type { PolicyWork } from "../../policies/plugin.ts";

/** Parts that both kinds of runner work with. */
export interface CommandWork extends Omit<PolicyWork, "spec"> {
  readonly spec: CommandPolicySpec;
  readonly cutter: RecordCutter;
  /** Cuts output in `encoding`. Absent: there is none, or the delimiter is not found in it. */
  readonly encodedCutter: RecordCutter | undefined;
  readonly host: Host;
  /** Encoding of the output. Without one the output is sent as it is. */
  readonly encoding: Encoding | undefined;
}
