import cassandra from "cassandra-driver";
import { AppError, errorText } from "../../../../common/errors.ts";

const { responseErrorCodes } = cassandra.types;

/** The request waited for a place until its time was over, so it was not sent. */
export class NoTimeLeft extends Error {}

export function noPlaceInTime(): NoTimeLeft {
  return new NoTimeLeft("too many requests wait for it");
}

export function noAnswerInTime(): Error {
  return new Error("no node answered in time");
}

// Messages of errors for which the driver has no types.
const NO_CONNECTION = /ECONNREFUSED|considered as DOWN|not connected|No connection available/i;
const CLOSED = /client is shut|shutdown|shutting down/i;
const NOT_SENT: ReadonlySet<number> = new Set([
  responseErrorCodes.unavailableException,
  responseErrorCodes.overloaded,
  responseErrorCodes.isBootstrapping,
]);
const MAYBE_SENT: ReadonlySet<number> = new Set([
  responseErrorCodes.serverError,
  responseErrorCodes.truncateError,
  responseErrorCodes.writeTimeout,
  responseErrorCodes.readTimeout,
  responseErrorCodes.readFailure,
  responseErrorCodes.writeFailure,
]);

type Fault = "answer" | "maybe_sent" | "not_sent";

/**
 * `answer`: Cassandra has judged the request, or it is malformed. In the other cases no server has judged it: a
 * `maybe_sent` request may have arrived, a `not_sent` request certainly did not.
 */
export function faultOf(error: unknown): Fault {
  const { errors } = cassandra;
  if (error instanceof errors.ResponseError) {
    if (NOT_SENT.has(error.code)) return "not_sent";
    return MAYBE_SENT.has(error.code) ? "maybe_sent" : "answer";
  }
  if (
    error instanceof AppError ||
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof errors.ArgumentError
  )
    return "answer";
  if (CLOSED.test(errorText(error))) return "answer";
  if (error instanceof errors.NoHostAvailableError)
    return Object.values(error.innerErrors ?? {}).every(neverLeft) ? "not_sent" : "maybe_sent";
  return neverLeft(error) ? "not_sent" : "maybe_sent";
}

/** The reason of a failure. If several nodes failed, the driver's own text would contain the stacks. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof cassandra.errors.NoHostAvailableError)) return errorText(error);
  const reasons = Object.entries(error.innerErrors ?? {}).map(([host, inner]) => `${host}: ${errorText(inner)}`);
  return reasons.length > 0 ? reasons.join("; ") : "no node is known to be up";
}

function neverLeft(error: unknown): boolean {
  return (
    error instanceof NoTimeLeft ||
    error instanceof cassandra.errors.BusyConnectionError ||
    NO_CONNECTION.test(errorText(error))
  );
}

/** Calls of a deleted tenant do not get this far. */
export function goneError(text: string): AppError {
  return new AppError("unavailable", `What the tenant has in Cassandra is gone and has to be restored: ${text}.`, {
    details: { reason: "keyspace_gone" },
  });
}

export function tellsGone(error: unknown): boolean {
  return /keyspace .* does not exist|unconfigured table|table .* does not exist/i.test(errorText(error));
}

export function answerError(error: unknown): Error {
  const text = errorText(error);
  if (tellsGone(error)) return goneError(text);
  if (CLOSED.test(text)) return new AppError("unavailable", "The store was closed.");
  return error instanceof Error ? error : new Error(text);
}
