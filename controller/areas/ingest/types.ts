import type { AppError } from "../../../common/errors.ts";
import type { EntrySource } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { Rule } from "../rules/index.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";

/**
 * Stores output and results of commands, which belong to the area hosts. Returns the ids of commands that the host was
 * not given. Idempotent, because an agent may send entries again.
 */
export interface CommandEntrySink {
  accept(source: EntrySource, entries: readonly Entry[]): Promise<ReadonlySet<string>>;
}

/** A record that waits for another run of its rule, with everything that its rows depend on. */
export interface Waiting {
  /** The original entry, with this record only. */
  readonly entry: Entry;
  readonly streamId: string;
  readonly host: string;
  readonly digest: string;
  /** Ordinal of the record in its original entry. */
  readonly ordinal: number;
  /** Write time of the entry's first record, in microseconds. */
  readonly writeUs: number | undefined;
  readonly error: string;
  /** Number of retries so far. */
  readonly attempts: number;
}

export interface RetryKeeper {
  /**
   * Stores the record for another try. Returns false if too many records wait or this one is too long; then it is an
   * error.
   */
  keep(principal: Principal, waiting: Waiting, intervalMs: number): Promise<boolean>;
}

/** Entries of one stream that were sent together, with everything that their rows depend on. */
export interface PreparedBatch {
  readonly principal: Principal;
  readonly source: EntrySource;
  readonly entries: readonly Entry[];
  readonly rules: ReadonlyMap<string, Rule | AppError>;
  /** Policies that entries name although they were never sent to the host. */
  readonly foreign: ReadonlySet<string>;
  /** Commands that entries name although the host was not given them. */
  readonly foreignCommands: ReadonlySet<string>;
  /** Time of the first write of each entry by its sequence, in microseconds. Absent if no entry has records. */
  readonly writeUs?: ReadonlyMap<number, number>;
  /** Number of entries before these that the agent lost. They are reported as a gap. */
  readonly missing: number;
  /** Present for a retry: the batch has one entry with one record. */
  readonly again?: Again;
}

interface Again {
  /** Ordinal of the record in its original entry. */
  readonly ordinal: number;
  /** Number of retries, including this one. */
  readonly attempts: number;
  /** Time at which the retry was due. It is the time of the retry's rows in the console log. */
  readonly dueMs: number;
}
