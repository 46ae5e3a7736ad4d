import { setImmediate } from "node:timers/promises";
import { AppError } from "../../../common/errors.ts";
import {
  CHANGE_BATCH_MAX,
  COMMAND_ID_MAX_CHARACTERS,
  INGEST_CHUNKS_IN_FLIGHT_MAX,
  INGEST_FAULT_MAX_CHARACTERS,
  LOG_HEADING_MAX_BYTES,
} from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { Clock } from "../../../common/time.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Entry, Records } from "../../../proto/gen/agent/v1/agent.ts";
import { consoleLogPath } from "../consolelog/index.ts";
import type { WriteBasis, Unrestricted } from "../objects/index.ts";
import type { Workers } from "../../workers/index.ts";
import {
  headingsOf,
  type ParsedRecord,
  type ParsedRow,
  type ParseFault,
  ParseSlices,
  RawBytesShares,
  refusedTime,
  type RawRecord,
  type RecentRecords,
  type Rule,
  type RuleBodies,
  type RuleTasks,
  zoneFor,
} from "../rules/index.ts";
import { countOf, type MarkedRecords, markedRecords, onlyRecord } from "./marks.ts";
import { InFlight } from "./in-flight.ts";
import { entryIdentity, policyName } from "./batches.ts";
import { Faults, type Marked } from "./faults.ts";
import { gapRecord, missingEntries, type PolicyClasses, runRecord } from "./policy-records.ts";
import { type GateOfAuthor, RowStore } from "./row-store.ts";
import { RowsByClass } from "./rows-by-class.ts";
import type { PreparedBatch, RetryKeeper, Waiting } from "./types.ts";

interface RecordWriterOptions {
  readonly objects: Unrestricted<"ingest">;
  readonly classes: PolicyClasses;
  readonly clock: Clock;
  /** Threads for records that are costly to parse. */
  readonly workers?: Workers<RuleTasks> | undefined;
  /** Knows the authors of rules and runs bodies. Absent: see `ParseOptions`. */
  readonly bodies?: Pick<RuleBodies, "work">;
  /** Returns the write rights of a rule's author on a class. Absent: rules with an author store nothing. */
  readonly gate?: GateOfAuthor;
  /** Stores records for another try. Absent: a record that asks for another try is an error. */
  readonly retries?: RetryKeeper;
  /** Receives raw records as samples for trials of rules. */
  readonly recent?: Pick<RecentRecords, "take">;
  /** Called when entries were added to the rules' console log of a tenant. */
  readonly onFaults?: (tenant: string) => void;
}

/** Turns entries into rows and stores them. A repeated entry makes rows with the same ids. */
export class RecordWriter {
  readonly #objects: Unrestricted<"ingest">;
  readonly #rows: RowStore;
  readonly #classes: PolicyClasses;
  readonly #clock: Clock;
  readonly #workers: Workers<RuleTasks> | undefined;
  readonly #bodies: RecordWriterOptions["bodies"];
  readonly #retries: RecordWriterOptions["retries"];
  readonly #recent: RecordWriterOptions["recent"];
  readonly #onFaults: (tenant: string) => void;
  #marked: Marked = { cut: 0, malformed: 0 };
  readonly #decoder = new TextDecoder("utf-8");

  constructor({ objects, classes, clock, workers, bodies, gate, onFaults = () => {}, ...rest }: RecordWriterOptions) {
    this.#retries = rest.retries;
    this.#recent = rest.recent;
    this.#bodies = bodies;
    this.#objects = objects;
    this.#rows = new RowStore(objects, gate);
    this.#clock = clock;
    this.#workers = workers;
    this.#onFaults = onFaults;
    this.#classes = classes;
  }

  /** Number of records since the start that differ from the text at their source. A repeated batch counts again. */
  get marked(): Marked {
    return this.#marked;
  }

