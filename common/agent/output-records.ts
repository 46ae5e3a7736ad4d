import { isAppError } from "../errors.ts";
import type { CommandPolicySpec } from "../api/policies.ts";
import { RECORD_MAX_BYTES } from "../limits.ts";
import type { Encoding } from "../text/encodings.ts";
import { TextStream } from "../text/text-stream.ts";
import { decodedRecord, type RawRecord } from "./raw-records.ts";
import { compileCutter, RecordStream, type RecordCutter } from "./records.ts";

/** The members of a command policy and the compiled parts that its output is cut by. */
export interface OutputCutting {
  readonly spec: Pick<CommandPolicySpec, "split" | "isdaemon">;
  readonly cutter: RecordCutter;
  /** Cuts output in `encoding`. Absent without an encoding, or when the delimiter cannot be found in it. */
  readonly encodedCutter: RecordCutter | undefined;
  /** Encoding of the output. Without one, the output is sent unchanged. */
  readonly encoding: Encoding | undefined;
}

/** Throws `AppError("invalid")` for a delimiter that cannot be used. */
export function outputCutting(spec: CommandPolicySpec, encoding: Encoding | undefined): OutputCutting {
  return { spec, cutter: compileCutter(spec), encodedCutter: encodedCutter(spec, encoding), encoding };
}

function encodedCutter(spec: CommandPolicySpec, encoding: Encoding | undefined): RecordCutter | undefined {
  if (encoding === undefined) return undefined;
  try {
    return compileCutter({ ...spec, encoding });
  } catch (error) {
    // The delimiter cannot be found in this encoding. The output is converted to UTF-8 before it is cut.
    if (!isAppError(error, "invalid")) throw error;
    return undefined;
  }
}

/**
 * Cuts the standard output of one command into records. If the output has an encoding, records are converted to UTF-8
 * and invalid bytes become U+FFFD. Otherwise the bytes are not changed.
 */
export interface OutputRecords {
  /** Number of characters so far that are invalid in the encoding of the output. */
  readonly malformed: number;
  /** The records that the chunk completes. */
  push(chunk: Uint8Array): readonly RawRecord[];
  /** As in `RecordStream`. */
  settle(): readonly RawRecord[];
  /** The records that are left at the end of the output. */
  end(): readonly RawRecord[];
}

export function outputRecords({ spec, cutter, encodedCutter, encoding }: OutputCutting): OutputRecords {
  if (!spec.split && !spec.isdaemon) return new WholeOutput(encoding);
  if (encoding === undefined) return new PlainOutput(new RecordStream(cutter));
  return encodedCutter
    ? new EncodedOutput(new RecordStream(encodedCutter, encoding), encoding)
    : new ConvertedOutput(new RecordStream(cutter), encoding);
}

/** Output without an encoding. Its bytes are not changed. */
class PlainOutput implements OutputRecords {
  readonly malformed = 0;
  readonly #records: RecordStream;

  constructor(records: RecordStream) {
    this.#records = records;
  }

  push(chunk: Uint8Array): readonly RawRecord[] {
    return this.#records.push(chunk);
  }

  settle(): readonly RawRecord[] {
    return this.#records.settle();
  }

  end(): readonly RawRecord[] {
    return this.#records.end();
  }
}

/** Output that is cut in its encoding. Each record is then converted to UTF-8. */
class EncodedOutput implements OutputRecords {
  malformed = 0;
  readonly #records: RecordStream;
  readonly #encoding: Encoding;

  constructor(records: RecordStream, encoding: Encoding) {
    this.#records = records;
    this.#encoding = encoding;
  }

  push(chunk: Uint8Array): readonly RawRecord[] {
    return this.#decoded(this.#records.push(chunk));
  }

  settle(): readonly RawRecord[] {
    return this.#decoded(this.#records.settle());
  }

  end(): readonly RawRecord[] {
    return this.#decoded(this.#records.end());
  }

