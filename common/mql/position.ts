import { AppError, type ErrorCode } from "../errors.ts";

/** Line and column, both from 1. A column is a UTF-16 unit. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

const LINE_END = 10;

export function positionAt(text: string, offset: number): Position {
  let line = 1;
  let lineStart = 0;
  for (let at = 0; at < offset; at += 1) {
    if (text.charCodeAt(at) !== LINE_END) continue;
    line += 1;
    lineStart = at + 1;
  }
  return { line, column: offset - lineStart + 1 };
}

export function syntaxError(text: string, offset: number, expected: string, found: string): AppError {
  return errorAt(text, offset, { code: "syntax", complaint: `expected ${expected} but found ${found}` });
}

export interface Fault {
  readonly code: ErrorCode;
  readonly complaint: string;
  readonly details?: Readonly<Record<string, string>>;
}

export function errorAt(text: string, offset: number, fault: Fault): AppError {
  const { line, column } = positionAt(text, offset);
  return new AppError(fault.code, `[Parser] at line ${line} column ${column}: ${fault.complaint}.`, {
    details: { ...fault.details, line, column },
  });
}
