import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/entries.ts";
import { decodeStored } from "../../../store/format.ts";
import { Journal, type JournalDependencies, type Versioned, type OpenWork } from "../../../store/journal/index.ts";
import type { KvStore } from "../../../store/kv.ts";
import { hasOpenHosts, isOpen, type RunEnd, type RunOrder } from "./open-runs.ts";
import type { RunName } from "../output/outputs.ts";
import { roomOf } from "./plan.ts";
import { stageOf, type RunScripts, type Stage } from "../definitions/stages.ts";

/** The end of a script; once it is recorded, the entry stores it without its output. */
export interface StageEnd extends RunEnd {
  readonly isSettled?: true;
}

/**
 * An execution that another controller must continue as a whole if its controller stops before all hosts are open: one
 * that a schedule began on several hosts or with a limit, one that waits in a queue, has scripts, or goes from host to
 * host. KvStore: `jobs/execution/<run>` until its last host and its scripts have ended.
 */
export interface OpenExecution extends OpenWork {
  readonly order: RunOrder;
  readonly limit: number;
  /** Key of the queue in which it waits or is first; empty: none. */
  readonly queueKey: string;
  readonly askedMs: number;
  readonly timeoutMs: number;
  /** Absent: its turn in the queue has not come. */
  readonly startedMs?: number;
  /** Number of opened hosts: the first ones of the order. */
  readonly opened: number;
  readonly scripts?: RunScripts;
  /** Ends of the scripts that have ended. */
  readonly stages?: Readonly<Partial<Record<Stage, StageEnd>>>;
  /** Its call failed: it is sent to no further host. */
  readonly isGivenUp?: true;
}

export type VersionedExecution = Versioned<OpenExecution>;
export type ExecutionJournal = Journal<OpenExecution>;

export const EXECUTIONS = "jobs/execution/";

export function executionJournal(dependencies: JournalDependencies): ExecutionJournal {
  return new Journal(dependencies, { prefix: EXECUTIONS, tenantOf: ({ order }) => order.principal.tenant });
}

export function executionKey(runId: string): string {
  return EXECUTIONS + runId;
}

/** True if an execution is not completely over. */
export async function hasOpen(stores: Stores, tenant: string, runId: string): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.get(EXECUTIONS + runId)) !== undefined || hasOpenHosts(stores, tenant, runId);
}

/** The first hosts of executions that are not open yet, except those in queues. */
export async function* hostsToOpen(kv: KvStore): AsyncGenerator<string> {
  for await (const { value } of entriesUnder(kv, EXECUTIONS)) {
    const { order, opened, queueKey, isGivenUp } = decodeStored<OpenExecution>(value);
    if (opened === 0 && queueKey === "" && !isGivenUp) yield* order.hosts.slice(0, roomOf(order));
  }
}

/** True if more output of a run on a host, or of one of its scripts, may come. */
export async function isGrowing(stores: Stores, tenant: string, run: RunName): Promise<boolean> {
  const stage = stageOf(run.host);
  if (stage === undefined) return isOpen(stores, tenant, run);
  const { kv } = await stores.tenant(tenant);
  const entry = await kv.get(EXECUTIONS + run.runId);
  return entry !== undefined && decodeStored<OpenExecution>(entry.value).stages?.[stage] === undefined;
}
