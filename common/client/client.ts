import {
  CLIENT_ANSWER_MAX_BYTES,
  CLIENT_ATTEMPTS_MAX,
  CLIENT_CALL_TIMEOUT_MS,
  CLIENT_EVENTS_SILENCE_MS,
  CLIENT_SILENCE_MS,
  CLIENT_WAIT_MAX_MS,
} from "../limits.ts";
import type { Clock, Random } from "../time.ts";
import { answerOf } from "./answers.ts";
import { bodyOf } from "./body.ts";
import { Credentials, type CredentialsOptions } from "./credentials.ts";
import { downloadOf } from "./download.ts";
import { OdpError } from "./error.ts";
import { followed } from "./events.ts";
import { exchange, failing, pieces, type Place, type Prepared } from "./exchange.ts";
import { planOf, type Plan } from "./plan.ts";
import {
  platformClock,
  platformRandom,
  platformSocket,
  type Fetch,
  type FetchResponse,
  type OpenSocket,
} from "./platform.ts";
import { baseOf, refusal, targetOf, type AnyRequest } from "./request.ts";
import { Retries } from "./retries.ts";
import { framesOf } from "./sockets.ts";
import { lineValue, linesOf } from "./streams.ts";
import type {
  Answer,
  Arguments,
  CallId,
  CallOptions,
  Condition,
  Conditions,
  Download,
  DownloadId,
  EventOf,
  EventOptions,
  EventsId,
  FrameOf,
  LineOf,
  LinesId,
  MessageOf,
  OperationId,
  PagesId,
  RequestOf,
  ServerEvent,
  SocketPath,
  StreamOptions,
} from "./types.ts";
import type { Sockets } from "./gen/operations.ts";
import { Watch } from "./watch.ts";

export interface ClientOptions extends CredentialsOptions {
  /** Address of a controller, such as `https://odp.example`. In a page: `location.origin`. */
  readonly url: string;
  /** Default: that of the platform. */
  readonly fetch?: Fetch;
  /** Default: the `WebSocket` of the platform. Node 20 has none: give `(url, headers) => new WebSocket(url, { headers })` of the package `ws`. */
  readonly openSocket?: OpenSocket;
  /** Time for one call with all its repetitions. Default: `CLIENT_CALL_TIMEOUT_MS`, two minutes. */
  readonly timeoutMs?: number;
  /** Attempts of one call; 1: no call is repeated. Default: `CLIENT_ATTEMPTS_MAX`, four. */
  readonly attempts?: number;
  /** Largest answer that is held as a whole. Default: `CLIENT_ANSWER_MAX_BYTES`, 256 MiB. */
  readonly maxBytes?: number;
  /** Called with each warning of an answer of which `call` returns the message alone. Default: they are left out. */
  readonly onWarning?: (text: string) => void;
  readonly clock?: Pick<Clock, "monotonicMs" | "after">;
  readonly random?: Pick<Random, "next">;
}

type AnyOptions = StreamOptions & Condition;

/**
 * A client of the HTTP interface. Operations have the names of the OpenAPI document. All methods throw `OdpError`.
 * A client holds no connection, and many calls may be under way at once.
 */
export class OdpClient {
  readonly #place: Place;
  readonly #credentials: Credentials;
  readonly #openSocket: OpenSocket | undefined;
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #random: Pick<Random, "next">;
  readonly #retries: Retries;
  readonly #timeoutMs: number;
  readonly #attempts: number;
  readonly #maxBytes: number;
  readonly #onWarning: (text: string) => void;

  constructor(options: ClientOptions) {
    const { url, clock = platformClock, random = platformRandom, attempts = CLIENT_ATTEMPTS_MAX } = options;
    // Browsers want `fetch` to be called without another `this`.
    this.#place = { base: baseOf(url), fetch: options.fetch ?? ((to, init) => fetch(to, init)) };
    this.#credentials = new Credentials(options);
    this.#openSocket = options.openSocket;
    this.#clock = clock;
    this.#random = random;
    this.#attempts = wholeIn("attempts", attempts, CLIENT_ATTEMPTS_MAX * 4);
    this.#retries = new Retries({ random, attempts: this.#attempts });
    this.#timeoutMs = wholeIn("timeoutMs", options.timeoutMs ?? CLIENT_CALL_TIMEOUT_MS, CLIENT_WAIT_MAX_MS);
    this.#maxBytes = wholeIn("maxBytes", options.maxBytes ?? CLIENT_ANSWER_MAX_BYTES, Number.MAX_SAFE_INTEGER);
    this.#onWarning = options.onWarning ?? (() => undefined);
  }

