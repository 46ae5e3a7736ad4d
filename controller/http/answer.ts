import { addAbortSignal, Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { FastifyReply } from "fastify";
import type { TSchema } from "typebox";
import { HTTP_ROWS_BUFFER_BYTES } from "../../common/limits.ts";
import type { Answer, SessionChange } from "./endpoint.ts";
import { outputFilter, type Filter } from "./filter.ts";

export const SESSION_COOKIE = "matrixSession";
const JSON_TYPE = "application/json; charset=utf-8";

export interface AnswerOptions {
  readonly signal: AbortSignal;
  readonly secure: boolean;
  /** Told of a stream that broke after its head was sent; the client sees its connection end. */
  readonly onBroken: (error: unknown) => void;
}

/** Makes the sender of one endpoint's answers. A sender resolves when the last byte was handed over; it throws only before the first. */
export function answerSender(
  output: TSchema,
): (reply: FastifyReply, answer: Answer<unknown>, options: AnswerOptions) => Promise<void> {
  const filter = outputFilter(output);
  const items = (output as { readonly items?: TSchema }).items;
  const rowFilter = items === undefined ? undefined : outputFilter(items);
  return async (reply, answer, options) => {
    if ("session" in answer && answer.session !== undefined) setSession(reply, answer.session, options.secure);
    if ("redirect" in answer) void reply.redirect(answer.redirect, 302);
    else if ("content" in answer) await sendContent(reply, answer, options);
    else if ("rows" in answer) await sendRows(reply, answer, { ...options, filter: rowFilter });
    else sendMessage(reply, filter === undefined ? answer.message : filter(answer.message), answer.meta);
  };
}

function sendMessage(reply: FastifyReply, message: unknown, meta: unknown): void {
  sendJson(reply, JSON.stringify({ status: "ok", message: message ?? "", meta }));
}

function sendJson(reply: FastifyReply, body: string): void {
  void reply.header("cache-control", "no-store").type(JSON_TYPE).send(body);
}

function setSession(reply: FastifyReply, session: SessionChange, secure: boolean): void {
  const options = { path: "/", httpOnly: true, sameSite: "lax", secure } as const;
  if (session.id === undefined) void reply.clearCookie(SESSION_COOKIE, options);
  else
    void reply.setCookie(
      SESSION_COOKIE,
      session.id,
      session.lastingMs === undefined ? options : { ...options, maxAge: session.lastingMs / 1_000 },
    );
}

type ContentAnswer = Extract<Answer<unknown>, { content: unknown }>;
type RowsAnswer = Extract<Answer<unknown>, { rows: unknown }>;

async function sendContent(reply: FastifyReply, answer: ContentAnswer, options: AnswerOptions): Promise<void> {
  void reply.type(answer.contentType);
  if (answer.filename !== undefined) void reply.header("content-disposition", disposition(answer.filename));
  const { content } = answer;
  if (content instanceof Readable) await sendStream(reply, content, options);
  else
    void reply.send(
      typeof content === "string" ? content : Buffer.from(content.buffer, content.byteOffset, content.byteLength),
    );
}

/** RFC 6266: a plain name for old clients, the true one encoded. */
function disposition(filename: string): string {
  const plain = filename.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(filename).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

async function sendStream(reply: FastifyReply, stream: Readable, options: AnswerOptions): Promise<void> {
  if (reply.request.method === "HEAD") {
    stream.destroy();
    void reply.send(Readable.from([]));
    return;
  }
  addAbortSignal(options.signal, stream);
  void reply.send(stream);
  await finished(stream).catch(options.onBroken);
}

type RowsOptions = AnswerOptions & { readonly filter: Filter | undefined };

/** The first rows are awaited before the head is sent, so that most failures still get their envelope. */
async function sendRows(reply: FastifyReply, answer: RowsAnswer, options: RowsOptions): Promise<void> {
  const pages = answer.rows[Symbol.asyncIterator]();
  const parts = new RowTexts(pages, options.filter);
  try {
    const head = `{"status":"ok","message":[${await parts.next()}`;
    // Parts of meta are known only when all rows are taken.
    const end = (): string => `]${answer.meta === undefined ? "" : `,"meta":${JSON.stringify(answer.meta)}`}}`;
    if (parts.isOver) return sendJson(reply, head + end());
    reply.header("cache-control", "no-store").type(JSON_TYPE);
    await sendStream(reply, Readable.from(joined(head, parts, end)), options);
  } finally {
    // Whoever produces the rows is told when they are not wanted any more. Not awaited: a page may still be on its way.
    if (!parts.isOver) pages.return?.().catch(options.onBroken);
  }
}

/** Pages of rows as the insides of one JSON list, in pieces: the text of a page may be large, and who reads it slow. */
class RowTexts {
  readonly #pages: AsyncIterator<readonly unknown[]>;
  readonly #filter: Filter | undefined;
  #page: readonly unknown[] = [];
  #at = 0;
  #separator = "";
  /** All rows were taken. */
  isOver = false;

  constructor(pages: AsyncIterator<readonly unknown[]>, filter: Filter | undefined) {
    this.#pages = pages;
    this.#filter = filter;
  }

  /** The next piece, of about `HTTP_ROWS_BUFFER_BYTES`. */
  async next(): Promise<string> {
    let text = "";
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
