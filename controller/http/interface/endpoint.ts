import type { Readable } from "node:stream";
import type { Static, TSchema } from "typebox";
import type { InCommit } from "../../areas/objects/index.ts";
import type { Permission, Principal } from "../../areas/permissions/index.ts";
import type { Expected } from "../../../common/revisions.ts";
import type { Encoding } from "../../../common/text/encodings.ts";

/**
 * One endpoint of the HTTP interface. An area's `routes.ts` returns a list of them. `http/` does everything that is the
 * same for all: reading the input in any form, sign-in, permission, admission, validation, audit, envelope, OpenAPI.
 */
export interface Endpoint<I extends TSchema = TSchema, O extends TSchema = TSchema> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** `:name` is one path segment. A `*` at the end takes the rest, including slashes, as the input member `*`. */
  readonly path: string;
  /** `public` needs no sign-in. A granted call with a permission that ends in `:read` leaves no audit entry. */
  readonly permission: Permission | "public";
  /** True: a public endpoint that needs a signed-in user, with any permissions. */
  readonly signedIn?: true;
  /**
   * True: commands of a job run may call it, too, with the token of their run and without the permission. The service
   * decides what they may do.
   */
  readonly commands?: true;
  readonly summary: string;
  /**
   * One object for path parameters, query and body members. The body takes precedence over the query, and the query
   * over the path; with the body `text`, the path comes first. Forms arrive as text and are converted by this schema:
   * `"5"` to 5, `"true"` to true, one value to a list, `name[]` to `name`, `"null"` and `"undefined"` to absent.
   * Unknown members are dropped and reported in `warnings`.
   */
  readonly input: I;
  /** Schema of the envelope's `message`. Members that it does not name are not sent. */
  readonly output: O;
  /** Successful answers without the envelope. Absent: there are none. An answer in another form is a fault. */
  readonly bare?: BareAnswers;
  /**
   * True: the answer is a stream of server-sent events, and `output` is the schema of the data of each. Only for a GET
   * that is not public. Listening requires the same proof of origin as a change. It takes none of the tenant's places
   * for calls and has no deadline.
   */
  readonly events?: true;
  /**
   * True: it reads or changes a definition that has a revision. Its answer has the member `revision`, which is sent as
   * `ETag`. A change checks `call.expected` with `requireExpected`; other endpoints refuse a change with `If-Match` or
   * `If-None-Match`.
   */
  readonly revised?: true;
  /**
   * For a GET with a permission to read: true if a call with this input executes something. Such a call is a change that
   * checks no condition.
   */
  readonly executes?: (input: Static<I>) => boolean;
  /** Statuses in addition to a plain 200 and a redirect. An answer uses no others. Failures are `AppError`s. */
  readonly statuses?: Readonly<Record<number, StatusNote>>;
  /**
   * True: parts of the call can fail while others succeed, so an answer may have `failed`. A client that asks for
   * precise statuses then gets 207, or 502 if all parts failed.
   */
  readonly failsInPart?: true;
  /**
   * Form of the body in the documentation; a body in any form is accepted. `raw`: a text of any content type, which is
   * kept unchanged; no member is read from it.
   */
  readonly body?: "form" | "json" | "multipart" | "text" | "raw";
  /** Description and example of a `raw` body, or of the text of a body `text`, in the documentation. */
  readonly text?: TextNote;
  /** Files of a `multipart` body, in the documentation as `uploadfile`. Absent: no file is read. */
  readonly uploads?: "one" | "optional";
  /**
   * Takes each file of a `multipart` body in while it arrives. Absent: files are copied to the disk of the controller
   * until the call ends. It checks what can be checked before it reads a byte: its errors refuse the call.
   */
  readonly takeIn?: (arriving: ArrivingFile<Static<I>>) => Promise<TakenFile>;
  /**
   * True: the handler may give `call.entry` to the one write that is its change. If it is not durable afterwards, it is
   * written after the handler.
   */
  readonly entryInCommit?: true;
  /**
   * True: with `malformed=mark` in the query, malformed bytes of a `raw` body become U+FFFD. Otherwise they are
   * refused.
   */
  readonly marksMalformed?: true;
  /**
   * Names of the members in which this input may have the content to store or run; empty if it needs none. A call
   * without these members is refused if it has unknown members, or a body that is not read: its content would be lost.
   */
  readonly content?: (input: Static<I>, files: readonly UploadedFile[]) => readonly string[];
  /** Members of the input that hold secrets, although members of this name usually name things. */
  readonly secrets?: readonly string[];
  /**
   * Maximum bytes of a body that is no upload. Default: `HTTP_PUBLIC_BODY_MAX_BYTES` for a public endpoint, otherwise
   * `HTTP_BODY_MAX_BYTES`. Endpoints for names and settings set a smaller maximum.
   */
  readonly bodyMaxBytes?: number;
  /** Deadline of calls that may wait long. Default: `HTTP_CALL_DEADLINE_MS`. */
  readonly deadlineMs?: (input: Static<I>) => number;
  readonly handler: (call: Call<Static<I>>) => Promise<Answer<Static<O>>>;
}