  /** Makes a call, and returns its message. */
  async call<Id extends CallId>(
    id: Id,
    ...[request, options]: Arguments<RequestOf<Id>, CallOptions & Conditions<Id>>
  ): Promise<MessageOf<Id>> {
    const { message, warnings } = await this.#answer(id, request, options);
    for (const warning of warnings) this.#onWarning(warning);
    return message as MessageOf<Id>;
  }

  /** Makes a call, and returns its message with warnings, revision and all else that the answer says. */
  async answer<Id extends CallId>(
    id: Id,
    ...[request, options]: Arguments<RequestOf<Id>, CallOptions & Conditions<Id>>
  ): Promise<Answer<MessageOf<Id>>> {
    return (await this.#answer(id, request, options)) as Answer<MessageOf<Id>>;
  }

  /**
   * Reads an operation page by page, from its first page on. Rows of MQL need a `LIMIT`. Each page is a call of its own.
   */
  async *pages<Id extends PagesId>(
    id: Id,
    ...[request, options]: Arguments<RequestOf<Id>, CallOptions>
  ): AsyncGenerator<Answer<MessageOf<Id>>, void, undefined> {
    const { paging } = planOf(id);
    if (paging === undefined) throw refusal(`${id} has no pages.`);
    let cursor = paging.first;
    do {
      const asked = withMember(request, paging.place, cursor === undefined ? {} : { [paging.member]: cursor });
      const answer = await this.#answer(id, asked, options);
      yield answer as Answer<MessageOf<Id>>;
      const next = (paging.isInMessage ? (answer.message as object) : answer.meta) as Readonly<Record<string, unknown>>;
      cursor = next[paging.next] as string | undefined;
    } while (cursor !== undefined);
  }

  /**
   * Reads the lines of JSON of an operation as they arrive, and asks for lines if it also answers otherwise. The reader
   * sets the pace. Leaving the loop closes the connection.
   */
  async *lines<Id extends LinesId>(
    id: Id,
    ...[request, options]: Arguments<RequestOf<Id>, StreamOptions>
  ): AsyncGenerator<LineOf<Id>, void, undefined> {
    const plan = planOf(id);
    const asked = plan.stream === undefined ? request : withMember(request, plan.stream, { stream: true });
    const stream = await this.#begin(plan, asked, options);
    for await (const line of linesOf(stream.pieces)) if (line !== "") yield lineValue(line, plan.isRead) as LineOf<Id>;
  }

  /**
   * Reads server-sent events. When the connection ends, connects again and continues after the last event, until the
   * event `end`. The reader sets the pace. Leaving the loop closes the connection.
   */
  events<Id extends EventsId>(
    id: Id,
    ...[request, options = {}]: Arguments<RequestOf<Id>, EventOptions>
  ): AsyncGenerator<ServerEvent<EventOf<Id>>, void, undefined> {
    const plan = planOf(id);
    const connect = (lastEventId: string | undefined) =>
      this.#begin(plan, request, {
        silenceMs: CLIENT_EVENTS_SILENCE_MS,
        ...(options as EventOptions),
        headers: lastEventId === undefined ? {} : { "last-event-id": lastEventId },
      });
    const { reconnects = true, lastEventId, signal } = options as EventOptions;
    const parts = { connect, attempts: reconnects ? this.#attempts : 0, clock: this.#clock, random: this.#random };
    return followed({ ...parts, signal, lastEventId }) as AsyncGenerator<ServerEvent<EventOf<Id>>, void, undefined>;
  }

