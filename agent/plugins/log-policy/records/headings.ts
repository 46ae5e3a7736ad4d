import type { FileHandle } from "node:fs/promises";
import type { HeadingRule } from "../../../../common/agent/policy-heading.ts";
import { LOG_HEADING_MAX_BYTES, LOG_HEADING_SEARCH_MAX_BYTES, LOG_READ_BYTES } from "../../../../common/limits.ts";
import type { RawRecord } from "../../../outbox/records.ts";
import { beginsWithHole } from "./holes.ts";
import { readAt } from "../reading.ts";
import { recordOf } from "./record-text.ts";
import type { LogWork } from "../work.ts";

/** The last heading line before a place of a file. It is kept with the place, so that an agent that begins again has it. */
export interface Heading {
  /** The rule that it was found by. */
  readonly by: string;
  /** Absent: there was none. */
  readonly text?: string;
  /** There is one, and it is not known: it is too long, or too far before the place read. */
  readonly isLost?: true;
  /** There was a record, so that the next one is not the first. */
  readonly isBegun?: true;
}

/** The records, each with the heading line that names its columns, and the heading line at the place behind them. */
export function withHeadings(
  records: readonly RawRecord[],
  rule: HeadingRule,
  before: Heading = { by: rule.text },
): { readonly records: readonly RawRecord[]; readonly heading: Heading } {
  let heading = before;
  const headed = records.map((record) => {
    heading = headingAt(record.bytes, rule, heading);
    return heading.text === undefined ? record : { ...record, heading: heading.text };
  });
  return { records: headed, heading };
}

function headingAt(bytes: Uint8Array, rule: HeadingRule, before: Heading): Heading {
  if (rule.isFirst) return before.isBegun ? before : { ...foundIn(bytes, rule), isBegun: true };
  if (rule.firstBytes?.has(bytes[0] ?? 0) === false) return before;
  return rule.matches(firstLine(bytes).text) ? foundIn(bytes, rule) : before;
}

function foundIn(bytes: Uint8Array, rule: HeadingRule): Heading {
  const { text, isWhole } = firstLine(bytes);
  return isWhole ? { by: rule.text, text } : { by: rule.text, isLost: true };
}

/** Most lines are no headings: not more of a record is made a text than a heading line may have. */
function firstLine(bytes: Uint8Array): { readonly text: string; readonly isWhole: boolean } {
  const found = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, LOG_HEADING_MAX_BYTES + 1));
  const feed = found.indexOf(10);
  const end = feed < 0 ? found.length : feed;
  const text = found.toString("utf8", 0, end > 0 && found[end - 1] === 13 ? end - 1 : end);
  return { text, isWhole: end <= LOG_HEADING_MAX_BYTES };
}

/**
 * The last heading line before a place of a file, for an agent that does not know it: a former version read up to there,
 * or the policy named heading lines otherwise.
 */
export async function headingBefore(
  file: FileHandle,
  offset: number,
  { heading: rule, cutter, encoding }: Pick<LogWork, "heading" | "cutter" | "encoding">,
): Promise<Heading> {
  const lost: Heading = { by: rule.text, isLost: true, isBegun: true };
  if (!rule.isFirst && offset > LOG_HEADING_SEARCH_MAX_BYTES) return lost;
  let heading: Heading = { by: rule.text };
  let skipping = false;
  for (let at = 0; at < offset && !heading.isBegun; ) {
    const bytes = await readAt(file, at, Math.min(LOG_READ_BYTES, offset - at));
    // A writer that leaves a hole at the beginning goes on with a file that had its heading line before.
    if (rule.isFirst && at === 0 && beginsWithHole(bytes, encoding?.unitBytes ?? 1)) return lost;
    const cut = cutter.cut(bytes, { skipping, final: at + bytes.length >= offset });
    // Cut off meanwhile.
    if (cut.consumed === 0) return lost;
    const records = cut.pieces.map((piece) => recordOf(bytes, piece, { offset: at, encoding }));
    // A mark of the encoding alone is no record.
    heading = withHeadings(records.filter(isText), rule, heading).heading;
    ({ skipping } = cut);
    at += cut.consumed;
  }
  return heading;
}

function isText({ bytes }: RawRecord): boolean {
  return bytes.length > 0;
}
