import { AppError, ERROR_CODES, errorText, type ErrorCode } from "../errors.ts";

/** The part of `fetch` the client needs. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

export interface FetchInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

export interface FetchResponse {
  readonly status: number;
  text(): Promise<string>;
}

export interface ClientOptions {
  /** Such as `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Value of the Authorization header. */
  readonly authorization: string;
  readonly fetch: Fetch;
  /** Of one call. */
  readonly timeoutMs: number;
}

export interface CallOptions {
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
}

interface Envelope {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly meta?: unknown;
  readonly code?: unknown;
}

/** Speaks the HTTP interface: unpacks the envelope, and throws what it says went wrong as the `AppError` it was. */
export class Client {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** The envelope's message. `AppError("signin")` when the credentials are not accepted. */
  async call(method: string, path: string, options: CallOptions = {}): Promise<unknown> {
    const envelope = await this.#envelope(method, path, options);
    if (envelope.status === "ok") return envelope.message;
    if (envelope.status === "signin") throw new AppError("signin", "The credentials are not accepted.");
    throw new AppError(codeOf(envelope), String(envelope.message));
  }

  async #envelope(method: string, path: string, { query, body }: CallOptions): Promise<Envelope> {
    const { url, authorization, fetch, timeoutMs } = this.#options;
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = {
      authorization,
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(`${url.replace(/\/+$/, "")}${path}${queryText(query)}`, {
        method,
        headers,
        signal,
        ...json,
      });
      return JSON.parse(await response.text()) as Envelope;
    } catch (error) {
      throw new AppError("unavailable", `${url} does not answer as a controller does: ${errorText(error)}.`, {
        cause: error,
      });
    }
  }
}

function queryText(query: CallOptions["query"]): string {
  const pairs = Object.entries(query ?? {}).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value] as [string, string]],
  );
  return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs).toString()}`;
}

function codeOf(envelope: Envelope): ErrorCode {
  const code = String(envelope.code);
  return Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : "internal";
}