/** The forms of a successful answer without the envelope. The document describes them, and the sender checks them. */
export interface BareAnswers {
  /** Content by media type, without parameters. The type of some content is known only when it is read: `*` of `*`. */
  readonly content?: Readonly<Record<string, ContentNote>>;
  /** Schema of a value that is sent as JSON. */
  readonly json?: TSchema;
  /** Content of an HTML page, in words. */
  readonly page?: string;
  /** Target of a redirect, in words. */
  readonly redirect?: string;
  /** True: success has no envelope. */
  readonly only?: true;
  /** True: the usual answer is the content; only other members of the input make it an envelope. */
  readonly usual?: true;
}

/** Content that is sent without an envelope. */
export interface ContentNote {
  readonly summary: string;
  /** Schema of the whole, if its type is JSON; of each line, if it has lines of JSON. Absent: text or bytes. */
  readonly schema?: TSchema;
}

export interface TextNote {
  readonly summary: string;
  readonly example: string;
  /** True: the call may have no body. */
  readonly optional?: true;
  /** Schema of the value, if the text is JSON. */
  readonly json?: TSchema;
}

/** One status of an endpoint, for the OpenAPI document. */
export interface StatusNote {
  readonly summary: string;
  /** Description of each header, by name. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A call as its handler gets it. Most members are computed when they are asked for. It is declared as a class, because
 * the compiler then refuses a copy by spread, which would lack them.
 */
export declare class Call<I> {
  /** For `public` endpoints the signed-in user, or a user with an empty name and without rights. */
  readonly principal: Principal;
  readonly input: I;
  /** Uploaded parts, in the order in which they were sent. Removed after the call. */
  get files(): readonly UploadedFile[];
  /**
   * The body as it was sent, if it was neither a form nor JSON; otherwise `undefined`. An endpoint with the body `text`
   * or `raw` always gets it.
   */
  get text(): string | undefined;
  /** The bytes of `text`, if some of them are malformed. See `marksMalformed`. */
  readonly malformed?: EncodedText | undefined;
  get client(): Client;
  /** The state that the caller expects of the definition which a `revised` endpoint changes. */
  readonly expected?: Expected | undefined;
  /**
   * Fires when the call must end: the client has left, the deadline has passed or the controller stops. For a call that
   * only reads, also when the caller loses the right; for events, also when the stream ends.
   */
  get signal(): AbortSignal;
  /** The audit entry about the success of the call; see `Endpoint.entryInCommit`. */
  readonly entry?: InCommit | undefined;
  /**
   * The caller with its current rights; `undefined` if signed out or without the permission. Cheap enough to call for
   * each event.
   */
  get present(): () => Promise<Principal | undefined>;
}

export interface EncodedText {
  readonly bytes: Buffer;
  readonly encoding: Encoding;
}

/** The client of a call. */
export interface Client {
  readonly remote: string;
  /** The session that identified the caller. */
  readonly session: string | undefined;
  /** False if a page or a link of another site may have made a browser send the call; see `maySignIn`. */
  readonly maySignIn: boolean;
  /** Value that the `ticket` of an earlier answer stored in this browser. The caller may have forged it. */
  readonly ticket: string | undefined;
  /** True if the client asks for HTML: redirect it to a page rather than send an envelope. */
  readonly browser: boolean;
  /** Id of the last event that the client received before it reconnected to an event stream. */
  readonly lastEventId: string | undefined;
}

interface FilePart {
  readonly field: string;
  /** The name as the client sent it. Do not use it as a path. */
  readonly filename: string;
}

export interface UploadedFile extends FilePart {
  /** Path of the copy on the disk, valid during the call; empty for a file that was taken in. */
  readonly path: string;
  readonly size: number;
  /** Result of the endpoint's `takeIn`. */
  readonly taken?: TakenFile;
}

/** A file of a multipart body at the beginning of its bytes. */
export interface ArrivingFile<I> extends FilePart {
  readonly principal: Principal;
  /** The input by what was sent before the file. Other members, and other values of these, may follow. */
  readonly input: I;
  readonly expected?: Expected | undefined;
  /**
   * Bytes that this file and the files after it have together at least, by the head of the call; 0 if that is unknown.
   * So a file for which there is no room is refused before it arrives.
   */
  readonly announcedBytes: number;
  /** Throws if the client goes away, is silent, or sends more than `HTTP_UPLOAD_MAX_BYTES`. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface TakenFile {
  readonly size: number;
  /** Called when the call has ended, however it ended. Releases the bytes unless the call uses them. */
  release(): Promise<void>;
}

/**
 * The answer of a handler. `rows` is streamed as the list `message`. `content` and `json` are sent without an envelope.
 * `more` is called after the first rows and returns true if other rows were left out. `warnings` report input that was
 * accepted but may not do what its sender expects. Without warnings, the envelope lacks the member and other answers
 * lack the header.
 */
export type Answer<O> =
  | MessageAnswer<O>
  | RowsAnswer
  | ContentAnswer
  | StoredAnswer
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
  /** Only for an endpoint with `failsInPart`; absent if no part failed. */
  readonly failed?: Failures;
  readonly session?: SessionChange;
  readonly ticket?: TicketChange;
}

