import { createHash } from "node:crypto";
import { pipeline, type Readable } from "node:stream";
import { createGzip, gzipSync } from "node:zlib";
import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../../common/errors.ts";
import { HTTP_COMPRESS_MIN_BYTES } from "../../../common/limits.ts";
import { namesVersion } from "./head.ts";

/** Fast, with little memory: hundreds of concurrent answers may take 128 KiB each. */
const GZIP = { level: 4, windowBits: 14, memLevel: 7 } as const;
/**
 * Types of text that is sent as a whole. Lines and events that are sent as they arise would be delayed in a compressor.
 */
const TEXT = /^(text\/(?!event-stream\b)|application\/(json|xml|javascript)\b|[a-z]+\/[\w.-]+\+(json|xml)\b)/i;

/** True if the client takes gzip: by name or by `*`, unless with the weight 0 (RFC 9110, 12.5.3). */
export function acceptsGzip(acceptEncoding: string | undefined): boolean {
  let byAny = false;
  for (const part of (acceptEncoding ?? "").toLowerCase().split(",")) {
    const [name, ...parameters] = part.split(";").map((text) => text.trim());
    const isTaken = !parameters.some((parameter) => /^q\s*=\s*0(\.0*)?$/.test(parameter));
    if (name === "gzip" || name === "x-gzip") return isTaken;
    if (name === "*") byAny = isTaken;
  }
  return byAny;
}

/** Names of content codings that compress (RFC 9110, 8.4.1, and its registry). */
const COMPRESSING = new Set(["gzip", "x-gzip", "deflate", "compress", "x-compress", "br", "zstd", "dcb", "dcz"]);

/**
 * Refuses a body that its head declares as compressed, before it is read. A few compressed bytes may become gigabytes,
 * and stored undecoded they would be useless. Other names are ignored: some clients send a charset there.
 */
export function requireUncompressed(contentEncoding: string | undefined): void {
  const names = (contentEncoding ?? "").toLowerCase().split(",");
  const found = names.map((name) => name.trim()).find((name) => COMPRESSING.has(name));
  if (found === undefined) return;
  const message = `The body is compressed (Content-Encoding: ${found}), which is not read here: send it as it is.`;
  throw new AppError("invalid", message);
}

/**
 * True if a body of this size is worth compressing, given the content type of the reply. `bytes`: absent if unknown.
 */
export function isCompressible(reply: FastifyReply, bytes = HTTP_COMPRESS_MIN_BYTES): boolean {
  if (bytes < HTTP_COMPRESS_MIN_BYTES || reply.hasHeader("content-encoding")) return false;
  if (/\bno-transform\b/i.test(String(reply.getHeader("cache-control") ?? ""))) return false;
  return TEXT.test(String(reply.getHeader("content-type") ?? ""));
}

/** Compresses the body and sets the headers for it. An error of one stream ends the other. */
export function compressed(reply: FastifyReply, body: Readable): Readable {
  const etag = reply.getHeader("etag");
  // The same version in other bytes has a weak tag.
  if (typeof etag === "string" && etag.startsWith('"')) void reply.header("etag", `W/${etag}`);
  void reply.removeHeader("content-length").header("content-encoding", "gzip");
  // The answer breaks off after an error, so the client sees it.
  return pipeline(body, createGzip(GZIP), () => {});
}

interface DocumentForm {
  /** Content type. */
  readonly type: string;
  /** The text with gzip. Absent: it is compressed now. */
  readonly packed?: Buffer;
}

/**
 * Makes a handler that sends a text which never changes and which every caller may see. It is compressed once. A client
 * keeps it and asks with the tag of its version whether it is still the same.
 */
export function documentSender(text: Buffer, { type, packed = gzipSync(text) }: DocumentForm) {
  const tag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const takesGzip = acceptsGzip(request.headers["accept-encoding"]);
    // The same version in other bytes has a weak tag.
    const etag = takesGzip ? `W/${tag}` : tag;
    void reply.headers({ etag, "cache-control": "no-cache", vary: "accept-encoding" });
    if (namesVersion(request.headers["if-none-match"], tag)) return reply.code(304).send();
    void reply.type(type);
    return takesGzip ? reply.header("content-encoding", "gzip").send(packed) : reply.send(text);
  };
}
