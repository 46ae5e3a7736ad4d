import type { FastifyReply, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import { AppError, ERROR_CODES, type ErrorCode, errorText } from "../../../common/errors.ts";
import { HTTP_DETAILS_MAX_CHARACTERS } from "../../../common/limits.ts";
import { traceIdOf } from "../calls/trace.ts";

/** Headers that describe the body of a successful answer. */
const HEADERS_OF_BODY = [
  ...["content-encoding", "content-length", "content-disposition"],
  ...["etag", "last-modified", "accept-ranges"],
];

/** Codes whose status every client gets: calls of older clients never fail by them. */
const PRECISE_FOR_ALL: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["stale", "range", "method_not_allowed"]);

/** Address to which a browser without a session is sent. */
export const SIGN_IN_PATH = "/user/login";

/**
 * Converts any thrown value to the one error that callers see. A value that is neither an `AppError` nor a fault of the
 * request becomes `internal`.
 */
export function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const { statusCode, code } = error as { readonly statusCode?: unknown; readonly code?: unknown };
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE" || statusCode === 413)
    return new AppError("too_large", errorText(error), { cause: error });
  // The text of this error has the whole address, which may contain a session.
  if (code === "FST_ERR_BAD_URL")
    return new AppError("invalid", "The path cannot be read: a percent sign begins no encoded character.", {
      cause: error,
    });
  const ofRequest = typeof statusCode === "number" && statusCode >= 400 && statusCode < 500;
  return new AppError(ofRequest ? "invalid" : "internal", errorText(error), { cause: error });
}

/** Sends the failure in the form that the client asked for. The details of internal faults are not sent. */
export function sendFailure(request: FastifyRequest, reply: FastifyReply, error: AppError): FastifyReply {
  request.exchange.code = error.code;
  const { traceparent } = request.exchange;
  // A stream may fail after its head was made and before its first byte is sent.
  for (const name of HEADERS_OF_BODY) void reply.removeHeader(name);
  // Also if the successful answer could be cached.
  void reply.header("cache-control", "no-store").type("application/json; charset=utf-8");
  const { retryAfterSeconds } = error.details ?? {};
  if (typeof retryAfterSeconds === "number") void reply.header("retry-after", String(Math.ceil(retryAfterSeconds)));
  if (wantsProblem(request)) return sendProblem(reply, error, traceparent);
  if (error.code === "signin")
    return reply.code(200).send({ status: "signin", message: SIGN_IN_PATH, ...publicDetails(error) });
  const status = PRECISE_FOR_ALL.has(error.code) ? ERROR_CODES[error.code].status : 500;
  return reply.code(status).send(failureEnvelope(error, traceparent));
}

export function failureEnvelope(error: AppError, traceparent: string): Record<string, unknown> {
  const text = publicText(error, traceparent);
  // Old clients read `error`, new ones `message`.
  return { status: "error", message: text, error: text, code: error.code, ...publicDetails(error) };
}

/**
 * The details of an error as a caller gets them: none of an internal fault. Members beyond
 * `HTTP_DETAILS_MAX_CHARACTERS` are left out, and `cut` names the bound.
 */
function publicDetails({ code, details = {} }: AppError): { readonly details?: Readonly<Record<string, unknown>> } {
  if (code === "internal") return {};
  let left = HTTP_DETAILS_MAX_CHARACTERS;
  const members = Object.entries(details).filter(([, value]) => value !== undefined);
  const kept = members.filter((member) => {
    const { length } = JSON.stringify(member);
    if (length > left) return false;
    left -= length;
    return true;
  });
  if (kept.length < members.length) kept.push(["cut", "HTTP_DETAILS_MAX_CHARACTERS"]);
  return kept.length === 0 ? {} : { details: Object.fromEntries(kept) };
}

/** Logs an internal fault. Call it once for each failure. */
export function logFault(log: Logger, error: AppError, traceparent: string): void {
  if (error.code !== "internal") return;
  log.error({ err: error.cause ?? error, traceparent }, "a call failed by a fault of ours");
}

function sendProblem(reply: FastifyReply, error: AppError, traceparent: string): FastifyReply {
  const { status, meaning } = ERROR_CODES[error.code];
  return reply
    .code(status)
    .type("application/problem+json")
    .send(
      JSON.stringify({
        type: `urn:odp:error:${error.code}`,
        title: meaning,
        status,
        detail: publicText(error, traceparent),
        code: error.code,
        ...publicDetails(error),
        traceparent,
      }),
    );
}

/** Only this literal media type asks for precise status codes; `*`/`*` does not. */
export function wantsProblem(request: FastifyRequest): boolean {
  return /application\/problem\+json/i.test(request.headers.accept ?? "");
}

function publicText(error: AppError, traceparent: string): string {
  if (error.code !== "internal") return error.message;
  return `A fault of the controller; its log has the details under trace ${traceIdOf(traceparent)}.`;
}