/** Number of failed parts of a call, and of all its parts. */
export interface Failures {
  readonly count: number;
  readonly of: number;
}

export interface RowsAnswer extends Envelope {
  readonly rows: AsyncIterable<readonly unknown[]>;
  readonly more?: () => boolean;
}

/** Warnings of an answer without an envelope. They are sent in the header `X-Odp-Warnings`. */
interface Bare {
  readonly warnings?: readonly string[];
}

/**
 * A text may be compressed. If its lines are sent as they arise, it must have a type that is never compressed, such as
 * `application/x-ndjson`.
 */
export interface ContentAnswer extends AnswerHead, Bare {
  readonly content: Readable | Uint8Array | string;
  readonly contentType: string;
  readonly filename?: string;
  readonly ticket?: TicketChange;
}

/**
 * Stored bytes. The headers of the request decide what is sent: the whole, a range, or nothing because the client has
 * the version. Its endpoint declares `storedStatuses`.
 */
export interface StoredAnswer extends Pick<AnswerHead, "headers">, Bare {
  readonly stored: StoredBytes;
  readonly contentType: string;
  readonly filename?: string;
}

export interface StoredBytes {
  readonly size: number;
  /** Strong tag, with its quotes: other bytes never have it. */
  readonly etag: string;
  readonly modifiedMs: number;
  /** The bytes of the part. Throws before the first of them, or between them, if they cannot be read. */
  read(part: { readonly start: number; readonly end: number }): AsyncIterable<Uint8Array>;
}

/** A value that is sent as JSON. */
export interface JsonAnswer extends AnswerHead, Bare {
  readonly json: unknown;
}

/** An HTML page of odp. Caches do not keep it, and pages of other sites cannot embed it. */
export interface PageAnswer extends Bare {
  readonly page: string;
  /** The whole Content-Security-Policy. */
  readonly policy: string;
  readonly ticket?: TicketChange;
}

/** Ends when `events` ends. If the client leaves, `events` is ended. */
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
  /**
   * Revision of the definition after the call, for a `revised` endpoint. `undefined` if there is no definition, because
   * the call has removed it. A change must say which of both.
   */
  readonly revision?: string | undefined;
}

/** Sets the session cookie; clears it if `id` is absent. With `lastingMs` the cookie outlives the browser session. */
export interface SessionChange {
  readonly id?: string;
  readonly lastingMs?: number;
}

/**
 * Stores a text in the browser while it visits another site and returns; removes the text if `text` is absent. Scripts
 * cannot read it, and forms of other sites do not send it.
 */
export interface TicketChange {
  readonly text?: string;
  readonly lastingMs?: number;
}

/** Lets TypeScript infer input and output of one endpoint inside a list of many. */
export function endpoint<I extends TSchema, O extends TSchema>(definition: Endpoint<I, O>): Endpoint {
  return definition as unknown as Endpoint;
}
