import type { EntrySource } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
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
  /** Of the record in its entry as it came. */
  readonly ordinal: number;
  /** Of the first record of the entry. */
  readonly writeUs: number | undefined;
  readonly error: string;
  /** How often it was tried again so far. */
  readonly attempts: number;
}

export interface RetryKeeper {
  /** False where too many wait already, or the record is too long to be kept: then it is an error. */
  keep(principal: Principal, waiting: Waiting, intervalMs: number): Promise<boolean>;
}
