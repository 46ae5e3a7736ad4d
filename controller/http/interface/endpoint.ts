import type { Readable } from "node:stream";
import type { Static, TSchema } from "typebox";
import type { Permission, Principal } from "../../areas/permissions/index.ts";
import type { Encoding } from "../../../common/text/encodings.ts";

/**
 * One row of the HTTP interface. An area's `routes.ts` answers a list of them; `http/` does everything that is the same
 * for all: reading the input in any form, signing in, permission, admission, validation, audit, envelope, OpenAPI.
 */
export interface Endpoint<I extends TSchema = TSchema, O extends TSchema = TSchema> {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `:name` is one path segment; a last `*` takes the rest, slashes included, as the input member `*`. */
  readonly path: string;
  /** `public` needs no sign-in at all. A permission that ends in `:read` leaves no audit record when it is granted. */
  readonly permission: Permission | "public";
  /** Commands of a job run call it, too, by the token of their run and without the permission: its service decides. */
  readonly commands?: true;
  readonly summary: string;
  /**
   * One object: path parameters, query and body members together (body over query over path). Forms arrive as text and
   * are converted by this schema: `"5"` to 5, `"true"` to true, one value to a list, `name[]` to `name`, `"null"` and
   * `"undefined"` to absent. Members it does not name are dropped, and told in `warnings`.
   */
  readonly input: I;
  /** Schema of the envelope's `message`; also an output filter: members it does not name are not sent. */
  readonly output: O;
  /**
   * Answers are server-sent events, and `output` is of the data of each. Of a GET that is not public. Listening takes
   * the proof of origin that a change takes, no place among the tenant's calls, and has no deadline.
   */
  readonly events?: true;
  /** Statuses other than a bare 200; an answer uses no others. Failures are `AppError`s. */
  readonly statuses?: Readonly<Record<number, StatusNote>>;
  /**
   * How the body is documented; a body in any form is accepted. `raw` is a text of any content type that is kept as it
   * is: no member is read from it.
   */
  readonly body?: "form" | "json" | "multipart" | "text" | "raw";
  /** A query with `malformed=mark` has bytes of a `raw` body that are no text read as U+FFFD. Absent: they are refused. */
  readonly marksMalformed?: true;
  /**
   * Names of the members that carry what this input wants to be stored or run. A call that names none of them, but has a
   * body that is not read or members that are not known, is refused: its content would be lost.
   */
  readonly content?: (input: Static<I>, files: readonly UploadedFile[]) => readonly string[];
  /**
   * Bound of a body that is no upload. When absent, `HTTP_PUBLIC_BODY_MAX_BYTES` of a public endpoint,
   * `HTTP_BODY_MAX_BYTES` of the others: those that take names and settings say less.
   */
  readonly bodyMaxBytes?: number;
  /** Deadline of calls that wait for something long; `HTTP_CALL_DEADLINE_MS` when absent. */
  readonly deadlineMs?: (input: Static<I>) => number;
  readonly handler: (call: Call<Static<I>>) => Promise<Answer<Static<O>>>;
}

/** One status of an endpoint, for the OpenAPI document. */
export interface StatusNote {
  readonly summary: string;
  /** By name, with what each says. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Call<I> {
  /** For `public` endpoints the signed-in user, else a user with an empty name and without rights. */
  readonly principal: Principal;
  readonly input: I;
  /** Uploaded parts in the order they came; removed after the call. */
  readonly files: readonly UploadedFile[];
  /**
   * The body as it came when it was neither a form nor JSON, else undefined. An endpoint of body `text` or `raw` always
   * gets it.
   */
  readonly text: string | undefined;
  /** The bytes of `text`, where some of them are no text. As of `marksMalformed`. */
  readonly malformed?: EncodedText | undefined;
  readonly client: Client;
  /** Fires when the client goes away or `HTTP_CALL_DEADLINE_MS` passes; for events also when the stream ends. */
  readonly signal: AbortSignal;
  /** The caller with the rights of now; `undefined` when signed out or without the permission. Cheap: for any event. */
  readonly present: () => Promise<Principal | undefined>;
}

export interface EncodedText {
  readonly bytes: Buffer;
  readonly encoding: Encoding;
}

