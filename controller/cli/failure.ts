import { errorText, isAppError, type AppError } from "../../common/errors.ts";
import { UsageError, WRONG_USAGE } from "./declared/usage.ts";
import { printableLines } from "./formats/printable.ts";

/** As a shell says of what SIGINT ended. */
export const CANCELLED = 130;

/** Next step of a user, by the code of an error. */
const ADVICE: Readonly<Record<string, string>> = {
  signin: "Sign in: odp login <url>. For a password in ODP_PASSWORD: see that it is right.",
  unavailable: "See that the controller runs and that its address is right: odp context list, or --url.",
  unknown_outcome: "It may have been done: look before you try again.",
  deadline: "It may have been done: look before you try again.",
  stale: "Another user was faster: read it again, then repeat your change.",
};

/** True for failures that pass by themselves: what only reads or listens may be tried again. */
export function isPassing(error: unknown): error is AppError {
  return isAppError(error, "unavailable", "unknown_outcome", "deadline", "limited");
}

/** A failure in one or two lines. */
export function failureText(error: unknown): string {
  const text = errorText(error);
  const advice = isAppError(error) && !(error instanceof UsageError) ? ADVICE[error.code] : undefined;
  return printableLines(`odp: ${text}${advice === undefined ? "" : `\n${advice}`}`);
}

/** Exit code of a failure. Only signals cancel the calls of a command. */
export function failureCode(error: unknown): number {
  if (error instanceof UsageError) return WRONG_USAGE;
  return isAppError(error, "cancelled") ? CANCELLED : 1;
}
