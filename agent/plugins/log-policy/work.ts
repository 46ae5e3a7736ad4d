import type { RecordCutter } from "../../../common/agent/records.ts";
import type { HeadingRule } from "../../../common/agent/policy-heading.ts";
import type { LogPolicySpec } from "../../../common/api/policies.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import type { Pattern } from "../../../common/regex/pattern.ts";
import type { Policy } from "../../../proto/gen/agent/v1/agent.ts";
import type { Host } from "../../policies/host.ts";
import type { KeptHeadings } from "./records/kept-headings.ts";
import type { Writers } from "./records/writer.ts";

export interface LogWork {
  readonly policy: Policy;
  readonly spec: LogPolicySpec;
  readonly host: Host;
  readonly match: Pattern;
  readonly filter: Pattern | undefined;
  readonly cutter: RecordCutter;
  /** Encoding of the files. Absent: UTF-8, and records are sent unchanged. */
  readonly encoding: Encoding | undefined;
  readonly heading: HeadingRule;
  readonly headings: KeptHeadings;
  readonly writers: Writers;
  /** Maximum number of followed files. */
  readonly filesMax: number;
  /** Maximum unpacked bytes of one packed file. */
  readonly packedMaxBytes: number;
  /** Unpacked bytes of one packed file in one look. */
  readonly packedLookBytes: number;
  /** True if the delimiter begins a record. A record then ends where the next one begins. */
  readonly endsWithNext: boolean;
}
