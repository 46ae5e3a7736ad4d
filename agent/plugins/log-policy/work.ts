import type { RecordCutter } from "../../../common/agent/records.ts";
import type { HeadingRule } from "../../../common/agent/policy-heading.ts";
import type { LogPolicySpec } from "../../../common/api/policies.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import type { Pattern } from "../../../common/regex/pattern.ts";
import type { Policy } from "../../../proto/gen/agent/v1/agent.ts";
import type { Host } from "../../policies/host.ts";
import type { KeptHeadings } from "./records/kept-headings.ts";

export interface LogWork {
  readonly policy: Policy;
  readonly spec: LogPolicySpec;
  readonly host: Host;
  readonly match: Pattern;
  readonly filter: Pattern | undefined;
  readonly cutter: RecordCutter;
  /** Absent: records are sent as they are, which is UTF-8. */
  readonly encoding: Encoding | undefined;
  readonly heading: HeadingRule;
  readonly headings: KeptHeadings;
  /** Files that are followed at most. */
  readonly filesMax: number;
  /** Unpacked bytes of one packed file at most. */
  readonly packedMaxBytes: number;
  /** A record's end is its next one's beginning. */
  readonly endsWithNext: boolean;
}
