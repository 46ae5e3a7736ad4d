import { AppError, ERROR_CODES, type ErrorCode } from "../errors.ts";

export interface OdpErrorOptions {
  readonly cause?: unknown;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
  readonly status?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly isUndone?: boolean;
}

/**
 * A call that failed: as the controller answered, or as the client found out. The client itself uses these codes:
 * `cancelled` (its signal fired), `deadline`, `invalid` (cannot be sent), `too_large` (a bound of the client, named by
 * `details.limit`), `unavailable` (no controller answered; nothing was changed), `unknown_outcome` (no whole answer came;
 * a change may have been made), `unsupported` (not in this browser or version of Node).
 */
export class OdpError extends AppError {
  /** Status of the answer; `undefined` if there was none. */
  readonly status: number | undefined;
  /** Time after which the controller asks to come again. */
  readonly retryAfterMs: number | undefined;
  /** True if certainly nothing was done, so the call may be repeated. */
  readonly isUndone: boolean;

  constructor(code: ErrorCode, message: string, options: OdpErrorOptions = {}) {
    const { cause, details, status, retryAfterMs, isUndone = false } = options;
    super(code, message, { ...(cause !== undefined && { cause }), ...(details && { details }) });
    this.name = "OdpError";
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.isUndone = isUndone;
  }
}

/** True for an `OdpError`, with one of the codes if any are given. */
export function isOdpError(error: unknown, ...codes: readonly ErrorCode[]): error is OdpError {
  return error instanceof OdpError && (codes.length === 0 || codes.includes(error.code));
}

interface Failure {
  readonly status?: unknown;
  readonly code?: unknown;
  readonly detail?: unknown;
  readonly message?: unknown;
  readonly details?: unknown;
}

/**
 * The failure in the JSON of an answer: a problem, an envelope with an error, or the envelope of the sign-in.
 * `undefined` if it is none of these.
 */
export function failureIn(value: unknown, status: number, retryAfter: string | null): OdpError | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { status: told, code, detail, message, details } = value as Failure;
  const facts = typeof details === "object" && details !== null ? (details as Record<string, unknown>) : undefined;
  if (told === "signin")
    return new OdpError("signin", "Nobody is signed in.", { details: facts, status, isUndone: true });
  const text = typeof detail === "string" ? detail : message;
  if (typeof code !== "string" || typeof text !== "string") return undefined;
  const isKnown = Object.hasOwn(ERROR_CODES, code);
  const known = isKnown ? (code as ErrorCode) : "internal";
  const retryAfterMs = secondsIn(retryAfter);
  return new OdpError(known, text, {
    // A newer controller may know more codes.
    details: isKnown ? facts : { ...facts, code },
    status,
    retryAfterMs,
    isUndone: UNDONE.has(known) || (known === "limited" && retryAfterMs !== undefined),
  });
}

/** Codes with which the controller says that nothing was done. */
const UNDONE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(["unavailable", "stale", "signin"] as const),
  ...(["range", "method_not_allowed"] as const),
]);

function secondsIn(header: string | null): number | undefined {
  return header !== null && /^\d{1,6}$/.test(header.trim()) ? Number(header) * 1_000 : undefined;
}
