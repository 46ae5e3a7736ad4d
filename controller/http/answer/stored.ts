import { Readable } from "node:stream";
import type { IncomingHttpHeaders } from "node:http";
import type { FastifyReply } from "fastify";
import { AppError } from "../../../common/errors.ts";
import { HTTP_PIECE_BYTES } from "../../../common/limits.ts";
import type { StatusNote, StoredAnswer, StoredBytes } from "../interface/endpoint.ts";
import { namesVersion } from "./head.ts";
import { contentRange, partOf, type BytePart } from "./ranges.ts";

const VERSION_HEADERS = {
  ETag: "The version of the content, for If-Match, If-None-Match and If-Range",
  "last-modified": "Time of the last change",
};
const BYTES_HEADERS = { ...VERSION_HEADERS, "accept-ranges": "bytes: a range may be asked for" };

/** Statuses of an endpoint with `StoredAnswer`, with the further headers of its answers. */
export function storedStatuses(headers: Readonly<Record<string, string>>): Readonly<Record<number, StatusNote>> {
  const range = { "content-range": "The bytes that are sent, and the number of all" };
  return {
    200: { summary: "The bytes", headers: { ...BYTES_HEADERS, ...headers } },
    206: { summary: "The bytes of the range", headers: { ...BYTES_HEADERS, ...range, ...headers } },
    304: { summary: "The client has this version", headers: { ...VERSION_HEADERS, ...headers } },
  };
}

/** The answer to a request for stored bytes. */
export interface StoredHead {
  readonly status: 200 | 206 | 304;
  readonly headers: Readonly<Record<string, string>>;
  /** The bytes to send; `undefined` for a 304. */
  readonly part: BytePart | undefined;
}

/**
 * Decides by the conditions of the request, in the order of RFC 9110, 13.2.2. `AppError("stale")` if a precondition
 * fails, `AppError("range")` if no byte is in the range.
 */
export function storedHead({ stored, headers = {} }: StoredAnswer, asked: IncomingHttpHeaders): StoredHead {
  const { etag, size, modifiedMs } = stored;
  const version = { etag, "last-modified": new Date(modifiedMs).toUTCString(), ...headers };
  requirePreconditions(asked, stored);
  if (isHeld(asked, stored)) return { status: 304, headers: version, part: undefined };
  const bytes = { ...version, "accept-ranges": "bytes" };
  // Node's types allow a list here, which it never makes.
  const ifRange = asked["if-range"]?.toString();
  const part = isStillTheSame(ifRange, etag) ? partOf(asked.range, size) : undefined;
  if (part === undefined) return { status: 200, headers: bytes, part: { start: 0, end: size } };
  return { status: 206, headers: { ...bytes, "content-range": contentRange(part, size) }, part };
}

function requirePreconditions(asked: IncomingHttpHeaders, { etag, modifiedMs }: StoredBytes): void {
  const match = asked["if-match"];
  const since = match === undefined ? secondsIn(asked["if-unmodified-since"]) : undefined;
  const isOther = match !== undefined && !namesVersion(match, etag);
  if (isOther || (since !== undefined && secondsOf(modifiedMs) > since))
    throw new AppError("stale", "The content has changed.", { details: { revision: etag.slice(1, -1) } });
}

/** True if the client has this version. A date counts only without `If-None-Match`. */
function isHeld(asked: IncomingHttpHeaders, { etag, modifiedMs }: StoredBytes): boolean {
  const noneMatch = asked["if-none-match"];
  if (noneMatch !== undefined) return namesVersion(noneMatch, etag);
  const since = secondsIn(asked["if-modified-since"]);
  return since !== undefined && secondsOf(modifiedMs) <= since;
}

/**
 * True if a range of this version continues what the client has. Only a strong tag proves that: two versions may have
 * one date, so the answer to a date is the whole.
 */
function isStillTheSame(ifRange: string | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange.trim() === etag;
}

function secondsIn(date: string | undefined): number | undefined {
  const ms = Date.parse(date ?? "");
  return Number.isNaN(ms) ? undefined : secondsOf(ms);
}

