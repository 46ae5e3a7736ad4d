import type { Files } from "../../common/files.ts";
import type { Clock, Random } from "../../common/time.ts";
import type { EntryBody, Mark } from "./segment.ts";

export interface Emission {
  readonly body: EntryBody;
  readonly traceparent?: string;
}

export interface OutboxOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly maxBytes?: number;
  /** The disk of this machine when absent. */
  readonly files?: Files;
}

export interface AppendOptions {
  /** Written in the same frame as the entries: both are on disk or neither is. */
  readonly marks?: readonly Mark[];
  /** The append may use `OUTBOX_RESERVE_BYTES`, the part of the outbox that is reserved for results and marks. */
  readonly reserve?: boolean;
}
