import { ULID_ORDINALS_MAX } from "../../../common/ids.ts";
import { INGEST_ERRORS_KEPT_PER_ENTRY, RECORD_MAX_BYTES } from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { Row } from "../../../common/value.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Entry, Records } from "../../../proto/gen/agent/v1/agent.ts";
import { levelOf } from "../consolelog/index.ts";
import type { NewRecord } from "../objects/index.ts";
import { misdatedText, type RawRecord } from "../rules/index.ts";
import { entryIdentity } from "./batches.ts";
import type { PreparedBatch } from "./types.ts";
import { keptRow } from "../../turns/well-formed.ts";

const US_PER_MS = 1_000;
/** Ordinals of rows about a whole entry. They are greater than the ordinals of its records. */
const MORE_ORDINAL = ULID_ORDINALS_MAX - 1;
const CUT_ORDINAL = ULID_ORDINALS_MAX - 2;
const MALFORMED_ORDINAL = ULID_ORDINALS_MAX - 3;
const RAW_KEPT_CHARACTERS = 1_000;
const NO_RECORDS = { rule: "", source: "" } as const;

interface Fault {
  readonly entry: Entry;
  readonly records: Pick<Records, "rule" | "source">;
  readonly error: string;
  /** `error` if absent. */
  readonly level?: "warn" | "error";
}

/** Numbers of records of an entry that differ from the text at their source. */
export interface Marked {
  readonly cut: number;
  readonly malformed: number;
}

interface RawFault {
  readonly raw: string;
  readonly ordinal: number;
  /** As `ParsedRow.part`. */
  readonly part: string;
}

export interface RefusedRow {
  readonly record: NewRecord;
  /** Records that the row was parsed from; absent for runs and gaps. */
  readonly records?: Records;
}

/**
 * Collects faults as rows of the rules' console log. The first `INGEST_ERRORS_KEPT_PER_ENTRY` faults of an entry have
 * their text; one more row counts the others. The limit is per entry, not per batch, so a repetition in other batches
 * makes the same rows. A row has the pinned write time of its entry, or for a retry its due time. Without a pin it has
 * the time of the entry. So a reader who continues from the last row also finds the faults of a host that was offline.
 */
export class Faults {
  readonly #batch: PreparedBatch;
  readonly #records: NewRecord[] = [];
  #entry: Entry | undefined;
  #kept = 0;
  #more = new Map<Entry, { fault: Fault; count: number }>();
  readonly #misdated = new Map<Entry, { readonly fault: Fault & RawFault; count: number }>();

  constructor(batch: PreparedBatch) {
    this.#batch = batch;
  }

  one({ raw, ordinal, part, ...fault }: Fault & RawFault): void {
    if (this.#entry !== fault.entry) this.#kept = 0;
    this.#entry = fault.entry;
    this.#kept += 1;
    if (this.#kept > INGEST_ERRORS_KEPT_PER_ENTRY) this.#countMore(fault);
    else this.#push(fault, { raw: kept(raw), count: 1, ordinal, part });
  }

  /** Reports all records of an entry, because their rule cannot be used. */
  whole({ raw, ...fault }: Fault & { readonly raw: readonly RawRecord[] }): void {
    this.#push(fault, { raw: kept(raw[0]?.text ?? ""), count: raw.length, ordinal: 0 });
  }

  /**
   * Reports a record that gets the time at which the agent read it, because its own time cannot be read. Each entry has
   * one row with the number of these records.
   */
  misdated(fault: Fault & RawFault): void {
    const known = this.#misdated.get(fault.entry);
    if (known) known.count += 1;
    else this.#misdated.set(fault.entry, { fault, count: 1 });
  }

  /** Reports an entry of which nothing is stored. */
  entry(entry: Entry, error: string): void {
    this.#push({ entry, records: NO_RECORDS, error }, { raw: "", count: 1, ordinal: 0 });
  }

  /**
   * Reports records of an entry that are stored changed, in up to two rows: the number of cut and of malformed records.
   */
  marked(of: Pick<Fault, "entry" | "records">, { cut, malformed }: Marked): void {
    const told = (error: string, count: number, ordinal: number): void => {
      if (count > 0) this.#push({ ...of, error, level: "warn" }, { raw: "", count, ordinal });
    };
    const short = `Longer than ${RECORD_MAX_BYTES} bytes, and stored without their end: ${counted(cut, "record")}.`;
    told(short, cut, CUT_ORDINAL);
    const text = `With bytes that are no character of their encoding, stored as U+FFFD: ${counted(malformed, "record")}.`;
    told(text, malformed, MALFORMED_ORDINAL);
  }

  /** Reports a row that the object database refused. */
  refused({ record, records }: RefusedRow, error: string): void {
    const { timeMs, writeUs, ordinal, identity } = record;
    const fault = { records: records ?? NO_RECORDS, error, sttime: timeMs };
    const edtime = this.#toldMs(writeUs, timeMs);
    const raw = kept(JSON.stringify(record.values));
    const values = keptRow({ ...rowOf(fault, this.#batch), edtime, raw, count: 1 });
    this.#records.push({
      values,
      timeMs: edtime,
      identity: `fault/${identity}`,
      ...(ordinal !== undefined && { ordinal }),
    });
  }

  records(): readonly NewRecord[] {
    for (const [entry, { fault, count }] of this.#more) {
      const error = `${counted(count, "more record")} of this entry could not be parsed.`;
      this.#push({ ...fault, entry, error }, { raw: "", count, ordinal: MORE_ORDINAL });
    }
    this.#more.clear();
    for (const { fault, count } of this.#misdated.values()) {
      const { raw, ordinal, error: first, ...of } = fault;
      const told = { raw: kept(raw), count, ordinal, part: "/time", level: levelOf("warn") };
      this.#push({ ...of, error: misdatedText({ first, count }) }, told);
    }
    this.#misdated.clear();
    return this.#records;
  }

  #toldMs(writeUs: number | undefined, timeMs: number): number {
    return this.#batch.again?.dueMs ?? (writeUs === undefined ? timeMs : Math.floor(writeUs / US_PER_MS));
  }

  #countMore(fault: Fault): void {
    const known = this.#more.get(fault.entry);
    if (known) known.count += 1;
    else this.#more.set(fault.entry, { fault, count: 1 });
  }

  #push(
    { entry, ...fault }: Fault,
    { ordinal, part = "", ...extra }: Partial<RawFault> & { count: number; ordinal: number; level?: number },
  ): void {
    const writeUs = this.#batch.writeUs?.get(entry.sequence);
    const edtime = this.#toldMs(writeUs, entry.timeMs);
    const values = keptRow({ ...rowOf({ ...fault, sttime: entry.timeMs }, this.#batch), edtime, ...extra });
    this.#records.push({
      values,
      timeMs: edtime,
      identity: `fault/${entryIdentity(this.#batch, entry)}${part}`,
      ordinal,
    });
  }
}

function kept(raw: string): string {
  return beginningOf(raw, RAW_KEPT_CHARACTERS);
}

function rowOf(
  { records, error, level = "error", sttime }: Omit<Fault, "entry"> & { readonly sttime: number },
  batch: PreparedBatch,
): Row {
  return {
    name: records.rule,
    level: levelOf(level),
    msg: error,
    sttime,
    host: batch.source.host,
    source: records.source,
  };
}
