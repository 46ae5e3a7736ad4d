import type { AppError } from "../../../common/errors.ts";
import type { EntrySource } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Rule } from "../rules/index.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";

/** Takes the entries of commands, which belong to the area hosts. Idempotent: a replay brings them again. */
export interface CommandEntrySink {
  accept(source: EntrySource, entries: readonly Entry[]): Promise<ReadonlySet<string>>;
}

/** A record that a rule asked to be run for again, and what its rows follow from. */
export interface Waiting {
  /** With this record alone. */
  readonly entry: Entry;
  readonly streamId: string;
  readonly host: string;
  readonly digest: string;
  /** Ordinal of the record in its original entry. */
  readonly ordinal: number;
  /** Write time of the first record of the entry. */
  readonly writeUs: number | undefined;
  readonly error: string;
  /** How often it was tried again so far. */
  readonly attempts: number;
}

export interface RetryKeeper {
  /** False where too many wait already, or the record is too long to be kept: then it is an error. */
  keep(principal: Principal, waiting: Waiting, intervalMs: number): Promise<boolean>;
}

/** Entries of one stream that were sent together, with what their rows follow from. */
export interface PreparedBatch {
  readonly principal: Principal;
  readonly source: EntrySource;
  readonly entries: readonly Entry[];
  readonly rules: ReadonlyMap<string, Rule | AppError>;
  /** Policies that entries name and the host was never sent. */
  readonly foreign: ReadonlySet<string>;
  /** Commands that entries name and the host was not given. */
  readonly foreignCommands: ReadonlySet<string>;
  /** Microseconds, of the first write of each entry by its sequence; absent when none of them is records. */
  readonly writeUs?: ReadonlyMap<number, number>;
  /** Entries that the agent lost before these: never in silence. */
  readonly missing: number;
  /** The only record of the only entry is tried again. */
  readonly again?: Again;
}

interface Again {
  /** In the entry it came with. */
  readonly ordinal: number;
  /** This time included. */
  readonly attempts: number;
  /** Time of the entries that it writes into the console log. */
  readonly dueMs: number;
}
