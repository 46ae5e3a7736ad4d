/**
 * The one error that crosses borders. Code that detects a fault throws an `AppError`; the interfaces (HTTP, gRPC, the
 * command line) translate it into their own form. Anything else that is thrown is a bug and appears only in the log.
 */

/** Every code, the HTTP status a precise client gets for it, and what it means. Codes are never reused. */
export const ERROR_CODES = {
  invalid: { status: 400, meaning: "The request is malformed or breaks a rule; repeating it will not help." },
  syntax: { status: 400, meaning: "A text in one of our languages does not parse; the message names line and column." },
  signin: { status: 401, meaning: "Nobody is signed in." },
  denied: { status: 403, meaning: "The signed-in user may not do this." },
  action_required: {
    status: 403,
    meaning: "The user has to do something first; until then tokens and Basic sign-in of that user are refused.",
  },
  not_found: { status: 404, meaning: "The thing named does not exist." },
  method_not_allowed: { status: 405, meaning: "The path takes other methods, which the header Allow names." },
  conflict: { status: 409, meaning: "The thing exists already, is in use, or was changed by somebody else meanwhile." },
  stale: { status: 412, meaning: "The thing is not as the request expects it; nothing was done. Read it again." },
  compacted: { status: 410, meaning: "The history asked for is no longer kept: list again." },
  too_large: { status: 413, meaning: "A named limit on size, count or depth was passed." },
  range: { status: 416, meaning: "No byte of the content is in the range that was asked for." },
  limited: { status: 429, meaning: "The tenant's admission limit is reached: come back later." },
  cancelled: { status: 499, meaning: "The caller went away or asked to stop." },
  internal: { status: 500, meaning: "A bug or a fault of ours; the log has the details." },
  unsupported: { status: 501, meaning: "Known, but not offered here." },
  unavailable: { status: 503, meaning: "Something needed is away; nothing was changed, repeating is safe." },
  unknown_outcome: { status: 503, meaning: "The change may or may not have happened: read before you repeat it." },
  deadline: { status: 504, meaning: "The deadline passed." },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface AppErrorOptions {
  readonly cause?: unknown;
  /**
   * Facts a program can use: the name of a limit, a line and column, the nearest known name. Callers get them, so they
   * contain no secrets, and nothing that the caller may not see.
   */
  readonly details?: Readonly<Record<string, unknown>>;
}

export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.details = options.details;
  }
}

/** True for an `AppError`, with one of the codes when any are given. */
export function isAppError(error: unknown, ...codes: readonly ErrorCode[]): error is AppError {
  return error instanceof AppError && (codes.length === 0 || codes.includes(error.code));
}

/** The text of any thrown value. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