  #decoded(read: ReturnType<RecordStream["push"]>): readonly RawRecord[] {
    const records = read.map((record) => decodedRecord(record, { encoding: this.#encoding }));
    for (const { malformedCharacters } of records) this.malformed += malformedCharacters;
    // A byte order mark alone is no record.
    return records.filter(({ bytes }) => bytes.length > 0);
  }
}

const ENCODER = new TextEncoder();
const REPLACEMENT = "\ufffd";

/**
 * Output that is converted to UTF-8 first and then cut. It is used if the delimiter cannot be found in the encoding.
 * The original bytes of malformed records are not kept.
 */
class ConvertedOutput implements OutputRecords {
  readonly #records: RecordStream;
  readonly #text: TextStream;

  constructor(records: RecordStream, encoding: Encoding) {
    this.#records = records;
    this.#text = new TextStream(encoding);
  }

  get malformed(): number {
    return this.#text.malformed;
  }

  push(chunk: Uint8Array): readonly RawRecord[] {
    return this.#marked(this.#records.push(ENCODER.encode(this.#text.take(chunk))));
  }

  settle(): readonly RawRecord[] {
    return this.#marked(this.#records.settle());
  }

  end(): readonly RawRecord[] {
    const rest = ENCODER.encode(this.#text.end());
    return this.#marked([...this.#records.push(rest), ...this.#records.end()]);
  }

  #marked(records: readonly RawRecord[]): readonly RawRecord[] {
    if (this.malformed === 0) return records;
    return records.map((record) => ({
      ...record,
      malformed: new TextDecoder().decode(record.bytes).includes(REPLACEMENT),
    }));
  }
}

/** All output is one record. */
class WholeOutput implements OutputRecords {
  readonly #unitBytes: number;
  readonly #text: TextStream | undefined;
  readonly #kept = new Kept();
  readonly #raw = new Kept();
  #isMalformed = false;

  constructor(encoding: Encoding | undefined) {
    this.#unitBytes = encoding?.unitBytes ?? 1;
    this.#text = encoding && new TextStream(encoding);
  }

  get malformed(): number {
    return this.#text?.malformed ?? 0;
  }

  push(chunk: Uint8Array): readonly RawRecord[] {
    if (this.#text === undefined) this.#kept.add(chunk);
    else {
      this.#raw.add(chunk);
      this.#take(this.#text.take(chunk));
    }
    return [];
  }

  settle(): readonly RawRecord[] {
    return [];
  }

  end(): readonly RawRecord[] {
    if (this.#text) this.#take(this.#text.end());
    const text = this.#kept.bytes();
    const bytes = text.subarray(0, lengthWithoutBreaks(text));
    if (bytes.length === 0) return [];
    const record = { bytes, offset: 0, cut: this.#kept.isFull };
    if (!this.#isMalformed) return [record];
    const raw = this.#raw.bytes();
    const end = this.#unitBytes === 1 ? lengthWithoutBreaks(raw) : raw.length;
    return [{ ...record, malformed: true, raw: raw.subarray(0, end) }];
  }

  #take(text: string): void {
    // Characters after the kept bytes are no part of the record.
    if (!this.#kept.isFull) this.#isMalformed ||= this.malformed > 0;
    this.#kept.add(ENCODER.encode(text));
  }
}

/** Keeps the first `RECORD_MAX_BYTES` of the added bytes. */
class Kept {
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  /** True if more bytes were added than are kept. */
  get isFull(): boolean {
    return this.#bytes > RECORD_MAX_BYTES;
  }

  add(chunk: Uint8Array): void {
    const room = Math.max(0, RECORD_MAX_BYTES - this.#bytes);
    // The sender may use its buffer again.
    if (room > 0) this.#chunks.push(new Uint8Array(chunk.subarray(0, room)));
    this.#bytes += chunk.length;
  }

  bytes(): Uint8Array {
    const all = new Uint8Array(Math.min(this.#bytes, RECORD_MAX_BYTES));
    let at = 0;
    for (const chunk of this.#chunks) {
      all.set(chunk, at);
      at += chunk.length;
    }
    return all;
  }
}

function lengthWithoutBreaks(text: Uint8Array): number {
  let end = text.length;
  while (end > 0 && (text[end - 1] === 10 || text[end - 1] === 13)) end--;
  return end;
}
