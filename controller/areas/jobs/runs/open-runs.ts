import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/entries.ts";
import { decodeStored } from "../../../store/format.ts";
import { Journal, type JournalDependencies, type Versioned, type OpenWork } from "../../../store/journal/index.ts";
import type { FinalState } from "../../hosts/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { nameOf, outputNote, type RunName } from "../output/outputs.ts";

/**
 * A run on one host that is not completely over: the data that any controller needs to continue it or to record its
 * end. KvStore: `jobs/open/<run>/<host>` until its end is in its row. After each take-over its output is written again
 * from the first byte.
 */
export interface OpenRun extends RunName, OpenWork {
  readonly startedMs: number;
  /** By the wall clock of the controller that began it. */
  readonly deadlineMs: number;
  readonly order: HostOrder;
  /** Position among the hosts of the execution, from 0. */
  readonly place: number;
  /** Group of type proxy that its host is reached through; absent: the host's own record says how. */
  readonly group?: string;
  /** The failed tries; absent: this is the first one. */
  readonly tries?: RunTries;
  /** The decided end; any controller that finds it writes it into the row. */
  readonly end?: RunEnd;
}

/** The data that all hosts of an execution share. */
export interface RunOrder {
  /** The user who asked for it, with the rights at that time. */
  readonly principal: Principal;
  readonly sid: string;
  /** `<name>@<dir>` */
  readonly name: string;
  readonly dir: string;
  readonly commands: readonly string[];
  /** The environment of the commands, with parameters of the caller: a sealed JSON text (`parameters.ts`). */
  readonly sealed: string;
  readonly hosts: readonly string[];
  /** Group of type proxy of each host that is reached through one; absent: none is. */
  readonly behind?: Readonly<Record<string, string>>;
  readonly groupmode: string;
  /** Encoding of commands and their output on the hosts; absent: UTF-8. */
  readonly encoding?: string;
  /** Time at which its schedule was due; absent: a caller asked for it. */
  readonly dueMs?: number;
  /** Absent: a failed host is not tried again. */
  readonly retry?: RunRetry;
  /** The run whose failed hosts this one tries again. */
  readonly origin?: string;
  /** Names of the parameters from the caller. */
  readonly params?: readonly string[];
}

/** How failed hosts are tried again. */
export interface RunRetry {
  readonly count: number;
  readonly delayMs: number;
  /** Maximum time of one try. */
  readonly timeoutMs: number;
}

/** The finished tries of a host. Each has ended once, in the write that stored it. */
export interface RunTries {
  /** How each of them ended, in order. */
  readonly failures: readonly string[];
  /** Start time of the next try, by the clock of the controller that stored it. */
  readonly dueMs: number;
  /**
   * Bytes that the tries wrote (`written`), and stored bytes of them (`kept`), from the first byte of the output of
   * `attempt`.
   */
  readonly written: number;
  readonly kept: number;
  readonly attempt: number;
}

/** The user who asked for a run, without the rights at that time. */
export type RunCaller = Pick<Principal, "tenant" | "ospace" | "user" | "traceparent">;

/**
 * The part of the order that the entry of a host stores. Names of all hosts in every entry would be a million names for
 * a thousand hosts, and the rights would be in every entry, too. A run with one host stores the rights in its entry;
 * otherwise `RunRights` finds them.
 */
export interface HostOrder extends Omit<RunOrder, "hosts" | "behind" | "principal"> {
  readonly principal: RunCaller | Principal;
}

export interface RunEnd {
  readonly state: FinalState;
  readonly code?: number;
  /** Name of the signal that ended the command; absent: none did, or its host does not report it. */
  readonly signal?: string;
  /** Process id of the last command on its host; absent: none was started, or its host does not report it. */
  readonly pid?: number;
  readonly message: string;
  /** Number of tries; absent: one or none. */
  readonly tries?: number;
  readonly out: string;
  readonly err: string;
  /**
   * Ends of the commands of the last try, in order; absent: none ended, or the controller that ran it did not report
   * them.
   */
  readonly commands?: readonly CommandEnd[];
  readonly outputSize: number;
  /** By the clock of the host, if it reported the time. */
  readonly endedMs: number;
  /** By the clock of the controller that decided it. */
  readonly decidedMs: number;
}

/** The end of one command of a run. */
export interface CommandEnd {
  readonly state: FinalState;
  readonly code?: number;
  readonly signal?: string;
  readonly pid?: number;
  readonly message: string;
  /** By the clock of the host. */
  readonly startedMs: number;
  readonly endedMs: number;
  /** Characters of the run's `out` and `err` up to the end of this command. */
  readonly out: number;
  readonly err: number;
}

export type VersionedRun = Versioned<OpenRun>;
export type RunJournal = Journal<OpenRun>;

export const OPEN_RUNS = "jobs/open/";

/** An entry, and the note that names the output to read, change together. */
export function runJournal(dependencies: JournalDependencies): RunJournal {
  return new Journal(dependencies, {
    prefix: OPEN_RUNS,
    tenantOf: ({ order }) => order.principal.tenant,
    beside: (open) => [outputNote(open)],
  });
}

/** True if the run is not completely over; for readers that carry out no runs. */
export async function isOpen(stores: Stores, tenant: string, run: RunName): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.get(OPEN_RUNS + nameOf(run))) !== undefined;
}

/** One execution on one host; undefined if it is completely over or never existed. */
export async function runOnHost(stores: Stores, tenant: string, run: RunName): Promise<OpenRun | undefined> {
  const { kv } = await stores.tenant(tenant);
  const entry = await kv.get(OPEN_RUNS + nameOf(run));
  return entry && decodeStored<OpenRun>(entry.value);
}

/** The hosts of one execution that are not completely over. */
export async function openRunsOf(stores: Stores, tenant: string, runId: string): Promise<readonly OpenRun[]> {
  const { kv } = await stores.tenant(tenant);
  const found: OpenRun[] = [];
  for await (const { value } of entriesUnder(kv, `${OPEN_RUNS}${runId}/`)) found.push(decodeStored<OpenRun>(value));
  return found;
}

/** True if any host of an execution is not completely over. */
export async function hasOpenHosts(stores: Stores, tenant: string, runId: string): Promise<boolean> {
  const { kv } = await stores.tenant(tenant);
  return (await kv.list(`${OPEN_RUNS}${runId}/`, { limit: 1 })).entries.length > 0;
}
