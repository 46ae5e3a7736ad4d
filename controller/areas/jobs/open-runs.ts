import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored } from "../../store/format.ts";
import { Journal, type JournalDependencies, type Noted, type OpenWork } from "../../store/journal/index.ts";
import type { FinalState } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import { nameOf, outputNote, type RunName } from "./outputs.ts";

/**
 * A run on one host that is not wholly over: what any controller needs to go on with it, or to put its end on record.
 * KvStore: `jobs/open/<run>/<host>` until its end is in its row. With each take-over output is written anew, from the
 * first byte.
 */
export interface OpenRun extends RunName, OpenWork {
  readonly startedMs: number;
  /** By the wall clock of the controller that began it. */
  readonly deadlineMs: number;
  readonly order: HostOrder;
  /** Among the hosts of the execution, from 0. */
  readonly place: number;
  /** Of type proxy, by which its host is reached; absent: the host's own record says how. */
  readonly group?: string;
  /** Of tries that failed; absent: it is the first one. */
  readonly tries?: RunTries;
  /** Written into the row by any controller that finds it. */
  readonly end?: RunEnd;
}

/** What is the same for all hosts of an execution. */
export interface RunOrder {
  /** The user who asked for it, with the rights of that time. */
  readonly principal: Principal;
  readonly sid: string;
  /** `<name>@<dir>` */
  readonly name: string;
  readonly dir: string;
  readonly commands: readonly string[];
  /** The environment of the commands, with parameters of the caller: a sealed JSON text (`parameters.ts`). */
  readonly sealed: string;
  readonly hosts: readonly string[];
  /** The group of type proxy of each host that is reached by one; absent: none is. */
  readonly behind?: Readonly<Record<string, string>>;
  readonly groupmode: string;
  /** In which commands are read and write on their hosts; absent: UTF-8. */
  readonly encoding?: string;
  /** When its schedule was due; absent: a caller asked for it. */
  readonly dueMs?: number;
  /** Absent: a host that failed is not tried again. */
  readonly retry?: RunRetry;
  /** The run whose failed hosts this one tries again. */
  readonly origin?: string;
  /** Names of the parameters that the caller gave. */
  readonly params?: readonly string[];
}

/** How hosts that failed are tried again. */
export interface RunRetry {
  readonly count: number;
  readonly delayMs: number;
  /** The most that one try takes. */
  readonly timeoutMs: number;
}

/** The tries of a host that are over; each has ended once, by the step that noted it. */
export interface RunTries {
  /** How each of them ended, in their order. */
  readonly failures: readonly string[];
  /** Where the next one begins, by the clock of the controller that noted it. */
  readonly dueMs: number;
  /** Bytes that they wrote, and bytes of them that are kept: in the output of this attempt, from its first byte on. */
  readonly written: number;
  readonly kept: number;
  readonly attempt: number;
}

/** Who asked for a run, without the rights of that time. */
export type RunCaller = Pick<Principal, "tenant" | "ospace" | "user" | "traceparent">;

/**
 * What an entry of a host keeps of it: names of all hosts in each of them would be a million where there are a thousand,
 * and so would rights. These are with the only host of a run, else where `RunRights` finds them.
 */
export interface HostOrder extends Omit<RunOrder, "hosts" | "behind" | "principal"> {
  readonly principal: RunCaller | Principal;
}

export interface RunEnd {
  readonly state: FinalState;
  readonly code?: number;
  /** The name of the signal that ended the command; absent: none did, or its host does not tell. */
  readonly signal?: string;
  /** Of the last command's process on its host; absent: none was started, or its host does not tell. */
  readonly pid?: number;
  readonly message: string;
  /** Absent: the run had one, or none. */
  readonly tries?: number;
  readonly out: string;
  readonly err: string;
  /** Of its last try, in their order; absent: none ended, or the run is of a controller that did not tell them. */
  readonly commands?: readonly CommandEnd[];
  readonly outputSize: number;
  /** By the clock of the host, when it said so. */
  readonly endedMs: number;
  /** By the clock of the controller that decided it. */
  readonly decidedMs: number;
}

/** How one command of a run ended. */
export interface CommandEnd {
  readonly state: FinalState;
  readonly code?: number;
  readonly signal?: string;
  readonly pid?: number;
  readonly message: string;
  /** By the clock of the host. */
  readonly startedMs: number;
  readonly endedMs: number;
  /** Characters of the run's `out` and `err` up to its end. */
  readonly out: number;
  readonly err: number;
}

export type VersionedRun = Noted<OpenRun>;
export type RunJournal = Journal<OpenRun>;

export const OPEN_RUNS = "jobs/open/";

/** An entry and the note whose output is to be read change together. */
export function runJournal(dependencies: JournalDependencies): RunJournal {
  return new Journal(dependencies, {
    prefix: OPEN_RUNS,
    tenantOf: ({ order }) => order.principal.tenant,
    beside: (open) => [outputNote(open)],
  });
}

/** Whether the run is not wholly over, for readers that carry out nothing. */
export async function isOpen(stores: Stores, tenant: string, run: RunName): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.get(OPEN_RUNS + nameOf(run))) !== undefined;
}

/** Of one execution on one host; undefined once it is wholly over, or when there was none. */
export async function runOnHost(stores: Stores, tenant: string, run: RunName): Promise<OpenRun | undefined> {
  const { kv } = await stores.tenant(tenant);
  const entry = await kv.get(OPEN_RUNS + nameOf(run));
  return entry && decodeStored<OpenRun>(entry.value);
}

/** Of one execution, those that are not wholly over. */
export async function openRunsOf(stores: Stores, tenant: string, runId: string): Promise<readonly OpenRun[]> {
  const { kv } = await stores.tenant(tenant);
  const found: OpenRun[] = [];
  for await (const { value } of entriesUnder(kv, `${OPEN_RUNS}${runId}/`)) found.push(decodeStored<OpenRun>(value));
  return found;
}

/** Whether any host of an execution is not wholly over. */
export async function hasOpenHosts(stores: Stores, tenant: string, runId: string): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.list(`${OPEN_RUNS}${runId}/`, { limit: 1 })).entries.length > 0;
}
