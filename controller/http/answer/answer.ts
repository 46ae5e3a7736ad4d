import { addAbortSignal, Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { FastifyReply } from "fastify";
import type { TSchema } from "typebox";
import { HTTP_PIECE_BYTES, HTTP_ROWS_BUFFER_BYTES, HTTP_TURN_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import { setCookie } from "./cookie.ts";
import { bodyPieces, jsonText, member, messageText } from "./body.ts";
import { compressed, isCompressible } from "./compress.ts";
import { CONTENT_POLICY, pageHeaders } from "../connections/browsers.ts";
import type {
  Answer,
  ContentAnswer,
  Endpoint,
  EventsAnswer,
  PageAnswer,
  RowsAnswer,
  SessionChange,
  StoredAnswer,
  TicketChange,
} from "../interface/endpoint.ts";
import { sendEvents, type Listening } from "../sockets/events.ts";
import { statusOfFailures } from "./failed.ts";
import { wantsProblem } from "./failure.ts";
import { outputFilter, type Filter } from "./filter.ts";
import { sendStored } from "./stored.ts";
import { formCheck } from "./forms.ts";
import { headWriter, type HeadWriter } from "./head.ts";
import { WARNINGS_HEADER, warningsHeader } from "../input/warnings.ts";

export const SESSION_COOKIE = "matrixSession";
/** Name of the cookie. Over HTTPS, other hosts of the same domain cannot set it (`__Host-`). */
export function ticketCookie(isSecure: boolean): string {
  return isSecure ? "__Host-odpTicket" : "odpTicket";
}

/** Header of an answer without some rows, because of a limit that the caller did not set. */
const MORE_HEADER = "x-odp-more";
const JSON_TYPE = "application/json; charset=utf-8";

export interface AnswerOptions {
  readonly signal: AbortSignal;
  /** Time slices of the caller's tenant, in which a long answer is made. */
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
  readonly secure: boolean;
  readonly takesGzip: boolean;
  /** Makes the call an event stream. `AppError("limited")` if there are too many. */
  listen(): Listening;
  /** Called when a body is sent at the speed of its reader. From then on the deadline for sending applies. */
  onSending(): void;
  /** Called for a stream that breaks after its head was sent; the client sees its connection end. */
  onBroken(error: unknown): void;
}

export type Sender = (reply: FastifyReply, answer: Answer<unknown>, options: AnswerOptions) => Promise<void>;

/**
 * Makes the sender of one endpoint's answers. A sender resolves when the last byte is handed over. It throws only
 * before the first byte.
 */
export function answerSender(
  endpoint: Pick<Endpoint, "method" | "output" | "statuses" | "bare" | "events" | "revised" | "failsInPart">,
): Sender {
  const { output, failsInPart } = endpoint;
  const checkForm = formCheck(endpoint);
  const filter = outputFilter(output);
  const writeHead = headWriter(endpoint);
  const items = (output as { readonly items?: TSchema }).items;
  const rowFilter = items === undefined ? undefined : outputFilter(items);
  return async (reply, answer, options) => {
    checkForm(answer);
    if (!("message" in answer || "rows" in answer)) tellWarnings(reply, answer.warnings);
    if ("events" in answer) {
      const onBroken = (error: unknown): void => options.onBroken(error);
      return sendEvents(reply, answer.events, { listening: options.listen(), filter, onBroken });
    }
    if ("rows" in answer) return sendRows(reply, answer, { options, writeHead, filter: rowFilter });
    if ("stored" in answer) return sendBytes(reply, answer, { options, writeHead });
    // Before the head, because it may fail while it waits for its turn.
    const text = await textOf(answer, filter, options);
    if ("content" in answer || "json" in answer) void reply.header("content-security-policy", CONTENT_POLICY);
    if (!("redirect" in answer || "page" in answer))
      writeHead(reply, "empty" in answer ? { ...answer, status: answer.empty } : answer);
    if ("failed" in answer && answer.failed !== undefined) {
      if (!failsInPart) throw new Error("The endpoint does not declare that parts of it can fail.");
      if (wantsProblem(reply.request)) void reply.code(statusOfFailures(answer.failed));
    }
    if ("session" in answer && answer.session !== undefined) setSession(reply, answer.session, options.secure);
    if ("ticket" in answer && answer.ticket !== undefined) setTicket(reply, answer.ticket, options.secure);
    if ("redirect" in answer) void reply.redirect(answer.redirect, 302);
    else if ("empty" in answer) void reply.send();
    else if ("page" in answer) await sendPage(reply, answer, options);
    else if ("content" in answer) await sendContent(reply, answer, options);
    else if (text !== undefined) await sendWhole(reply.type(JSON_TYPE), text, options);
  };
}

/** The JSON of a message or of a value without envelope; `undefined` for other answers. */
function textOf(
  answer: Exclude<Answer<unknown>, RowsAnswer | EventsAnswer | StoredAnswer>,
  filter: Filter | undefined,
  options: AnswerOptions,
): string | Promise<string> | undefined {
  if ("json" in answer) return jsonText(answer.json, options);
  if (!("message" in answer)) return undefined;
  const { meta, warnings, failed } = answer;
  const message = (filter === undefined ? answer.message : filter(answer.message)) ?? "";
  return messageText({ message, meta, warnings, failed }, options);
}

function tellWarnings(reply: FastifyReply, warnings: readonly string[] = []): void {
  if (warnings.length > 0) void reply.header(WARNINGS_HEADER, warningsHeader(warnings));
}

/** Sends a complete body. A large one is sent in pieces, which shows whether its reader takes any of it. */
async function sendWhole(reply: FastifyReply, body: string | Uint8Array, options: AnswerOptions): Promise<void> {
  if (typeof body === "string" && body.length <= HTTP_TURN_TEXT_MAX_CHARACTERS) {
    const bytes = Buffer.byteLength(body);
    // Node sends a text together with its head, in one piece.
    if (bytes <= HTTP_PIECE_BYTES && !(options.takesGzip && isCompressible(reply, bytes)))
      return void vary(reply, bytes).send(body);
  }
  const pieces = await bodyPieces(body, options.slices);
  const length = pieces.reduce((bytes, piece) => bytes + piece.length, 0);
  const isPacked = options.takesGzip && isCompressible(reply, length);
  if (length <= HTTP_PIECE_BYTES && !isPacked) return void vary(reply, length).send(pieces[0]);
  options.onSending();
  await sendStream(reply.header("content-length", length), Readable.from(inSlices(pieces, options.slices)), options);
}

/** Pauses after each time slice, because a fast reader would otherwise block the thread. */
async function* inSlices(pieces: readonly Buffer[], slices: AnswerOptions["slices"]): AsyncGenerator<Buffer> {
  for (const piece of pieces) {
    if (slices.isOverNow()) await slices.pause();
    yield piece;
  }
}

/** Tells caches to ask again for clients that accept other encodings. */
function vary(reply: FastifyReply, bytes?: number): FastifyReply {
  return isCompressible(reply, bytes) ? reply.header("vary", "accept-encoding") : reply;
}

function setSession(reply: FastifyReply, session: SessionChange, secure: boolean): void {
  const { id, lastingMs } = session;
  const lasting = lastingMs === undefined ? {} : { maxAge: lastingMs / 1_000 };
  setCookie(reply, SESSION_COOKIE, { text: id, secure, ...lasting });
}

function setTicket(reply: FastifyReply, { text, lastingMs = 0 }: TicketChange, secure: boolean): void {
  setCookie(reply, ticketCookie(secure), { text, secure, maxAge: Math.floor(lastingMs / 1_000) });
}

async function sendPage(reply: FastifyReply, { page, policy }: PageAnswer, options: AnswerOptions): Promise<void> {
  await sendWhole(reply.headers(pageHeaders(policy)).type("text/html; charset=utf-8"), page, options);
}

async function sendContent(reply: FastifyReply, answer: ContentAnswer, options: AnswerOptions): Promise<void> {
  describe(reply, answer);
  const { content } = answer;
  if (!(content instanceof Readable)) return sendWhole(reply, content, options);
  options.onSending();
  await sendStream(reply, content, options);
}

/** A part of the bytes is never compressed: its client puts the parts together. */
async function sendBytes(
  reply: FastifyReply,
  answer: StoredAnswer,
  { options, writeHead }: Pick<RowsOptions, "options" | "writeHead">,
): Promise<void> {
  const takesGzip = options.takesGzip && reply.request.headers.range === undefined;
  await sendStored(reply, answer, {
    send: (to, source) =>
      sendStream(to, source, {
        signal: options.signal,
        takesGzip,
        onBroken: (error) => options.onBroken(error),
      }),
    sendWhole: async (to, content) => {
      if (takesGzip) return sendWhole(to, content, options);
      void vary(to).send(Buffer.from(content.buffer, content.byteOffset, content.byteLength));
    },
    onPiece: () => options.onSending(),
    writeHead: (head) => {
      if (head.status !== 304) describe(reply, answer);
      void reply.header("content-security-policy", CONTENT_POLICY);
      writeHead(reply, head);
    },
  });
}

function describe(reply: FastifyReply, { contentType, filename }: ContentAnswer | StoredAnswer): void {
  void reply.type(contentType);
  if (filename !== undefined) void reply.header("content-disposition", disposition(filename));
}

/** RFC 6266: a plain name for old clients, and the true name encoded. */
function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

type StreamOptions = Pick<AnswerOptions, "signal" | "takesGzip" | "onBroken">;

async function sendStream(reply: FastifyReply, source: Readable, options: StreamOptions): Promise<void> {
  vary(reply);
  if (reply.request.method === "HEAD") {
    source.destroy();
    void reply.send(Readable.from([]));
    return;
  }
  addAbortSignal(options.signal, source);
  const stream = options.takesGzip && isCompressible(reply) ? compressed(reply, source) : source;
  void reply.send(stream);
  await finished(stream).catch((error: unknown) => options.onBroken(error));
}

interface RowsOptions {
  readonly options: AnswerOptions;
  readonly filter: Filter | undefined;
  readonly writeHead: HeadWriter;
}

/** Waits for the first rows before the head is sent, so that most failures still get their envelope. */
async function sendRows(
  reply: FastifyReply,
  answer: RowsAnswer,
  { options, filter, writeHead }: RowsOptions,
): Promise<void> {
  const pages = answer.rows[Symbol.asyncIterator]();
  const parts = new RowTexts(pages, { filter, slices: options.slices });
  try {
    const head = `{"status":"ok","message":[${await parts.next()}`;
    writeHead(reply, answer);
    if (answer.more?.()) void reply.header(MORE_HEADER, "true");
    // Parts of `meta` are known only after all rows are read.
    const end = (): string => `]${member("meta", answer.meta)}${member("warnings", answer.warnings)}}`;
    if (parts.isOver) return await sendWhole(reply.type(JSON_TYPE), head + end(), options);
    await sendStream(reply.type(JSON_TYPE), Readable.from(joined(head, parts, end)), options);
  } finally {
    // Tells the source that no more rows are needed. Not awaited, because a page may still be on its way.
    if (!parts.isOver) pages.return?.().catch((error: unknown) => options.onBroken(error));
  }
}

/** Pages of rows as the content of one JSON list, in pieces: the text of a page may be large, and its reader slow. */
class RowTexts {
  readonly #pages: AsyncIterator<readonly unknown[]>;
  readonly #filter: Filter | undefined;
  readonly #slices: AnswerOptions["slices"];
  #page: readonly unknown[] = [];
  #at = 0;
  #separator = "";
  /** True when all rows have been read. */
  isOver = false;

  constructor(
    pages: AsyncIterator<readonly unknown[]>,
    { filter, slices }: Pick<RowsOptions, "filter"> & Pick<AnswerOptions, "slices">,
  ) {
    this.#pages = pages;
    this.#filter = filter;
    this.#slices = slices;
  }

  /** The next piece, of about `HTTP_ROWS_BUFFER_BYTES`. Pauses after each time slice. */
  async next(): Promise<string> {
    let text = "";
    if (this.#slices.isOverNow()) await this.#slices.pause();
    while (text.length < HTTP_ROWS_BUFFER_BYTES) {
      if (this.#at < this.#page.length) {
        const row = this.#page[this.#at++];
        text += this.#separator + JSON.stringify(this.#filter === undefined ? row : this.#filter(row));
        this.#separator = ",";
        continue;
      }
      const page = await this.#pages.next();
      if (page.done === true) {
        this.isOver = true;
        return text;
      }
      this.#page = page.value;
      this.#at = 0;
    }
    return text;
  }
}

async function* joined(head: string, parts: RowTexts, end: () => string): AsyncGenerator<string> {
  yield head;
  while (!parts.isOver) yield await parts.next();
  yield end();
}
