import type { LogPolicySpec } from "../api/policies.ts";
import { AppError, errorText, isAppError } from "../errors.ts";
import { compilePattern } from "../regex/pattern.ts";

/** How a heading line of a file is known, which names the columns of the lines behind it. */
export interface HeadingRule {
  /** The attribute as it is written: a heading line that was found by another one says nothing. */
  readonly text: string;
  /** True: the first line of each file is its heading line. */
  readonly isFirst: boolean;
  /** True for a line that is a heading line wherever it stands. */
  readonly matches: (line: string) => boolean;
  /** First bytes of lines that may match; absent: any. So that most lines need not be made texts. */
  readonly firstBytes?: ReadonlySet<number>;
}

/** The attribute of a log policy that says which lines are headings. */
const HEADING = "heading";
const FIRST = "first";
/** First bytes of `#`, and of a mark of UTF-8. */
const W3C_FIRST_BYTES: ReadonlySet<number> = new Set([0x23, 0xef]);
const W3C = /^\uFEFF?#Fields:/i;
const MARK = "\uFEFF";

/**
 * By the attributes of a log policy: `first`, or a regular expression that each line is tried on. Without the attribute
 * the lines `#Fields:` of W3C logs are headings. Throws `AppError("invalid")` for another value.
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
  // The first line of a file may have a mark of UTF-8 before it.
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
