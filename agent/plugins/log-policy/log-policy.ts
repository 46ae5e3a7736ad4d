import { compileCutter } from "../../../common/agent/records.ts";
import type { LogPolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import {
  LOG_FILES_MAX,
  LOG_HEADINGS_KEPT_MAX_BYTES,
  LOG_PACKED_LOOK_BYTES,
  LOG_PACKED_MAX_BYTES,
} from "../../../common/limits.ts";
import { compilePattern } from "../../../common/regex/pattern.ts";
import type { Policy } from "../../../proto/gen/agent/v1/agent.ts";
import type { Host } from "../../policies/host.ts";
import type { PolicyPlugin } from "../../policies/plugin.ts";
import { storedEncoding } from "../../policies/stored-encoding.ts";
import { KeptHeadings } from "./records/kept-headings.ts";
import { Writers } from "./records/writer.ts";
import { LogRunner } from "./runner.ts";
import { storedHeading } from "./records/stored-heading.ts";
import type { LogWork } from "./work.ts";

/** Follows the files of a folder through rotation and truncation, and sends what is written to them. */
export const logPolicy: PolicyPlugin = {
  kind: "log",
  create({ policy, spec }, host) {
    if (!isLogSpec(spec)) throw new AppError("invalid", `The policy ${policy.name} is no log policy.`);
    return new LogRunner(logWork(policy, spec, host));
  },
};

/** Throws `AppError("invalid")` for an expression or delimiter that cannot be used. */
export function logWork(
  policy: Policy,
  spec: LogPolicySpec,
  host: Host,
  {
    packedMaxBytes = LOG_PACKED_MAX_BYTES,
    packedLookBytes = LOG_PACKED_LOOK_BYTES,
    filesMax = LOG_FILES_MAX,
    headingsMaxBytes = LOG_HEADINGS_KEPT_MAX_BYTES,
  } = {},
): LogWork {
  const encoding = storedEncoding(policy.name, spec, host);
  return {
    policy,
    spec,
    host,
    match: compilePattern(spec.match),
    filter: spec.matchregexp ? compilePattern(spec.matchregexp) : undefined,
    cutter: compileCutter({ ...spec, encoding }),
    encoding,
    heading: storedHeading(policy.name, spec, host),
    headings: new KeptHeadings(headingsMaxBytes),
    writers: new Writers(),
    packedMaxBytes,
    packedLookBytes,
    filesMax,
    endsWithNext: Boolean(spec.delimiter) && !spec.delimitereol,
  };
}

function isLogSpec(value: unknown): value is LogPolicySpec {
  if (typeof value !== "object" || value === null) return false;
  const spec: Partial<Record<string, unknown>> = { ...value };
  return (
    spec.kind === "log" && [spec.dir, spec.match, spec.rule].every((text) => typeof text === "string" && text !== "")
  );
}
