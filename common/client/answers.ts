import { isAppError } from "../errors.ts";
import { parseJson } from "../json.ts";
import type { JsonBounds } from "../json-decoder.ts";
import {
  CLIENT_ANSWER_MAX_BYTES,
  CLIENT_FAILURE_MAX_BYTES,
  CLIENT_FOREIGN_SHOWN_CHARACTERS,
  CLIENT_JSON_DEPTH_MAX,
  CLIENT_JSON_VALUES_MAX,
} from "../limits.ts";
import { beginningOf } from "../text/cut.ts";
import { readable } from "./content.ts";
import { failureIn, OdpError } from "./error.ts";
import type { Plan } from "./plan.ts";
import type { FetchResponse } from "./platform.ts";
import type { Answer } from "./types.ts";

const BOUNDS: JsonBounds = {
  depth: { name: "CLIENT_JSON_DEPTH_MAX", max: CLIENT_JSON_DEPTH_MAX },
  members: { name: "CLIENT_JSON_VALUES_MAX", max: CLIENT_JSON_VALUES_MAX },
  elements: { name: "CLIENT_JSON_VALUES_MAX", max: CLIENT_JSON_VALUES_MAX },
  stringCharacters: { name: "CLIENT_ANSWER_MAX_BYTES", max: CLIENT_ANSWER_MAX_BYTES },
};

/** A value of an answer. Whole numbers beyond 2^53 become texts of their digits. */
export function valueIn(text: string): unknown {
  return parseJson(text, BOUNDS);
}

/** The whole body. `OdpError("too_large")` beyond `maxBytes`; the rest is not read. */
export async function bytesOf(content: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of content) {
    length += piece.length;
    if (length > maxBytes) throw tooLarge(`The answer is longer than ${maxBytes} bytes.`, "maxBytes");
    pieces.push(piece);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

export async function textOf(content: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  return new TextDecoder().decode(await bytesOf(content, maxBytes));
}

/** The pieces of a body; none if there is no body. */
export async function* bodyOf({ body }: Pick<FetchResponse, "body">): AsyncGenerator<Uint8Array> {
  if (body !== null) yield* readable(body);
}

export function tooLarge(text: string, limit: string): OdpError {
  return new OdpError("too_large", text, { details: { limit } });
}

export function mediaTypeOf({ headers }: Pick<FetchResponse, "headers">): string {
  return (headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Status of an envelope all of whose parts failed; proxies use it, too. */
const ALL_FAILED = 502;
/** Statuses by which controllers redirect; 0 is all that browsers show of one. */
const OWN_REDIRECTS: readonly number[] = [0, 302, 303];

/**
 * Throws the failure that an answer is. A redirect that the operation does not have is none that a client follows:
 * it would send its credentials to another address, or make a GET of a POST.
 */
export async function requireSuccess(
  response: FetchResponse,
  plan: Plan,
  { base, isStreamed }: { readonly base: string; readonly isStreamed: boolean },
): Promise<void> {
  const { status, headers } = response;
  if (isRedirect(response)) {
    if (plan.mayRedirect && OWN_REDIRECTS.includes(status)) return;
    await response.body?.cancel();
    const target = headers.get("location");
    throw foreign(plan, { base, status, cause: target === null ? "a redirect" : `a redirect to ${target}` });
  }
  const isEnvelope = !isStreamed && status === ALL_FAILED && mediaTypeOf(response) === "application/json";
  if (status < 400 || isEnvelope) return;
  const text = await textOf(bodyOf(response), CLIENT_FAILURE_MAX_BYTES).catch((error: unknown) => {
    // No controller answers a failure of that length.
    if (isAppError(error, "too_large")) return "a long text";
    throw error;
  });
  const failure = failureIn(parsed(text), status, headers.get("retry-after"));
  throw failure ?? foreign(plan, { base, status, cause: shown(response, text) });
}

/** Browsers show a redirect as status 0. */
function isRedirect({ status }: Pick<FetchResponse, "status">): boolean {
  return status === 0 || (status >= 300 && status < 400);
}

function parsed(text: string): unknown {
  try {
    return valueIn(text);
  } catch {
    return undefined;
  }
}

function shown(response: FetchResponse, text: string): string {
  return `${mediaTypeOf(response)} ${JSON.stringify(beginningOf(text, CLIENT_FOREIGN_SHOWN_CHARACTERS))}`;
}

interface Foreign {
  readonly base: string;
  readonly status: number;
  readonly cause: string;
}

/** The error of an answer that no controller gave. A proxy may have passed the call on before it gave it. */
function foreign(plan: Plan, { base, status, cause }: Foreign): OdpError {
  const text = `${base} does not answer as a controller does: status ${status}, ${cause}.`;
  return new OdpError(plan.isRead ? "unavailable" : "unknown_outcome", text, { status });
}

interface Envelope {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly warnings?: readonly string[];
  readonly failed?: { readonly count: number; readonly of: number };
}

export interface AnswerOptions {
  readonly plan: Plan;
  readonly base: string;
  /** True if the answer has no envelope. */
  readonly isBare: boolean;
  readonly maxBytes: number;
}

/** The answer of an operation that answers JSON, or redirects. */
export async function answerOf(response: FetchResponse, options: AnswerOptions): Promise<Answer<unknown>> {
  const { status, headers } = response;
  const text = await textOf(bodyOf(response), options.maxBytes);
  const envelope = isRedirect(response) ? {} : envelopeOf(response, text, options);
  const etag = headers.get("etag");
  return {
    message: envelope.message,
    meta: envelope.meta ?? {},
    warnings: envelope.warnings ?? warningsOf(response),
    failed: envelope.failed,
    revision: etag === null ? undefined : etag.replace(/^(?:W\/)?"(.*)"$/, "$1"),
    more: headers.get("x-odp-more") === "true",
    location: headers.get("location") ?? undefined,
    status,
  };
}

function envelopeOf(response: FetchResponse, text: string, { plan, base, isBare }: AnswerOptions): Envelope {
  const { status, headers } = response;
  if (mediaTypeOf(response) === "application/json") {
    const value = jsonIn(text);
    if (isBare) return { message: value };
    if (isEnvelope(value)) return value;
    const failure = failureIn(value, status, headers.get("retry-after"));
    if (failure !== undefined) throw failure;
  }
  if (plan.hasContent && status === 200)
    throw new OdpError("unsupported", `${plan.id} answered content instead of a message: use download.`, { status });
  throw foreign(plan, { base, status, cause: shown(response, text) });
}

function jsonIn(text: string): unknown {
  try {
    return valueIn(text);
  } catch (error) {
    // Text that is no JSON is not the answer of a controller, and no fault of the caller's text.
    if (isAppError(error, "syntax")) return undefined;
    throw error;
  }
}

function isEnvelope(value: unknown): value is Envelope {
  return (
    typeof value === "object" && value !== null && "status" in value && value.status === "ok" && "message" in value
  );
}

/** Warnings of an answer without an envelope. */
export function warningsOf({ headers }: Pick<FetchResponse, "headers">): readonly string[] {
  const value = parsed(headers.get("x-odp-warnings") ?? "[]");
  return Array.isArray(value) ? value.map(String) : [];
}
