import type { FileHandle } from "node:fs/promises";
import type { HeadingRule } from "../../../../common/agent/policy-heading.ts";
import { LOG_HEADING_MAX_BYTES, LOG_HEADING_SEARCH_MAX_BYTES, LOG_READ_BYTES } from "../../../../common/limits.ts";
import type { RawRecord } from "../../../../common/agent/raw-records.ts";
import { beginsWithHole } from "./holes.ts";
import { readAt } from "../reading.ts";
import { recordOf } from "./record-text.ts";
import type { LogWork } from "../work.ts";

/**
 * The last heading line before a position in a file. It is stored with the position, so that it is known after a
 * restart.
 */
export interface Heading {
  /** The heading rule that found it. */
  readonly by: string;
  /** Absent: no heading line was found, or it is lost. */
  readonly text?: string;
  /**
   * There may be a heading line, but it is not known. For example, it is too long, or too far before the read position.
   */
  readonly isLost?: true;
  /** A record was read already, so the next one is not the first of the file. */
  readonly isBegun?: true;
}

/**
 * Adds to each record the heading line that names its columns. Also answers the heading line that applies after the
 * records.
 */
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

/**
 * The first line of a record. Most lines are no headings, so at most the bytes that a heading line may have are
 * decoded. `isWhole` is false for a longer line.
 */
function firstLine(bytes: Uint8Array): { readonly text: string; readonly isWhole: boolean } {
  const found = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, LOG_HEADING_MAX_BYTES + 1));
  const feed = found.indexOf(10);
  const end = feed < 0 ? found.length : feed;
  const text = found.toString("utf8", 0, end > 0 && found[end - 1] === 13 ? end - 1 : end);
  return { text, isWhole: end <= LOG_HEADING_MAX_BYTES };
}

/**
 * Searches for the last heading line before a position, if the state of the file does not have it. For example, an
 * older version read the file, or the policy has another heading rule now.
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
    // The file begins with a hole: it was truncated while its writer continued at the old position. Its heading line
    // was in the removed part.
    if (rule.isFirst && at === 0 && beginsWithHole(bytes, encoding?.unitBytes ?? 1)) return lost;
    const cut = cutter.cut(bytes, { skipping, final: at + bytes.length >= offset });
    // The file was truncated meanwhile.
    if (cut.consumed === 0) return lost;
    const records = cut.pieces.map((piece) => recordOf(bytes, piece, { offset: at, encoding }));
    // A byte order mark alone is no record.
    heading = withHeadings(records.filter(isText), rule, heading).heading;
    ({ skipping } = cut);
    at += cut.consumed;
  }
  return heading;
}

function isText({ bytes }: RawRecord): boolean {
  return bytes.length > 0;
}
