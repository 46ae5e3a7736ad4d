import type { Entry, Gap, PolicyRun } from "../../../proto/gen/agent/v1/agent.ts";
import type { NewRecord } from "../objects/index.ts";
import { entryIdentity } from "./batches.ts";
import type { PreparedBatch } from "./types.ts";

/** Paths of the classes for runs and gaps of policies, relative to the tenant's ospace. */
export interface PolicyClasses {
  readonly runs: string;
  readonly gaps: string;
}

/**
 * The record of a policy run. Its identity is the scheduled run, not its place in the stream, so a run makes one
 * record.
 */
export function runRecord(run: PolicyRun, host: string): NewRecord {
  const { policy, scheduledMs, state, code, message, startedMs, endedMs, records } = run;
  const values = {
    policy,
    host,
    scheduled: scheduledMs,
    state,
    code,
    message,
    started: startedMs,
    ended: endedMs,
    records,
  };
  return { values, timeMs: scheduledMs, identity: `run/${host}/${policy}/${scheduledMs}` };
}

/** The record of a gap that an agent reports. */
export function gapRecord(entry: Entry, { fromMs, toMs, ...gap }: Gap, batch: PreparedBatch): NewRecord {
  const values = { ...gap, host: batch.source.host, stime: fromMs, etime: toMs };
  return { values, timeMs: entry.timeMs, identity: `${entryIdentity(batch, entry)}/0` };
}

/** The record of a gap for entries that are missing in the stream of an agent. */
export function missingEntries({ source, entries, missing }: PreparedBatch): NewRecord {
  const first = entries[0];
  const timeMs = first?.timeMs ?? 0;
  const values = {
    host: source.host,
    policy: "",
    source: source.streamId,
    reason: "lost",
    unit: "entries",
    count: missing,
    stime: timeMs,
    etime: timeMs,
  };
  return { values, timeMs, identity: `missing/${source.host}/${source.streamId}/${first?.sequence ?? 0}` };
}
