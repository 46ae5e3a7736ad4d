import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored } from "../../../store/format.ts";
import { Journal, type JournalDependencies, type Versioned, type OpenWork } from "../../../store/journal/index.ts";
import type { FinalState } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { nameOf, outputNote, type RunName } from "../output/outputs.ts";

/**
 * A run on one host that has not completely ended: the data that any controller needs to continue the run or to record
 * its end. KvStore: `jobs/open/<run>/<host>`, until the end is in the row. Each controller that takes the run over
 * writes the output again from the first byte.
 */
export interface OpenRun extends RunName, OpenWork {
  readonly startedMs: number;
  /** Time by the wall clock of the controller that began the run. */
  readonly deadlineMs: number;
  readonly order: HostOrder;
  /** Index of the host in the list of hosts of the execution. */
  readonly place: number;
  /** Group of type `proxy` through which the host is reached; absent: the host's own record says how. */
  readonly group?: string;
  /** The failed tries; absent: no try has failed yet. */
  readonly tries?: RunTries;
  /** The decided end. Any controller that finds it writes it into the row. */
  readonly end?: RunEnd;
}

/** The data that is common to all hosts of an execution. */
export interface RunOrder {
  /** The user who requested the run, with the rights at that time. */
  readonly principal: Principal;
  readonly sid: string;
  /** `<name>@<dir>` */
  readonly name: string;
  readonly dir: string;
  readonly commands: readonly string[];
  /**
   * Environment variables of the commands, which contain the caller's parameters: a sealed JSON text (`parameters.ts`).
   */
  readonly sealed: string;
  readonly hosts: readonly string[];
  /** By host: the group of type `proxy` through which it is reached. Absent: no host is reached through one. */
  readonly behind?: Readonly<Record<string, string>>;
  readonly groupmode: string;
  /** Encoding of commands and their output on the hosts; absent: UTF-8. */
  readonly encoding?: string;
  /** User of the hosts who runs the commands. Absent: the user of the agent or the login. */
  readonly hostUser?: string;
  /** Time at which the schedule was due; absent: a caller requested the run. */
  readonly dueMs?: number;
  /** Absent: failed hosts are not tried again. */
  readonly retry?: RunRetry;
  /** Id of the run whose failed hosts this run tries again. */
  readonly origin?: string;
  /** Names of the parameters that the caller gave. */
  readonly params?: readonly string[];
}

/** How failed hosts are tried again. */
export interface RunRetry {
  readonly count: number;
  readonly delayMs: number;
  /** Maximum time of one try. */
  readonly timeoutMs: number;
}

/** The finished tries of a host. Each try is stored once, when it has ended. */
export interface RunTries {
  /** How each try ended, in order. */
  readonly failures: readonly string[];
  /** Start time of the next try, by the clock of the controller that stored it. */
  readonly dueMs: number;
  /**
   * Bytes that all tries wrote (`written`), and how many of them are stored (`kept`). The stored ones are the first
   * bytes of the output of attempt `attempt`.
   */
  readonly written: number;
  readonly kept: number;
  readonly attempt: number;
}

/** The user who requested a run, without that user's rights. */
export type RunCaller = Pick<Principal, "tenant" | "ospace" | "user" | "traceparent">;

/**
 * The part of the order that the entry of one host stores. With the names of all hosts in each entry, a run on a
 * thousand hosts would store a million names. The rights would also be in every entry. If the run has only one host,
 * its entry does store the rights; otherwise `RunRights` finds them.
 */
export interface HostOrder extends Omit<RunOrder, "hosts" | "behind" | "principal"> {
  readonly principal: RunCaller | Principal;
}

export interface RunEnd {
  readonly state: FinalState;
  readonly code?: number;
  /** Name of the signal that ended the command; absent: there was none, or the host does not report it. */
  readonly signal?: string;
  /** Process id of the last command on its host; absent: no command started, or the host does not report it. */
  readonly pid?: number;
  readonly message: string;
  /** Number of tries; absent: at most one. */
  readonly tries?: number;
  readonly out: string;
  readonly err: string;
  /**
   * Ends of the commands of the last try, in order. Absent: no command ended, or the controller that ran them did not
   * report their ends.
   */
  readonly commands?: readonly CommandEnd[];
  readonly outputSize: number;
  /** End by the clock of the host, or of the controller if the host did not report it. */
  readonly endedMs: number;
  /** Time of the decision, by the clock of the controller that made it. */
  readonly decidedMs: number;
}

/** The end of one command of a run. */
export interface CommandEnd {
  readonly state: FinalState;
  readonly code?: number;
  readonly signal?: string;
  readonly pid?: number;
  readonly message: string;
  /** Start and end by the clock of the host, or of the controller if the host reported none. */
  readonly startedMs: number;
  readonly endedMs: number;
  /** Number of characters of the run's `out` (and `err`) up to the end of this command. */
  readonly out: number;
  readonly err: number;
}

export type VersionedRun = Versioned<OpenRun>;
export type RunJournal = Journal<OpenRun>;

export const OPEN_RUNS = "jobs/open/";

/** The journal of runs on hosts. The note that names the valid output is written together with each entry. */
export function runJournal(dependencies: JournalDependencies): RunJournal {
  return new Journal(dependencies, {
    prefix: OPEN_RUNS,
    tenantOf: ({ order }) => order.principal.tenant,
    beside: (open) => [outputNote(open)],
  });
}

/** True if the run has not completely ended. For readers that carry out no runs themselves. */
export async function isOpen(stores: Stores, tenant: string, run: RunName): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.get(OPEN_RUNS + nameOf(run))) !== undefined;
}

/** The entry of a run on one host; undefined if the run has completely ended or never existed. */
export async function runOnHost(stores: Stores, tenant: string, run: RunName): Promise<OpenRun | undefined> {
  const { kv } = await stores.tenant(tenant);
  const entry = await kv.get(OPEN_RUNS + nameOf(run));
  return entry && decodeStored<OpenRun>(entry.value);
}

/** The entries of the hosts on which the execution has not completely ended. */
export async function openRunsOf(stores: Stores, tenant: string, runId: string): Promise<readonly OpenRun[]> {
  const { kv } = await stores.tenant(tenant);
  const found: OpenRun[] = [];
  for await (const { value } of entriesUnder(kv, `${OPEN_RUNS}${runId}/`)) found.push(decodeStored<OpenRun>(value));
  return found;
}

/** True if the execution has not completely ended on some host. */
export async function hasOpenHosts(stores: Stores, tenant: string, runId: string): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.list(`${OPEN_RUNS}${runId}/`, { limit: 1 })).entries.length > 0;
}
