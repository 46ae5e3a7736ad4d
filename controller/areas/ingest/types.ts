import type { EntrySource } from "../hosts/index.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";

/** Takes the entries of commands, which belong to the area hosts. Idempotent: a replay brings them again. */
export interface CommandEntrySink {
  accept(source: EntrySource, entries: readonly Entry[]): Promise<ReadonlySet<string>>;
}