  /**
   * Stores batches of one tenant, with up to `INGEST_CHUNKS_IN_FLIGHT_MAX` concurrent writes. Returns the number of
   * records that wait for another try.
   */
  async write(batches: readonly PreparedBatch[]): Promise<number> {
    const [first] = batches;
    if (!first) return 0;
    const storing = new InFlight(INGEST_CHUNKS_IN_FLIGHT_MAX);
    const { tenant } = first.principal;
    const slices = new ParseSlices({ clock: this.#clock, tenant, workers: this.#workers, bodies: this.#bodies });
    const rows = new RowsByClass();
    const works = batches.map((batch): Work => ({ batch, faults: new Faults(batch), storing, rows, slices, kept: 0 }));
    try {
      for (const work of works) await this.#writeRows(work);
      for (const [path, records] of rows.take(0))
        await storing.begin(() => this.#rows.store(path, records, first.principal));
    } finally {
      await storing.end();
    }
    for (const { batch, faults } of works) await this.#writeFaults(batch, faults);
    return works.reduce((sum, { kept }) => sum + kept, 0);
  }

  /**
   * Parses further records while earlier ones are being stored. The order of writes does not matter, because the ids
   * and times of the rows are already fixed.
   */
  async #writeRows(work: Work): Promise<void> {
    const { batch, rows, storing, faults } = work;
    if (batch.missing > 0)
      rows.add(`${batch.principal.ospace}${this.#classes.gaps}`, { record: missingEntries(batch), faults });
    let parsed = 0;
    for (const entry of batch.entries) {
      await this.#collect(entry, work);
      for (const [path, records] of rows.take(CHANGE_BATCH_MAX))
        await storing.begin(() => this.#rows.store(path, records, batch.principal));
      parsed += entry.body?.$case === "records" ? entry.body.value.records.length : 0;
      if (parsed < CHANGE_BATCH_MAX) continue;
      // Yields to other work.
      await setImmediate();
      parsed = 0;
    }
  }

  async #collect(entry: Entry, work: Work): Promise<void> {
    const { batch, rows, faults } = work;
    const { ospace } = batch.principal;
    const { host } = batch.source;
    const policy = policyName(entry);
    if (policy !== undefined && batch.foreign.has(policy)) return faults.entry(entry, foreignPolicy(policy, batch));
    switch (entry.body?.$case) {
      case "records":
        await this.#collectRecords(entry, entry.body.value, work);
        break;
      case "run":
        rows.add(`${ospace}${this.#classes.runs}`, { record: runRecord(entry.body.value, host), faults });
        break;
      case "gap":
        rows.add(`${ospace}${this.#classes.gaps}`, { record: gapRecord(entry, entry.body.value, batch), faults });
        break;
      case "output":
      case "result":
        if (entry.body.value.commandId.length > COMMAND_ID_MAX_CHARACTERS) faults.entry(entry, COMMAND_ID_TOO_LONG);
        else if (batch.foreignCommands.has(entry.body.value.commandId))
          faults.entry(entry, foreignCommand(entry.body.value.commandId, batch));
        break;
      default:
        break;
    }
  }

  async #collectRecords(entry: Entry, records: Records, work: Work): Promise<void> {
    const { batch, faults, slices } = work;
    const rule =
      batch.rules.get(records.rule) ?? new AppError("invalid", `The policy ${records.policy} names no rule.`);
    const zone = rule instanceof AppError ? undefined : zoneFor(rule, records.policy);
    const texts = records.records.map((bytes) => this.#decoder.decode(bytes));
    const headings = headingsOf(texts, {
      csv: rule instanceof AppError ? undefined : rule.csv,
      first: headingIn(records),
    });
    const { host } = batch.source;
    const { timeMs } = entry;
    const { source, groups } = records;
    const raw = texts.map(
      (text, at): RawRecord => ({ text, timeMs, host, source, groups, heading: headings[at], zone }),
    );
    const identity = entryIdentity(batch, entry);
    // Retried records were taken at their first try. A host must not add records to a policy that was never sent to it.
    if (batch.again === undefined && !batch.foreign.has(records.policy))
      this.#recent?.take(batch.principal.tenant, {
        id: identity,
        policy: records.policy,
        rule: rule instanceof AppError ? undefined : rule,
        raw,
      });
    if (rule instanceof AppError) return faults.whole({ entry, records, error: rule.message, raw });
    const marked = markedRecords(records);
    if (batch.again === undefined) this.#mark({ entry, records }, marked, faults);
    const first = batch.again?.ordinal ?? 0;
    const firstUs = batch.writeUs?.get(entry.sequence);
    const of: Parsing = { entry, records, raw, rule, identity, first, firstUs, marked, shares: new RawBytesShares() };
    const waiting = new Set<number>();
    for (const parsed of await slices.parse(rule, raw)) {
      if (parsed.ok) this.#place(parsed, of, work);
      else if (waiting.has(parsed.ordinal)) continue;
      else if (await this.#isKept(parsed, { entry, records, rule, work })) waiting.add(parsed.ordinal);
      else faults.one(faultOf(parsed, of, told(parsed, batch)));
    }
    work.kept += waiting.size;
  }

  #place(parsed: ParsedRow, of: Parsing, { rows, faults }: Work): void {
    const { rule, records, first, firstUs, marked, shares } = of;
    const ordinal = first + parsed.ordinal;
    const writeUs = firstUs && firstUs + ordinal;
    if (parsed.timeFault !== undefined) faults.misdated(faultOf(parsed, of, parsed.timeFault));
    const refused = parsed.timeMs === undefined ? undefined : refusedTime(parsed.timeMs, this.#writtenMs(writeUs));
    if (refused !== undefined) return faults.one(faultOf(parsed, of, refused));
    const mark = marked.get(parsed.ordinal);
    const record = {
      values: parsed.values,
      timeMs: parsed.timeMs ?? of.entry.timeMs,
      identity: parsed.part === undefined ? of.identity : of.identity + parsed.part,
      ordinal,
      writeUs,
      marked: mark && shares.take(parsed.ordinal, mark, [rule, parsed]),
    };
    const path = parsed.class ?? rule.class;
    rows.add(path, { record, faults, records, by: parsed.by, basis: basisOf(rule, path) });
  }

  /**
   * The pinned write time of the batch, so that a repetition refuses the same records. Without a pin, the current time.
   */
  #writtenMs(writeUs: number | undefined): number {
    return writeUs === undefined ? this.#clock.nowMs() : Math.floor(writeUs / 1_000);
  }

