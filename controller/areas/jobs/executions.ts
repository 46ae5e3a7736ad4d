import type { Stores } from "../../store/engine.ts";
import { Journal, type JournalDependencies, type Noted, type OpenWork } from "../../store/journal/index.ts";
import { hasOpenHosts, type RunOrder } from "./open-runs.ts";

/**
 * An execution that must be gone on with as a whole where its controller goes away before all of its hosts are open:
 * one that a schedule began, or that waits in a queue. KvStore: `jobs/execution/<run>` until its last host has ended.
 */
export interface OpenExecution extends OpenWork {
  readonly order: RunOrder;
  readonly limit: number;
  /** The key of the queue it waits in, or is at the head of; empty: none. */
  readonly queueKey: string;
  readonly askedMs: number;
  readonly timeoutMs: number;
  /** Absent: its turn has not come. */
  readonly startedMs?: number;
  /** So many of its hosts were opened, the first ones of the order. */
  readonly opened: number;
}

export type VersionedExecution = Noted<OpenExecution>;
export type ExecutionJournal = Journal<OpenExecution>;

const PREFIX = "jobs/execution/";

export function executionJournal(dependencies: JournalDependencies): ExecutionJournal {
  return new Journal(dependencies, { prefix: PREFIX, tenantOf: ({ order }) => order.principal.tenant });
}

/** Whether an execution is not wholly over. */
export async function hasOpen(stores: Stores, tenant: string, runId: string): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.get(PREFIX + runId)) !== undefined || hasOpenHosts(stores, tenant, runId);
}
