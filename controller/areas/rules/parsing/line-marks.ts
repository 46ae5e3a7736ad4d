import { setImmediate } from "node:timers/promises";
import { lineFeed } from "../../../../common/agent/records.ts";
import { LINE_MARKS_TURN_BYTES, RECORD_MAX_BYTES } from "../../../../common/limits.ts";
import type { Encoding } from "../../../../common/text/encodings.ts";
import { decodeText } from "../../../../common/text/text-stream.ts";
import type { RecordMarks } from "../../objects/index.ts";
import type { Rule } from "../types.ts";

/** Bytes of lines and their encoding. */
export interface LineBytes {
  readonly bytes: Buffer;
  readonly encoding: Encoding;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const REPLACEMENT = "\ufffd";

/** The malformed lines of a text, with their bytes. */
export class LineMarks {
  readonly #of: LineBytes;
  /** Offsets of the lines in the bytes, and at the end the length of the bytes. */
  readonly #starts: readonly number[];
  readonly #malformed: ReadonlySet<number>;
  /** Marks of the last record. A rule may make many objects of one record, which ask again. */
  #last: { readonly line: number; readonly marks: RecordMarks } | undefined;

  private constructor(of: LineBytes, starts: readonly number[], malformed: ReadonlySet<number>) {
    this.#of = of;
    this.#starts = starts;
    this.#malformed = malformed;
  }

  /**
   * Finds the malformed lines. `text`: the decoded bytes. A line feed is never part of a malformed character, so text
   * and bytes have the same lines.
   */
  static async of(text: string, of: LineBytes): Promise<LineMarks> {
    const { bytes, encoding } = of;
    const starts = [0];
    const malformed = new Set<number>();
    let [place, read] = [0, 0];
    while (place < text.length) {
      const [feed, end] = [text.indexOf("\n", place), lineFeed(bytes, starts.at(-1) ?? 0, encoding)];
      const line = text.slice(place, feed < 0 ? text.length : feed);
      const from = starts.at(-1) ?? 0;
      const to = end < 0 ? bytes.length : end;
      // The text may contain a valid U+FFFD, so the bytes decide.
      if (line.includes(REPLACEMENT)) {
        if (decodeText(bytes.subarray(from, to), encoding, { isWithin: from > 0 }).malformed > 0)
          malformed.add(starts.length);
      }
      read += to - from;
      starts.push(end < 0 ? bytes.length : end + encoding.unitBytes);
      place = feed < 0 ? text.length : feed + 1;
      if (read < LINE_MARKS_TURN_BYTES) continue;
      await setImmediate();
      read = 0;
    }
    return new LineMarks(of, starts, malformed);
  }

  /**
   * Number of bytes of a malformed line as it was sent, without its end; `undefined` for other lines. Lines count from
   * 1.
   */
  bytesOf(line: number): number | undefined {
    return this.#malformed.has(line) ? withoutEnd(this.#bytesOf(line, 1), this.#of.encoding).length : undefined;
  }

  /** Marks of a record of `count` lines that begins at `line`, counted from 1; `undefined` if no line is malformed. */
  marksOf(line: number, count: number): RecordMarks | undefined {
    const lines = Array.from({ length: count }, (_, at) => line + at);
    if (!lines.some((one) => this.#malformed.has(one))) return undefined;
    if (this.#last?.line === line) return this.#last.marks;
    const raw = withoutEnd(this.#bytesOf(line, count), this.#of.encoding).subarray(0, RECORD_MAX_BYTES);
    const marks: RecordMarks = { marks: ["malformed"], rawBytes: raw.toString("base64") };
    this.#last = { line, marks };
    return marks;
  }

  /** Bytes of `count` lines from `line`, including their ends. */
  #bytesOf(line: number, count: number): Buffer {
    const { bytes } = this.#of;
    return bytes.subarray(this.#starts[line - 1] ?? 0, this.#starts[line - 1 + count] ?? bytes.length);
  }
}

/** Removes a line feed at the end, and a carriage return before it. */
function withoutEnd(bytes: Buffer, encoding: Encoding): Buffer {
  const line = withoutUnit(bytes, LINE_FEED, encoding);
  return line === bytes ? bytes : withoutUnit(line, CARRIAGE_RETURN, encoding);
}

function withoutUnit(bytes: Buffer, character: number, { unitBytes, newline }: Encoding): Buffer {
  const at = bytes.length - unitBytes;
  const unit = newline.map((byte) => (byte === 0 ? 0 : character));
  return at >= 0 && at % unitBytes === 0 && bytes.subarray(at).equals(unit) ? bytes.subarray(0, at) : bytes;
}

/** The option of a rule that concerns raw bytes. */
type RawBytesRule = Pick<Rule, "withoutRawBytes">;

/**
 * Limits the raw bytes of the objects that a rule makes of one line to `RECORD_MAX_BYTES` together. Without the limit,
 * a hundred objects of a line would have its raw bytes. The first object always has all of them.
 */
export class RawBytesShares {
  /** Number of bytes used so far, by line. */
  readonly #taken = new Map<number, number>();

  /**
   * Returns the marks of the next object of a line. They have no raw bytes if the limit is reached, or if one of the
   * rules that made the object stores none.
   */
  take(line: number, marked: RecordMarks | undefined, rules: readonly RawBytesRule[] = []): RecordMarks | undefined {
    if (marked?.rawBytes === undefined) return marked;
    if (rules.some(({ withoutRawBytes }) => withoutRawBytes)) return { marks: marked.marks };
    const before = this.#taken.get(line) ?? 0;
    const taken = before + Buffer.byteLength(marked.rawBytes, "base64");
    if (before > 0 && taken > RECORD_MAX_BYTES) return { marks: marked.marks };
    this.#taken.set(line, taken);
    return marked;
  }
}