  /** Begins a download: a file, an export or a page. An envelope that is answered instead is its content. */
  async download<Id extends DownloadId>(
    id: Id,
    ...[request, options]: Arguments<RequestOf<Id>, StreamOptions>
  ): Promise<Download> {
    const { response, pieces: content } = await this.#begin(planOf(id), request, options);
    return downloadOf(response, content, this.#maxBytes);
  }

  /**
   * Reads the frames of a WebSocket. Leaving the loop closes it. A reader that is too slow gets `too_large`, and one
   * whose connection breaks `unavailable`: frames may then be lost, so connect again and read the present state.
   * `timeoutMs` is the time to open it.
   */
  async *socket<Path extends SocketPath>(
    path: Path,
    ...[request, options = {}]: Arguments<Sockets[Path]["request"], Pick<CallOptions, "signal" | "timeoutMs">>
  ): AsyncGenerator<FrameOf<Path>, void, undefined> {
    // Looked for when needed: Node takes long to load its own.
    const open = this.#openSocket ?? platformSocket();
    if (open === undefined)
      throw new OdpError("unsupported", "This platform has no WebSocket: give openSocket.", { isUndone: true });
    const { signal, timeoutMs = this.#timeoutMs } = options as CallOptions;
    const address = this.#place.base.replace(/^http/, "ws") + targetOf({ path }, request ?? {});
    const watch = new Watch(this.#clock, signal);
    try {
      yield* framesOf(() => open(address, this.#credentials.headers()), watch, timeoutMs) as AsyncGenerator<
        FrameOf<Path>
      >;
    } finally {
      watch.leave();
    }
  }

  /**
   * Signs in, and makes all later calls in this session. When it ends, calls fail as `signin`: sign in again, and
   * repeat them. The client does not keep the password. Returns the id of the session.
   */
  async signIn(body: RequestOf<"postUserSignin">["body"], options?: CallOptions): Promise<string> {
    if (!this.#credentials.canSignIn) throw refusal("The client signs in each call, so it needs no session.");
    const session = await this.call("postUserSignin", { body }, options);
    this.#credentials.use(session);
    return session;
  }

  /** Ends the session. If that fails, the client keeps it. */
  async signOut(options?: CallOptions): Promise<void> {
    await this.call("getUserLogout", {}, options);
    this.#credentials.use(undefined);
  }

  async #answer(id: OperationId, request: AnyRequest | undefined, options?: AnyOptions): Promise<Answer<unknown>> {
    const plan = planOf(id);
    const call = { ...this.#prepare(plan, request, options), isStreamed: false };
    const isBare = plan.isBare === "rawdata" ? asksForRawData(request) : plan.isBare;
    const { base } = this.#place;
    const watch = new Watch(this.#clock, options?.signal);
    try {
      watch.within(waitOf(options?.timeoutMs ?? this.#timeoutMs), "The answer did not come");
      return await this.#repeated(call, watch, options, async () => {
        const response = await exchange(call, watch, this.#place);
        const form = { plan, base, isBare, maxBytes: this.#maxBytes };
        return failing({ plan, watch, base }, () => answerOf(response, form));
      });
    } finally {
      watch.leave();
    }
  }

  /** Begins an answer that is read as it arrives. */
  async #begin(
    plan: Plan,
    request: AnyRequest | undefined,
    options: StreamOptions & { readonly headers?: Readonly<Record<string, string>> } = {},
  ): Promise<{ readonly response: FetchResponse; readonly pieces: AsyncGenerator<Uint8Array> }> {
    const { headers, silenceMs = CLIENT_SILENCE_MS, timeoutMs = this.#timeoutMs, signal } = options;
    const prepared = this.#prepare(plan, request, options);
    const call = { ...prepared, headers: { ...prepared.headers, ...headers }, isStreamed: true };
    const watch = new Watch(this.#clock, signal);
    try {
      watch.within(waitOf(timeoutMs), "The answer did not begin");
      const response = await this.#repeated(call, watch, options, () => exchange(call, watch, this.#place));
      watch.within(Infinity);
      const { base } = this.#place;
      return { response, pieces: pieces(response, { plan, watch, base, silenceMs: waitOf(silenceMs) }) };
    } catch (error) {
      watch.leave();
      throw error;
    }
  }

  #repeated<T>(call: Prepared, watch: Watch, options: CallOptions | undefined, attempt: () => Promise<T>): Promise<T> {
    const isRepeatable = options?.isRepeatable === true;
    const { plan, body } = call;
    return this.#retries.run({ plan, isReplayable: body.isReplayable, isRepeatable, watch }, attempt);
  }

  #prepare(plan: Plan, request: AnyRequest = {}, options: AnyOptions = {}): Omit<Prepared, "isStreamed"> {
    const { contentType, ifMatch, ifNoneMatch } = options;
    const body = bodyOf(plan, request.body, { contentType, boundary: () => boundaryBy(this.#random) });
    return {
      plan,
      body,
      target: targetOf(plan, request),
      headers: {
        ...this.#credentials.headers(),
        ...(body.type !== undefined && { "content-type": body.type }),
        ...(ifMatch !== undefined && { "if-match": [ifMatch].flat().map(quoted).join(", ") }),
        ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }),
      },
    };
  }
}

function boundaryBy(random: Pick<Random, "next">): string {
  return `odp-${Array.from({ length: 4 }, () => random.next().toString(36).slice(2)).join("")}`;
}

function quoted(revision: string): string {
  return revision === "*" ? revision : `"${revision}"`;
}

/** The request with more members in its query or body. */
function withMember(request: AnyRequest | undefined, place: "query" | "body", members: object): AnyRequest {
  return { ...request, [place]: { ...(request?.[place] as object | undefined), ...members } };
}

function asksForRawData({ query, body }: AnyRequest = {}): boolean {
  const inBody = typeof body === "object" && body !== null && "rawdata" in body ? body.rawdata : undefined;
  return (inBody ?? query?.["rawdata"]) === true;
}

function waitOf(ms: number): number {
  return wholeIn("A time in ms", ms, CLIENT_WAIT_MAX_MS);
}

function wholeIn(name: string, value: number, max: number): number {
  if (Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw refusal(`${name} is a whole number from 1 to ${max}, not ${value}.`);
}
