import type { PolicySpec } from "../../../../common/api/policies.ts";
import type { HostRead } from "./host-reading.ts";

export interface PreviewReading<Spec extends PolicySpec> {
  readonly spec: Spec;
  readonly host: string;
  /** Maximum number of records. */
  readonly count: number;
  readonly signal: AbortSignal;
}

/** Records that a policy would send from a host. */
export interface PreviewRead extends HostRead {
  /** `command`, or the path of the file. Empty: there is no file. */
  readonly source: string;
  readonly records: readonly {
    readonly text: string;
    /** Named groups of a log policy's file match. */
    readonly groups: Readonly<Record<string, string>>;
    readonly heading?: string | undefined;
  }[];
  readonly warnings: readonly string[];
}
