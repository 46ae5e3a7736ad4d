import type { Operations, Sockets } from "./gen/operations.ts";

/** Name of an operation: its `operationId` in the OpenAPI document. */
export type OperationId = keyof Operations;

/** Operations that have this kind of answer. */
type Having<Member extends string> = {
  [Id in OperationId]: Operations[Id] extends Readonly<Record<Member, unknown>> ? Id : never;
}[OperationId];

/** Operations for `call` and `answer`. */
export type CallId = Having<"message">;
/** Operations for `lines`. */
export type LinesId = Having<"line">;
/** Operations for `events`. */
export type EventsId = Having<"event">;
/** Operations for `download`: files, exports and pages. */
export type DownloadId = Having<"content">;
/** Operations for `pages`. */
export type PagesId = Having<"cursor"> & CallId;
/** Path of a WebSocket. */
export type SocketPath = keyof Sockets;

/** Path parameters, query and body of an operation. */
export type RequestOf<Id extends OperationId> = Operations[Id]["request"];
/** The message of an operation's envelope, or the value that it answers without one. */
export type MessageOf<Id extends CallId> = Operations[Id]["message"];
export type LineOf<Id extends LinesId> = Operations[Id]["line"];
export type EventOf<Id extends EventsId> = Operations[Id]["event"];
export type FrameOf<Path extends SocketPath> = Sockets[Path]["frame"];

/** Request and options. The request may be left out if none of its members is required. */
export type Arguments<Request, Options> =
  Record<string, never> extends Request
    ? [request?: Request, options?: Options]
    : [request: Request, options?: Options];

/** Condition of a change, for operations that can check it. */
export type Conditions<Id extends OperationId> = Operations[Id] extends { revised: true } ? Condition : NoCondition;

export interface Condition {
  /** Revision that the definition must have, as an answer told it; `*`: it must exist. Otherwise `stale`. */
  readonly ifMatch?: string | readonly string[];
  /** `*`: the definition must not exist. Otherwise `stale`. */
  readonly ifNoneMatch?: "*";
}

interface NoCondition {
  readonly ifMatch?: never;
  readonly ifNoneMatch?: never;
}

export interface CallOptions {
  /** Ends the call, which then fails as `cancelled`. A change may have been made nevertheless. */
  readonly signal?: AbortSignal | undefined;
  /** Time for the call with all its repetitions. Default: `timeoutMs` of the client. */
  readonly timeoutMs?: number;
  /**
   * True: repeat the call also if it may have been done, because doing it twice does no harm, as with a SELECT.
   * Operations that only read are repeated in any case.
   */
  readonly isRepeatable?: boolean;
  /** Media type of a body of text or bytes. Default: UTF-8 text for a string. */
  readonly contentType?: string;
}

export interface StreamOptions extends Omit<CallOptions, "timeoutMs"> {
  /** Time until the answer begins. Default: `timeoutMs` of the client. */
  readonly timeoutMs?: number;
  /**
   * Time without a byte after which the stream is given up as `deadline`. Default: `CLIENT_SILENCE_MS`; for events
   * `CLIENT_EVENTS_SILENCE_MS`. The built-in `fetch` of Node has its own bound of 300 s.
   */
  readonly silenceMs?: number;
}

export interface EventOptions extends StreamOptions {
  /** False: end when the connection ends. Default: true, connect again and continue after the last event. */
  readonly reconnects?: boolean;
  /** Id of the last event that the caller has. */
  readonly lastEventId?: string;
}

/** The answer of an operation with all that stands beside its message. */
export interface Answer<Message> {
  readonly message: Message;
  /** Facts about the message, such as the columns of rows. */
  readonly meta: Readonly<Record<string, unknown>>;
  /** Input that was accepted and ignored, or does not do what was probably meant. */
  readonly warnings: readonly string[];
  /** How many parts of the call failed, and of how many; `undefined` if none did. */
  readonly failed: { readonly count: number; readonly of: number } | undefined;
  /** Revision of the definition, for `ifMatch`. */
  readonly revision: string | undefined;
  /** True if rows were left out by a limit that the call did not set. */
  readonly more: boolean;
  /** Address to which the answer redirects; browsers do not show it. */
  readonly location: string | undefined;
  readonly status: number;
}

/** One event of a stream. */
export interface ServerEvent<Data> {
  /** Position after the event; `undefined` if it has none. */
  readonly id: string | undefined;
  /** `message` unless the event has another name. */
  readonly event: string;
  readonly data: Data;
}

/** An answer that is read as it arrives. Read it, or cancel `body`; otherwise its connection stays open. */
export interface Download extends AsyncIterable<Uint8Array> {
  readonly body: ReadableStream<Uint8Array>;
  readonly contentType: string;
  /** Name that the answer proposes for the file. */
  readonly filename: string | undefined;
  /** Bytes of the body, if the answer says so. */
  readonly length: number | undefined;
  readonly warnings: readonly string[];
  /** The header `ETag`, with its quotes. */
  readonly etag: string | undefined;
  readonly location: string | undefined;
  readonly status: number;
  /** The whole body. `OdpError("too_large")` beyond `maxBytes` of the client. */
  bytes(): Promise<Uint8Array>;
  /** The whole body as text of UTF-8, under the same bound. */
  text(): Promise<string>;
}
