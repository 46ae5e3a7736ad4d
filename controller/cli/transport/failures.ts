import { errorText } from "../../../common/errors.ts";

/** The words of the `fetch` of Node for a connection that ended too early. */
const CLOSED = "other side closed";
/** The words of `node:http` for it. */
const OWN_CLOSED: ReadonlySet<string> = new Set(["socket hang up", "aborted"]);

interface SystemError {
  readonly code?: unknown;
  /** Reason why an answer is not HTTP. */
  readonly reason?: unknown;
  readonly errors?: readonly unknown[];
}

/** No connection was made, so nothing was sent. The client knows this by `syscall`. */
export class UnconnectedError extends Error {
  readonly syscall = "connect";

  constructor(error: Error) {
    super(connectText(error));
    this.name = "UnconnectedError";
  }
}

/** The error of an exchange whose connection was made. Without an error, the connection closed. */
export function closedError(error?: unknown): Error {
  if (error === undefined) return new Error(CLOSED);
  if (!(error instanceof Error)) return new Error(String(error));
  const { code, reason } = error as SystemError;
  if (String(code).startsWith("HPE_")) return new Error(`the answer is not HTTP (${String(reason)})`);
  return OWN_CLOSED.has(error.message) ? new Error(CLOSED) : error;
}

/** A host with several addresses has one error for each of them, and no text. */
function connectText(error: Error): string {
  const { errors = [] } = error as SystemError;
  return error.message === "" ? errors.map(errorText).join(", ") : closedError(error).message;
}
