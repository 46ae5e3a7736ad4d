import { AppError, type ErrorCode } from "../errors.ts";

/** Both counted from 1; a column is a UTF-16 unit. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export function positionAt(text: string, offset: number): Position {
  let line = 1;
  let lineStart = 0;
  for (let end = text.indexOf("\n"); end !== -1 && end < offset; end = text.indexOf("\n", end + 1)) {
    line += 1;
    lineStart = end + 1;
  }
  return { line, column: offset - lineStart + 1 };
}

export function syntaxError(text: string, offset: number, expected: string, found: string): AppError {
  return errorAt(text, offset, { code: "syntax", complaint: `expected ${expected} but found ${found}` });
}

export function errorAt(
  text: string,
  offset: number,
  fault: { readonly code: ErrorCode; readonly complaint: string },
): AppError {
  const { line, column } = positionAt(text, offset);
  return new AppError(fault.code, `[Parser] at line ${line} column ${column}: ${fault.complaint}.`, {
    details: { line, column },
  });
}