/** Dates of HTTP count whole seconds. */
function secondsOf(ms: number): number {
  return Math.floor(ms / 1_000);
}

export interface StoredSending {
  /** Sends the stream, and resolves when it has ended. */
  readonly send: (reply: FastifyReply, source: Readable) => Promise<void>;
  /** Sends a content of at most `HTTP_PIECE_BYTES`, without a stream. */
  readonly sendWhole: (reply: FastifyReply, content: Uint8Array) => Promise<void>;
  /** Called before each piece: its reader is alive. */
  readonly onPiece: () => void;
  /** Sets status and headers. */
  readonly writeHead: (head: Pick<StoredHead, "status" | "headers">) => void;
}

/**
 * Sends stored bytes. The first piece is read before the head is sent, so that most failures still get their envelope.
 * Later failures, and fewer bytes than were announced, break the connection.
 */
export async function sendStored(reply: FastifyReply, answer: StoredAnswer, sending: StoredSending): Promise<void> {
  const { headers, method } = reply.request;
  const { status, headers: own, part } = headOrRange(reply, answer, headers);
  if (part === undefined) {
    sending.writeHead({ status, headers: own });
    return void reply.send();
  }
  const length = part.end - part.start;
  if (length <= HTTP_PIECE_BYTES && method !== "HEAD") {
    const content = await whole(answer.stored.read(part), length);
    sending.writeHead({ status, headers: own });
    return sending.sendWhole(reply, content);
  }
  const pieces = cut(answer.stored.read(part), length, sending.onPiece);
  try {
    const first = method === "HEAD" ? undefined : await pieces.next();
    sending.writeHead({ status, headers: own });
    void reply.header("content-length", length);
    await sending.send(reply, Readable.from(first === undefined ? [] : joined(first, pieces)));
  } finally {
    await pieces.return(undefined);
  }
}

/** All bytes of a small content; `AppError("internal")` unless they are `length` bytes. */
export async function whole(bytes: AsyncIterable<Uint8Array>, length: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > length) break;
  }
  if (size !== length) throw wrongSize(length - size);
  const [first] = chunks;
  return first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
}

function wrongSize(missing: number): AppError {
  return new AppError("internal", `The stored content differs from its size by ${String(missing)} bytes.`);
}

/** As `storedHead`; the failure of a range has `Content-Range`. */
function headOrRange(reply: FastifyReply, answer: StoredAnswer, asked: IncomingHttpHeaders): StoredHead {
  try {
    return storedHead(answer, asked);
  } catch (error) {
    if (error instanceof AppError && error.code === "range")
      void reply.header("content-range", `bytes */${String(answer.stored.size)}`);
    throw error;
  }
}

/**
 * The bytes in pieces of at most `HTTP_PIECE_BYTES`; `AppError("internal")` unless they are `length` bytes. The source
 * has ended when the last chunk is sent. So the answer ends with its last byte, and a client that leaves then has left
 * no open answer.
 */
export async function* cut(
  bytes: AsyncIterable<Uint8Array>,
  length: number,
  onPiece: () => void,
): AsyncGenerator<Uint8Array> {
  let left = length;
  let last: Uint8Array | undefined;
  for await (const chunk of bytes) {
    left -= chunk.length;
    if (left < 0) break;
    if (left === 0 && chunk.length > 0) last = chunk;
    else yield* pieces(chunk, onPiece);
  }
  if (left !== 0) throw wrongSize(left);
  if (last !== undefined) yield* pieces(last, onPiece);
}

function* pieces(chunk: Uint8Array, onPiece: () => void): Generator<Uint8Array> {
  for (let at = 0; at < chunk.length; at += HTTP_PIECE_BYTES) {
    onPiece();
    yield chunk.subarray(at, at + HTTP_PIECE_BYTES);
  }
}

async function* joined(
  first: IteratorResult<Uint8Array>,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (first.done) return;
  yield first.value;
  yield* pieces;
}
