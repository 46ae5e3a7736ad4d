import { BinaryReader, BinaryWriter } from "@bufbuild/protobuf/wire";
import { isRuleKey } from "../../common/agent/pins.ts";
import { Entry, Records } from "../../proto/gen/agent/v1/agent.ts";

/**
 * Entries as fields of an encoded `Batch`, the form that they have on disk and in a frame. Most of them are records of
 * followed logs, so these are read, counted and sent without objects for their records.
 */

/** Tags of `Batch.entries`, `Entry.records`, and members of `Records`. */
const ENTRY = 18;
const RECORDS = 82;
const RECORD = 50;
const RULE = 66;
const RAW = 90;
const HEADING = 162;
/** Bits of a tag that name the form of the field. */
const FORM = 7;
const FORM_BITS = 3;

const VARINT_MORE = 0x80;
const VARINT_BITS = 7;

const ENTRY_WEIGHT = 200;
const RECORD_WEIGHT = 4;

/** Facts about an entry of records. */
export interface RecordsFacts {
  readonly records: number;
  /** The rule by which they are parsed. Undefined if the name cannot be the key of a rule. */
  readonly rule: string | undefined;
  /** Approximate size in bytes. */
  readonly weight: number;
}

/** An entry of records that was read from the disk. `body` decodes the records when it is read. */
class StoredRecords implements Entry {
  readonly sequence: number;
  readonly timeMs: number;
  readonly traceparent: string;
  declare readonly body: Entry["body"];
  readonly #bytes: Buffer;
  readonly #facts: RecordsFacts;

  /** `bytes`: the entry with its tag. `records`: the part of them that is the value of `Entry.records`. */
  constructor({ sequence, timeMs, traceparent }: Entry, bytes: Buffer, records: Buffer) {
    this.sequence = sequence;
    this.timeMs = timeMs;
    this.traceparent = traceparent;
    this.#bytes = bytes;
    this.#facts = factsIn(records);
    let body: Entry["body"];
    const get = (): Entry["body"] => (body ??= { $case: "records", value: Records.decode(records) });
    // An own member, so that a copy or a comparison finds the members of an ordinary entry.
    Object.defineProperty(this, "body", { enumerable: true, get });
  }

  get bytes(): Buffer {
    return this.#bytes;
  }

  get facts(): RecordsFacts {
    return this.#facts;
  }
}

/** The facts about an entry of records. Undefined for other entries. */
export function recordsFacts(entry: Pick<Entry, "body">): RecordsFacts | undefined {
  if (entry instanceof StoredRecords) return entry.facts;
  if (entry.body?.$case !== "records") return undefined;
  const { records, raw, heading = "", rule } = entry.body.value;
  let weight = ENTRY_WEIGHT + raw.length + Buffer.byteLength(heading);
  for (const record of records) weight += record.length + RECORD_WEIGHT;
  return { records: records.length, rule: keyOf(rule), weight };
}

/** Approximate size of an entry in bytes. */
export function entryWeight(entry: Pick<Entry, "body">): number {
  const facts = recordsFacts(entry);
  if (facts) return facts.weight;
  return entry.body?.$case === "output" ? entry.body.value.data.length + 100 : 300;
}

/** The entry as a field of an encoded batch. */
export function encodeEntry(entry: Entry): Uint8Array {
  if (entry instanceof StoredRecords) return entry.bytes;
  const { body } = entry;
  if (body?.$case !== "records") {
    const bytes = Entry.encode(entry).finish();
    return new BinaryWriter().uint32(ENTRY).bytes(bytes).finish();
  }
  const { records } = body.value;
  const rest = Records.encode({ ...body.value, records: [] }).finish();
  const facts = Entry.encode({ ...entry, body: undefined }).finish();
  let length = rest.length;
  for (const record of records) length += 1 + varintBytes(record.length) + record.length;
  const head = new BinaryWriter()
    .uint32(ENTRY)
    .uint32(facts.length + 1 + varintBytes(length) + length)
    .raw(facts)
    .uint32(RECORDS)
    .uint32(length)
    .raw(rest)
    .finish();
  const bytes = Buffer.allocUnsafe(head.length - rest.length + length);
  bytes.set(head);
  writeRecords(bytes, head.length, records);
  return bytes;
}

/** Writes records as fields of `Records`. A field may be anywhere in its message. */
function writeRecords(bytes: Buffer, from: number, records: readonly Uint8Array[]): void {
  let at = from;
  for (const record of records) {
    bytes[at++] = RECORD;
    let length = record.length;
    for (; length >= VARINT_MORE; length >>>= VARINT_BITS) bytes[at++] = length | VARINT_MORE;
    bytes[at++] = length;
    bytes.set(record, at);
    at += record.length;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let left = value; left >= VARINT_MORE; left >>>= VARINT_BITS) bytes++;
  return bytes;
}

/** The entries of an encoded batch. They refer to its bytes. */
export function storedEntries(batch: Buffer): Entry[] {
  const entries: Entry[] = [];
  const reader = new BinaryReader(batch);
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const tag = reader.uint32();
    if (tag !== ENTRY) {
      reader.skip(tag & FORM, tag >>> FORM_BITS);
      continue;
    }
    const length = reader.uint32();
    const from = reader.pos - start;
    entries.push(storedEntry(batch.subarray(start, reader.pos + length), from));
    reader.pos += length;
  }
  return entries;
}

/** `bytes`: the entry with its tag. `from`: the position of its first field. */
function storedEntry(bytes: Buffer, from: number): Entry {
  const reader = new BinaryReader(bytes);
  reader.pos = from;
  while (reader.pos < reader.len) {
    const end = reader.pos;
    const tag = reader.uint32();
    if (tag === RECORDS) {
      const length = reader.uint32();
      // Every version writes the records last.
      if (reader.pos + length !== reader.len) break;
      return new StoredRecords(Entry.decode(bytes.subarray(from, end)), bytes, bytes.subarray(reader.pos));
    }
    reader.skip(tag & FORM, tag >>> FORM_BITS);
  }
  return Entry.decode(bytes.subarray(from));
}

function factsIn(bytes: Buffer): RecordsFacts {
  const reader = new BinaryReader(bytes);
  let [records, rule, weight] = [0, "", ENTRY_WEIGHT];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === RULE) rule = reader.string();
    else if (tag === RECORD || tag === RAW || tag === HEADING) {
      const length = reader.uint32();
      reader.pos += length;
      weight += length;
      if (tag !== RECORD) continue;
      weight += RECORD_WEIGHT;
      records++;
    } else reader.skip(tag & FORM, tag >>> FORM_BITS);
  }
  return { records, rule: keyOf(rule), weight };
}

function keyOf(rule: string): string | undefined {
  return isRuleKey(rule) ? rule : undefined;
}
