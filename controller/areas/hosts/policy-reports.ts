import type { Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { HostRecords } from "./records.ts";
import { wayOf } from "./ssh/access.ts";
import { classPath, type HostRecord } from "./store.ts";
import type { PolicyReport, ProcessUsage } from "./types.ts";

interface Dependencies {
  readonly records: Pick<HostRecords, "seen">;
  readonly objects: Pick<Objects, "visible">;
}

/** The policies of each host that the principal sees, as their agents reported them. */
export async function* policyReports(
  principal: Principal,
  { records, objects }: Dependencies,
): AsyncIterable<readonly PolicyReport[]> {
  const filter = await objects.visible.records(principal, classPath(principal));
  for await (const page of records.seen(principal))
    yield page.map((record) => reportOf(record, { ...NOT_REPORTED, ...filter.shown(record) }));
}

/** Members that are shown if the columns are hidden from the principal. */
const NOT_REPORTED = { status: "", statustime: undefined, policies: {}, policytimes: {}, usage: {} };

function reportOf(whole: HostRecord, record: HostRecord): PolicyReport {
  const { host } = whole;
  const way = wayOf(whole);
  const { status, statustime, policies, policytimes } = record;
  const usage = usageOf(record);
  const sinceMs = Object.fromEntries(Object.entries(policytimes).map(([name, text]) => [name, Number(text)]));
  const isOnline = status === "online";
  return { host, way, isOnline, statusSinceMs: statustime, policies, sinceMs, usage };
}

const OF_POLICY = "policy/";

function usageOf({ usage }: Pick<HostRecord, "usage">): Readonly<Record<string, ProcessUsage>> {
  return Object.fromEntries(
    Object.entries(usage).flatMap(([name, text]) => {
      const read = name.startsWith(OF_POLICY) ? parsedUsage(text) : undefined;
      return read ? [[name.slice(OF_POLICY.length), read]] : [];
    }),
  );
}

/** Undefined for a text that no agent of ours sends. */
function parsedUsage(text: string): ProcessUsage | undefined {
  try {
    const usage: Partial<Record<string, unknown>> = { ...(JSON.parse(text) as object) };
    const { cpu, memory } = usage;
    if (typeof memory !== "number" || !Number.isSafeInteger(memory)) return undefined;
    return { memory, ...(typeof cpu === "number" && Number.isFinite(cpu) && { cpu }) };
  } catch {
    return undefined;
  }
}
