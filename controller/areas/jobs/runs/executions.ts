import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored } from "../../../store/format.ts";
import { Journal, type JournalDependencies, type Versioned, type OpenWork } from "../../../store/journal/index.ts";
import type { KvStore } from "../../../store/kv.ts";
import {
  hasOpenHosts,
  isOpen,
  OPEN_RUNS,
  type HostOrder,
  type OpenRun,
  type RunEnd,
  type RunOrder,
} from "./open-runs.ts";
import type { RunName } from "../output/outputs.ts";
import { roomOf } from "./plan.ts";
import { stageOf, type RunScripts, type Stage } from "../definitions/stages.ts";

/** The end of a script. When the row has the end (`isSettled`), the entry stores it without the output. */
export interface StageEnd extends RunEnd {
  readonly isSettled?: true;
}

/**
 * An execution that another controller must be able to continue as a whole. Such an execution waits in a queue, has
 * scripts, goes from host to host, or was begun by a schedule on several hosts or with a limit. KvStore:
 * `jobs/execution/<run>`, until the last host and the scripts have ended.
 */
export interface OpenExecution extends OpenWork {
  readonly order: RunOrder;
  readonly limit: number;
  /** Key of the queue that contains the execution; empty: none. */
  readonly queueKey: string;
  readonly askedMs: number;
  readonly timeoutMs: number;
  /** Absent: the execution still waits for its turn in the queue. */
  readonly startedMs?: number;
  /** Number of opened hosts. These are the first ones in the order. */
  readonly opened: number;
  readonly scripts?: RunScripts;
  /** Ends of the scripts, for those that have ended. */
  readonly stages?: Readonly<Partial<Record<Stage, StageEnd>>>;
  /** True if the call that began the execution failed: it is sent to no further host. */
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

/** True if an execution has not completely ended. */
export async function hasOpen(stores: Stores, tenant: string, runId: string): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.get(EXECUTIONS + runId)) !== undefined || hasOpenHosts(stores, tenant, runId);
}

/** An execution that has not completely ended. */
export interface Unfinished {
  /** The user who requested the run. */
  readonly user: string;
  /** `<name>@<dir>` */
  readonly job: string;
  /** Absent: it waits for its turn in a queue, or for room. */
  readonly startedMs?: number;
  /** Number of hosts that it has not reached. */
  readonly waiting: number;
}

/**
 * The execution as its entries tell; `undefined`: it has completely ended, or never existed. An entry of the execution
 * itself is removed after those of all its hosts, so it is read first.
 */
export async function unfinished(stores: Stores, tenant: string, runId: string): Promise<Unfinished | undefined> {
  const { kv } = await stores.tenant(tenant);
  const entry = await kv.get(EXECUTIONS + runId);
  if (entry !== undefined) {
    const { order, opened, startedMs, isGivenUp } = decodeStored<OpenExecution>(entry.value);
    const waiting = isGivenUp ? 0 : order.hosts.length - opened;
    return { ...ownerOf(order), waiting, ...(startedMs !== undefined && { startedMs }) };
  }
  const [first] = (await kv.list(`${OPEN_RUNS}${runId}/`, { limit: 1 })).entries;
  if (first === undefined) return undefined;
  const { order, startedMs } = decodeStored<OpenRun>(first.value);
  return { ...ownerOf(order), waiting: 0, startedMs };
}

function ownerOf({ name, principal }: HostOrder): Pick<Unfinished, "user" | "job"> {
  return { user: principal.user, job: name };
}

/**
 * Hosts that will be opened first, of executions without any opened host: in group mode `one` the first, otherwise all.
 * Executions in queues are not included.
 */
export async function* hostsToOpen(kv: KvStore): AsyncGenerator<string> {
  for await (const { value } of entriesUnder(kv, EXECUTIONS)) {
    const { order, opened, queueKey, isGivenUp } = decodeStored<OpenExecution>(value);
    if (opened === 0 && queueKey === "" && !isGivenUp) yield* order.hosts.slice(0, roomOf(order));
  }
}

/** True if the run on a host, or the script, may still write output. */
export async function isGrowing(stores: Stores, tenant: string, run: RunName): Promise<boolean> {
  const stage = stageOf(run.host);
  if (stage === undefined) return isOpen(stores, tenant, run);
  const { kv } = await stores.tenant(tenant);
  const entry = await kv.get(EXECUTIONS + run.runId);
  return entry !== undefined && decodeStored<OpenExecution>(entry.value).stages?.[stage] === undefined;
}
