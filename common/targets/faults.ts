import { AppError } from "../errors.ts";
import { beginningOf } from "../text/cut.ts";

const SHOWN_MAX_CHARACTERS = 80;

export function shownEntry(entry: string): string {
  const shown = beginningOf(entry, SHOWN_MAX_CHARACTERS);
  return JSON.stringify(shown === entry ? entry : `${shown}…`);
}

/** Error about the character at `offset` of the entry, from 0. */
export function targetFault(entry: string, offset: number, complaint: string): AppError {
  const character = offset + 1;
  return new AppError("invalid", `The target ${shownEntry(entry)} is wrong at character ${character}: ${complaint}.`, {
    details: { character },
  });
}

/** Error of the parser of conditions, moved to its place in the entry. */
export function conditionFault(entry: string, offset: number, { code, message }: AppError): AppError {
  const character = offset + 1;
  const complaint = message.replace(/^\[\w+\] at line \d+ column \d+: /, "");
  return new AppError(code, `The target ${shownEntry(entry)} is wrong at character ${character}: ${complaint}`, {
    details: { character },
  });
}