/** The other end of the wire. */
export interface Client {
  readonly remote: string;
  /** The session that signed this call in. */
  readonly session: string | undefined;
  /** False for what a page or a link of another site may have made a browser send: see `maySignIn`. */
  readonly maySignIn: boolean;
  /** Value that the `ticket` of an earlier answer left in this browser. The caller may have forged it. */
  readonly ticket: string | undefined;
  /** Asks for HTML: better sent to a page than given an envelope. */
  readonly browser: boolean;
  /** True if the client has the version with this ETag (quotes included), by `If-None-Match`: 304 is enough for it. */
  readonly holds: (etag: string) => boolean;
  /** The id of the last event that a client has which comes back to an event stream. */
  readonly lastEventId: string | undefined;
}

export interface UploadedFile {
  readonly field: string;
  /** As the client sent it: not a path to trust. */
  readonly filename: string;
  /** Where the bytes lie for the time of the call. */
  readonly path: string;
  readonly size: number;
}

/**
 * The answer of a handler. `rows` streams as the array `message`; `content` and `json` are sent bare, without an
 * envelope. `more` tells, once the first rows are there, that others were left out. `warnings` say what was accepted and
 * does not do what its sender may expect. The envelope has that member, and an answer without an envelope the header,
 * only when there are some.
 */
export type Answer<O> =
  | MessageAnswer<O>
  | RowsAnswer
  | ContentAnswer
  | JsonAnswer
  | PageAnswer
  | EventsAnswer
  | EmptyAnswer
  | RedirectAnswer;

interface Envelope extends AnswerHead {
  readonly meta?: unknown;
  readonly warnings?: readonly string[];
}

export interface MessageAnswer<O> extends Envelope {
  readonly message: O;
  readonly session?: SessionChange;
  readonly ticket?: TicketChange;
}

export interface RowsAnswer extends Envelope {
  readonly rows: AsyncIterable<readonly unknown[]>;
  readonly more?: () => boolean;
}

/** Warnings of an answer without an envelope. They are sent in the header `X-Odp-Warnings`. */
interface Bare {
  readonly warnings?: readonly string[];
}

/** A text may be compressed; one that is told as it comes is of a type like `application/x-ndjson`, which never is. */
export interface ContentAnswer extends AnswerHead, Bare {
  readonly content: Readable | Uint8Array | string;
  readonly contentType: string;
  readonly filename?: string;
  readonly ticket?: TicketChange;
}

/** A value that is sent as JSON. */
export interface JsonAnswer extends AnswerHead, Bare {
  readonly json: unknown;
}

/** An HTML page of ours. Nothing keeps it, and no other page takes it in. */
export interface PageAnswer extends Bare {
  readonly page: string;
  /** The whole Content-Security-Policy. */
  readonly policy: string;
  readonly ticket?: TicketChange;
}

/** Ends when `events` does, and ends `events` when it is not listened to any more. */
export interface EventsAnswer extends Bare {
  readonly events: AsyncIterable<ServerEvent>;
}

export interface ServerEvent {
  /** Id that a client sends as its last event when it reconnects. */
  readonly id?: string;
  /** `message` when absent. */
  readonly event?: string;
  /** Sent as JSON. */
  readonly data: unknown;
}

export interface EmptyAnswer extends Pick<AnswerHead, "headers">, Bare {
  readonly empty: 204 | 304;
}

export interface RedirectAnswer extends Bare {
  readonly redirect: string;
  readonly session?: SessionChange;
  readonly ticket?: TicketChange;
}

/** Status and headers of an answer. The endpoint declares them in its `statuses`. */
interface AnswerHead {
  /** 200 when absent. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Sets the session cookie, or clears it when `id` is absent. `lastingMs` makes it outlive the browser. */
export interface SessionChange {
  readonly id?: string;
  readonly lastingMs?: number;
}

/**
 * Leaves a text with the browser for its way to another site and back, or takes it away when `text` is absent. No
 * script reads it, and no form of another site brings it along.
 */
export interface TicketChange {
  readonly text?: string;
  readonly lastingMs?: number;
}

/** Lets TypeScript infer input and output of one endpoint inside a list of many. */
export function endpoint<I extends TSchema, O extends TSchema>(definition: Endpoint<I, O>): Endpoint {
  return definition as unknown as Endpoint;
}
