import { AppError, errorText } from "../errors.ts";
import { requireSuccess } from "./answers.ts";
import type { Body } from "./body.ts";
import { readable } from "./content.ts";
import { OdpError } from "./error.ts";
import type { Plan } from "./plan.ts";
import type { Fetch, FetchResponse } from "./platform.ts";
import { refusal } from "./request.ts";
import type { Watch } from "./watch.ts";

/** A call that is ready to be sent. */
export interface Prepared {
  readonly plan: Plan;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Body;
  /** True if the answer is read as it arrives: it is no envelope that tells of parts that failed. */
  readonly isStreamed: boolean;
}

export interface Place {
  readonly fetch: Fetch;
  /** The address of the controller. */
  readonly base: string;
}

/** By the first type, failures have precise statuses. */
const ACCEPTED = "application/problem+json, application/json, */*;q=0.5";

/** Bytes of Latin-1 without control characters: `fetch` takes no others. */
const SENDABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Sends a call and returns its answer, whose body is not read yet. Throws `OdpError` for a failure. */
export async function exchange(call: Prepared, watch: Watch, { fetch, base }: Place): Promise<FetchResponse> {
  watch.check();
  const { plan, target, headers, body } = call;
  const unsendable = Object.keys(headers).find((name) => !SENDABLE.test(headers[name] ?? ""));
  if (unsendable !== undefined) throw refusal(`The header ${unsendable} has a character that headers cannot have.`);
  return failing({ plan, watch, base }, async () => {
    const response = await fetch(`${base}${target}`, {
      method: plan.method,
      headers: { accept: ACCEPTED, ...headers },
      signal: watch.signal,
      redirect: "manual",
      credentials: "same-origin",
      cache: "no-store",
      ...body.make(watch.signal),
    });
    await requireSuccess(response, plan, { base, isStreamed: call.isStreamed });
    return response;
  });
}

interface Failing {
  readonly plan: Plan;
  readonly watch: Watch;
  readonly base: string;
}

/** Does a part of a call, and throws any failure of it as an `OdpError`. */
export async function failing<T>({ plan, watch, base }: Failing, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (watch.signal.aborted) throw watch.signal.reason;
    if (error instanceof OdpError) throw error;
    if (error instanceof AppError) {
      const { code, message, details } = error;
      throw new OdpError(code, message, { cause: error, details });
    }
    throw broken(error, plan, base);
  }
}

/** The error of a connection that could not be made, or broke. */
function broken(error: unknown, { isRead }: Plan, base: string): OdpError {
  // The source of an upload failed, so the call broke off.
  if (error instanceof Error && error.cause instanceof OdpError) return error.cause;
  const isUndone = isUnconnected(error);
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const text = `${base} does not answer: ${errorText(cause) || errorText(error)}.`;
  return new OdpError(isRead || isUndone ? "unavailable" : "unknown_outcome", text, { cause: error, isUndone });
}

interface SystemError {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/**
 * True if no connection was made, so nothing was sent. Only Node tells this; the errors of browsers say nothing about
 * it.
 */
function isUnconnected(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  const { code, syscall, cause, errors } = error as SystemError;
  if (errors !== undefined && errors.length > 0) return errors.every(isUnconnected);
  if (code === "UND_ERR_CONNECT_TIMEOUT" || syscall === "connect" || syscall === "getaddrinfo") return true;
  return cause !== undefined && isUnconnected(cause);
}

interface Reading extends Failing {
  readonly silenceMs: number;
}

/** The pieces of a body, each within the time of silence. Its end ends the watch, also if nothing was read. */
export function pieces(response: Pick<FetchResponse, "body">, reading: Reading): AsyncGenerator<Uint8Array> {
  const read = piecesRead(response, reading);
  const leave = read.return.bind(read);
  let isBegun = false;
  const next = read.next.bind(read);
  read.next = () => ((isBegun = true), next());
  // A generator that has not begun ends without its `finally`.
  read.return = async (value) => {
    if (!isBegun) {
      reading.watch.leave();
      await response.body?.cancel();
    }
    return leave(value);
  };
  return read;
}

async function* piecesRead(
  { body }: Pick<FetchResponse, "body">,
  { silenceMs, ...failingIn }: Reading,
): AsyncGenerator<Uint8Array> {
  const { watch } = failingIn;
  const source = body === null ? undefined : readable(body);
  try {
    while (source !== undefined) {
      watch.within(silenceMs, "No byte of the answer came");
      const { done, value } = await failing(failingIn, () => source.next());
      // A reader that takes its time is no silence.
      watch.within(Infinity);
      if (done === true) return;
      yield value;
    }
  } finally {
    watch.leave();
    await source?.return(undefined);
  }
}
