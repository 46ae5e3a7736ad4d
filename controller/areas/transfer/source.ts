import { AppError, isAppError } from "../../../common/errors.ts";
import { QUERY_PARSED_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import {
  parseScript,
  parseScriptInSteps,
  StatementSplitter,
  type Statement,
  type StatementText,
} from "../../../common/mql/index.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import { refusing, TextStream } from "../../../common/text/text-stream.ts";
import { isTransient } from "../../store/journal/index.ts";
import { inSlices, type Slices } from "../query/index.ts";
import { type PathOf, placedStatement } from "./rooted.ts";
import type { Place } from "./types.ts";

/** A part of an upload that is executed as a whole: a statement, or a batch of statements. */
export interface ScriptPart {
  readonly text: string;
  /** The place, in the client's upload, of a fault in this part. */
  place(fault: FaultPlace): Place;
  /** Faults found when the part was read, with their places. In that case `text` is empty. */
  readonly faults?: readonly AppError[];
  /** Number of the row, in a sheet with a heading line. */
  readonly row?: number;
}

/** A place within a part: a position in its text, or the name of a column. */
export interface FaultPlace {
  readonly line?: number;
  readonly column?: number;
  readonly field?: string;
}

/**
 * Yields the statements of a script one by one; never holds all of them. While a statement is incomplete, it yields
 * `undefined` from time to time, so that the reader can yield the thread.
 */
export async function* scriptParts(
  bytes: AsyncIterable<Uint8Array>,
  encoding?: Encoding,
): AsyncGenerator<ScriptPart | undefined> {
  const splitter = new StatementSplitter();
  for await (const piece of scriptText(bytes, encoding))
    for (const found of splitter.take(piece)) yield found && partOf(found);
  for (const found of splitter.end()) yield found && partOf(found);
}

/** The text of a script in this encoding (UTF-8 if absent). Invalid bytes are an error. */
export async function* scriptText(bytes: AsyncIterable<Uint8Array>, encoding?: Encoding): AsyncGenerator<string> {
  const text = new TextStream(encoding, { refuse: refusing("[Format] The script") });
  for await (const piece of bytes) yield text.take(piece);
  yield text.end();
}

/** Parses a part. A batch is one statement. A long text is parsed in slices of time. */
export async function parsePart({ text }: ScriptPart, pathOf: PathOf, slices: Slices): Promise<readonly Statement[]> {
  const isLong = text.length > QUERY_PARSED_TEXT_MAX_CHARACTERS;
  const { statements, placeholders } = isLong ? await inSlices(parseScriptInSteps(text), slices) : parseScript(text);
  if (placeholders > 0) throw new AppError("invalid", "[Valid] An import has no values for ?.");
  return statements.map((statement) => placedStatement(statement, pathOf));
}

/** The fault of a part, with its place in the upload. An error that is not a fault of the upload is thrown again. */
export function faultOf(part: ScriptPart, error: unknown): AppError {
  if (!isAppError(error) || isTransient(error)) throw error;
  const { line, column } = error.details ?? {};
  const fault =
    typeof line === "number" && typeof column === "number"
      ? { line, column }
      : typeof column === "string"
        ? { field: column }
        : {};
  const message = error.message.replace(/ at line \d+ column \d+/, "");
  return new AppError(error.code, `${part.place(fault)}: ${message}`, {
    cause: error,
    ...(error.details && { details: error.details }),
  });
}

/** Does the work. Adds the place of the part to its errors. */
export async function placed<T>(part: ScriptPart, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw faultOf(part, error);
  }
}

function partOf({ text, start }: StatementText): ScriptPart {
  return {
    text,
    place({ line, column }) {
      if (line === undefined || column === undefined) return placeText(text, start);
      return `line ${start.line + line - 1} column ${line === 1 ? start.column + column - 1 : column}`;
    },
  };
}

/** The place of the first word of a statement. */
function placeText(text: string, start: StatementText["start"]): Place {
  const before = /^\s*/.exec(text)?.[0] ?? "";
  const lines = before.split("\n");
  const column = (lines.length === 1 ? start.column : 1) + (lines.at(-1)?.length ?? 0);
  return `line ${start.line + lines.length - 1} column ${column}`;
}
