import { setImmediate } from "node:timers/promises";
import { lineFeed } from "../../../common/agent/records.ts";
import { LINE_MARKS_TURN_BYTES, RECORD_MAX_BYTES } from "../../../common/limits.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import { decodeText } from "../../../common/text/text-stream.ts";
import type { RecordMarks } from "../objects/index.ts";

/** The bytes of lines, with the encoding they are in. */
export interface LineBytes {
  readonly bytes: Buffer;
  readonly encoding: Encoding;
}

const LINE_ENDS = /[\r\n]+$/;
const REPLACEMENT = "\ufffd";

/** Which lines of a text have malformed bytes, and which. */
export class LineMarks {
  readonly #of: LineBytes;
  /** Where each line begins, and behind the last one the end. */
  readonly #starts: readonly number[];
  readonly #malformed: ReadonlySet<number>;

  private constructor(of: LineBytes, starts: readonly number[], malformed: ReadonlySet<number>) {
    this.#of = of;
    this.#starts = starts;
    this.#malformed = malformed;
  }

  /** `text`: the bytes as they were read. A line feed is never part of a malformed character, so both have the same lines. */
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
      // A text may say U+FFFD itself.
      if (line.includes(REPLACEMENT)) {
        if (decodeText(bytes.subarray(from, to), encoding, { isWithin: from > 0 }).malformed > 0)
          malformed.add(starts.length);
        read += to - from;
      }
      starts.push(end < 0 ? bytes.length : end + encoding.unitBytes);
      place = feed < 0 ? text.length : feed + 1;
      if (read < LINE_MARKS_TURN_BYTES) continue;
      await setImmediate();
      read = 0;
    }
    return new LineMarks(of, starts, malformed);
  }

  /** Marks of a record of so many lines, of which the first has that number, from 1 on. */
  marksOf(line: number, count: number): RecordMarks | undefined {
    const lines = Array.from({ length: count }, (_, at) => line + at);
    if (!lines.some((one) => this.#malformed.has(one))) return undefined;
    const { bytes, encoding } = this.#of;
    const whole = bytes.subarray(this.#starts[line - 1] ?? 0, this.#starts[line - 1 + count] ?? bytes.length);
    const raw = encoding.unitBytes > 1 ? whole : withoutEnds(whole);
    return { marks: ["malformed"], rawBytes: raw.subarray(0, RECORD_MAX_BYTES).toString("base64") };
  }
}

function withoutEnds(bytes: Buffer): Buffer {
  const tail = bytes.subarray(-2).toString("latin1");
  return bytes.subarray(0, bytes.length - (LINE_ENDS.exec(tail)?.[0].length ?? 0));
}