  #mark(of: { readonly entry: Entry; readonly records: Records }, marked: MarkedRecords, faults: Faults): void {
    if (marked.size === 0) return;
    const [cut, malformed] = [countOf(marked, "cut"), countOf(marked, "malformed")];
    this.#marked = { cut: this.#marked.cut + cut, malformed: this.#marked.malformed + malformed };
    faults.marked(of, { cut, malformed });
  }

  /** Stores a record for another try before its batch is acknowledged. Returns false if it will not be retried. */
  async #isKept(
    { again, ordinal, error }: ParseFault,
    { entry, records, rule, work }: { entry: Entry; records: Records; rule: Rule; work: Work },
  ): Promise<boolean> {
    const {
      principal,
      source,
      again: { ordinal: first, attempts } = { ordinal: 0, attempts: 0 },
      writeUs,
    } = work.batch;
    const alone = again === undefined ? undefined : onlyRecord(records, ordinal);
    if (again === undefined || alone === undefined || this.#retries === undefined || attempts >= again.total)
      return false;
    const waiting: Waiting = {
      entry: { ...entry, body: { $case: "records", value: alone } },
      streamId: source.streamId,
      host: source.host,
      digest: rule.digest,
      ordinal: first + ordinal,
      writeUs: writeUs?.get(entry.sequence),
      error,
      attempts,
    };
    return this.#retries.keep(principal, waiting, again.intervalMs);
  }

  async #writeFaults(batch: PreparedBatch, faults: Faults): Promise<void> {
    const records = faults.records();
    if (records.length === 0) return;
    await this.#objects.unrestricted.ingest(
      batch.principal,
      `${batch.principal.ospace}${consoleLogPath("rule")}`,
      records,
    );
    this.#onFaults(batch.principal.tenant);
  }
}

/** State of a batch while it is written. */
interface Work {
  readonly batch: PreparedBatch;
  readonly rows: RowsByClass;
  readonly faults: Faults;
  readonly storing: InFlight;
  readonly slices: ParseSlices;
  /** Number of records that wait for another try. */
  kept: number;
}

/** Records of an entry that are parsed, with everything that their rows depend on. */
interface Parsing {
  readonly entry: Entry;
  readonly records: Records;
  readonly raw: readonly RawRecord[];
  readonly rule: Rule;
  readonly identity: string;
  /** Ordinal of the first record in its original entry. */
  readonly first: number;
  /** Write time of the entry's first record. */
  readonly firstUs: number | undefined;
  readonly marked: MarkedRecords;
  readonly shares: RawBytesShares;
}

function faultOf({ ordinal, part = "" }: ParsedRecord, { entry, records, raw, first }: Parsing, error: string) {
  return { entry, records, raw: raw[ordinal]?.text ?? "", ordinal: first + ordinal, part, error };
}

/** `undefined` for a heading longer than `LOG_HEADING_MAX_BYTES`, because agents never send a longer one. */
function headingIn({ heading }: Records): string | undefined {
  return heading === undefined || heading.length > LOG_HEADING_MAX_BYTES ? undefined : heading;
}

function basisOf({ supplements: { classes = {} } }: Rule, path: string): WriteBasis | undefined {
  return Object.hasOwn(classes, path) ? classes[path] : undefined;
}

/** The error, for a retried record with the number of retries. */
function told({ error }: ParseFault, { again }: PreparedBatch): string {
  return again === undefined ? error : `${error} (tried again ${counted(again.attempts, "time")})`;
}

const COMMAND_ID_TOO_LONG = `The id of a command has at most ${COMMAND_ID_MAX_CHARACTERS} characters.`;
function foreignCommand(commandId: string, { source }: PreparedBatch): string {
  return `No command ${beginningOf(commandId, INGEST_FAULT_MAX_CHARACTERS)} of ${source.host} is on record.`;
}

function foreignPolicy(policy: string, { source }: PreparedBatch): string {
  return `The policy ${beginningOf(policy, INGEST_FAULT_MAX_CHARACTERS)} was never sent to ${source.host}.`;
}
