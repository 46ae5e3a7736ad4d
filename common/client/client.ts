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
  readonly headers: { get(name: string): string | null };
  readonly body: AsyncIterable<Uint8Array> | null;
  text(): Promise<string>;
}

export interface ClientOptions {
  /** For example `http://127.0.0.1:8080`. */
  readonly url: string;
  /** Value of the Authorization header. */
  readonly authorization: string;
  readonly fetch: Fetch;
  /** Timeout of one `call`. */
  readonly timeoutMs: number;
}

export interface CallOptions {
  readonly query?: Readonly<Record<string, string | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Called if a limit that the call did not set has left out rows. */
  readonly onMore?: () => void;
  /** Called for each warning of the answer. */
  readonly onWarning?: (text: string) => void;
}

export interface LinesOptions extends Pick<CallOptions, "query" | "body"> {
  readonly signal: AbortSignal;
}

interface Envelope {
  readonly status?: unknown;
  readonly message?: unknown;
  readonly meta?: unknown;
  readonly code?: unknown;
  readonly warnings?: unknown;
}

/** A client of the HTTP interface. Unpacks the envelope, and throws a failure in it as an `AppError`. */
export class Client {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Returns the message of the envelope. `AppError("signin")` if the credentials are not accepted. */
  async call(method: string, path: string, options: CallOptions = {}): Promise<unknown> {
    return this.#message(await this.#envelope(method, path, options));
  }

  /**
   * Yields lines of JSON as they arrive. If the controller answers with an envelope instead, its failure is thrown as
   * by `call`. `signal` ends the call.
   */
  async *lines(method: string, path: string, { query, body, signal }: LinesOptions): AsyncGenerator<unknown> {
    const { url, authorization, fetch } = this.#options;
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = { authorization, ...(body === undefined ? {} : { "content-type": "application/json" }) };
    const response = await this.#answered(() =>
      fetch(`${url.replace(/\/+$/, "")}${path}${queryText(query)}`, { method, headers, signal, ...json }),
    );
    if (!response.headers.get("content-type")?.includes("ndjson")) {
      this.#message(await this.#answered(async () => JSON.parse(await response.text()) as Envelope));
      return;
    }
    const decoder = new TextDecoder();
    let rest = "";
    for await (const bytes of response.body ?? []) {
      const texts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
      rest = texts.pop() ?? "";
      for (const text of texts) yield JSON.parse(text) as unknown;
    }
  }

  #message(envelope: Envelope): unknown {
    if (envelope.status === "ok") return envelope.message;
    if (envelope.status === "signin") throw new AppError("signin", "The credentials are not accepted.");
    throw new AppError(codeOf(envelope), String(envelope.message));
  }

  async #answered<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw new AppError(
        "unavailable",
        `${this.#options.url} does not answer as a controller does: ${errorText(error)}.`,
        { cause: error },
      );
    }
  }

  async #envelope(method: string, path: string, { query, body, onMore, onWarning }: CallOptions): Promise<Envelope> {
    const { url, authorization, fetch, timeoutMs } = this.#options;
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    const headers = {
      authorization,
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    return this.#answered(async () => {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(`${url.replace(/\/+$/, "")}${path}${queryText(query)}`, {
        method,
        headers,
        signal,
        ...json,
      });
      const envelope = JSON.parse(await response.text()) as Envelope;
      if (response.headers.get("x-odp-more") === "true") onMore?.();
      if (Array.isArray(envelope.warnings)) for (const text of envelope.warnings) onWarning?.(String(text));
      return envelope;
    });
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
