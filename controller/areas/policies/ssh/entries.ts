import { packedRecords } from "../../../../common/agent/packed-records.ts";
import type { RawRecord } from "../../../../common/agent/raw-records.ts";
import type { RunEnd } from "../../../../common/agent/run-end.ts";
import type { Entry, Gap, PolicyRun } from "../../../../proto/gen/agent/v1/agent.ts";
import type { MissedRuns, OpenRun } from "./marks.ts";

type Body = NonNullable<Entry["body"]>;

const SOURCE = "command";

/** The gap of due times that were not run. */
export function missedGap(policy: string, missed: MissedRuns): Body {
  return { $case: "gap", value: { policy, source: SOURCE, unit: "runs", ...missed } };
}

/** The gap of output beyond the limit. */
export function outputGap(policy: string, lost: Pick<Gap, "count" | "fromMs" | "toMs">): Body {
  return { $case: "gap", value: { policy, source: SOURCE, reason: "output_limit", unit: "bytes", ...lost } };
}

export function runBody(
  policy: string,
  run: OpenRun,
  ended: { readonly end: RunEnd; readonly endedMs: number; readonly records: number },
): Body {
  const { scheduledMs, startedMs, revision: policyRevision } = run;
  const { end, endedMs, records } = ended;
  const value: PolicyRun = { policy, policyRevision, scheduledMs, startedMs, endedMs, records, ...end };
  return { $case: "run", value };
}

/** The records of a run in the form in which an agent sends them. */
export function recordBodies(
  { policy, rule, run }: { readonly policy: string; readonly rule: string; readonly run: OpenRun },
  records: readonly RawRecord[],
): readonly Body[] {
  const head = {
    ...{ policy, rule, policyRevision: run.revision, source: SOURCE },
    generation: String(run.scheduledMs),
    groups: {},
  };
  return packedRecords(records).map(({ raw, ...packed }) => ({
    $case: "records",
    value: { ...head, ...packed, records: packed.records.map((bytes) => Buffer.from(bytes)), raw: Buffer.concat(raw) },
  }));
}

/** The entries of one stream. Each has a time of its own, so the ids of their rows ascend. */
export function entriesOf(bodies: readonly Body[], timeMs: number): Entry[] {
  return bodies.map((body, at) => ({ sequence: at + 1, timeMs: timeMs + at, traceparent: "", body }));
}
