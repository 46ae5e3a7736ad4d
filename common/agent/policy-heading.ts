import type { LogPolicySpec } from "../api/policies.ts";
import { AppError, errorText, isAppError } from "../errors.ts";
import { compilePattern } from "../regex/pattern.ts";

/** Recognises the heading lines of a file. A heading line names the columns of the lines after it. */
export interface HeadingRule {
  /** Value of the attribute. A heading line that was recognised by another value is not used. */
  readonly text: string;
  /** True: the first line of each file is its heading line. */
  readonly isFirst: boolean;
  /** True if the line is a heading line, at any position of the file. */
  readonly matches: (line: string) => boolean;
  /** First bytes of lines that may match, so that most lines need not be decoded. Absent: any. */
  readonly firstBytes?: ReadonlySet<number>;
}

/** The attribute of a log policy that says which lines are headings. */
const HEADING = "heading";
const FIRST = "first";
/** First byte of `#`, and of a UTF-8 byte order mark. */
const W3C_FIRST_BYTES: ReadonlySet<number> = new Set([0x23, 0xef]);
const W3C = /^\uFEFF?#Fields:/i;
const MARK = "\uFEFF";

/**
 * Reads the attribute of a log policy: `first`, or a regular expression that is tested on each line. Without the
 * attribute, `#Fields:` lines of W3C logs are headings. Throws `AppError("invalid")` for another value.
 */
export function policyHeading({ attrs }: Pick<LogPolicySpec, "attrs">): HeadingRule {
  const text = attrs?.[HEADING] ?? "";
  if (text === "") return { text, isFirst: false, matches: (line) => W3C.test(line), firstBytes: W3C_FIRST_BYTES };
  if (text === FIRST) return { text, isFirst: true, matches: () => false };
  if (!text.startsWith("^"))
    throw new AppError(
      "invalid",
      `attrs.heading is "first", or a regular expression that begins with ^, not ${JSON.stringify(text)}.`,
    );
  const pattern = patternOf(text);
  const isHeading = (line: string) => pattern.fits(line) && pattern.test(line);
  // The first line of a file may begin with a UTF-8 byte order mark.
  const matches = (line: string) => isHeading(line) || (line.startsWith(MARK) && isHeading(line.slice(MARK.length)));
  return { text, isFirst: false, matches };
}

function patternOf(text: string): ReturnType<typeof compilePattern> {
  try {
    return compilePattern(text);
  } catch (error) {
    if (!isAppError(error)) throw error;
    throw new AppError(error.code, `attrs.heading is refused: ${errorText(error)}`, { cause: error });
  }
}
