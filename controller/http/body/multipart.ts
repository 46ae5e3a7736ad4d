import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Multipart, MultipartFile } from "@fastify/multipart";
import type { FastifyRequest } from "fastify";
import type { Bound } from "../../../common/json-decoder.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { encodingNamed, type Encoding } from "../../../common/text/encodings.ts";
import {
  HTTP_BODY_MAX_BYTES,
  HTTP_BODY_READ_FACTOR,
  HTTP_COPIED_UPLOAD_MAX_BYTES,
  HTTP_FORM_MAX_FIELDS,
  HTTP_PARTS_MAX,
  HTTP_SESSION_WITHIN_BYTES,
  HTTP_STRANGER_FORM_MAX_BYTES,
  HTTP_UPLOAD_MAX_BYTES,
  HTTP_UPLOAD_MAX_FILES,
} from "../../../common/limits.ts";
import { announcedFileBytes } from "./announced.ts";
import { bodyTooLarge, NO_BODY, readText, SESSION_FIELD, type Body, type Stranger } from "./body.ts";
import { decodeJson } from "../../turns/decoding.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import type { CallMemory } from "./memory.ts";
import type { TakenFile, UploadedFile } from "../interface/endpoint.ts";
import { addField, type Fields } from "./fields.ts";
import { CHARSET_FIELD, charsetNamed } from "./charset.ts";
import { PartHeads } from "./part-heads.ts";
import { isOtherCharset, PART_BYTES, partText, type PartCharset } from "./part-text.ts";
import { ReplacementCount, replacementsOf } from "./replacements.ts";

export interface MultipartOptions {
  /** Path of the folder of the call, which is made when the first file is copied to it. */
  readonly folder: () => string;
  /** Maximum bytes of all fields together, without files. */
  readonly bound: Bound;
  /** Present while the caller is unknown. */
  readonly stranger?: Stranger | undefined;
  /** Holds memory for the fields, from their first byte on. */
  readonly memory: CallMemory;
  /** Time slices in which large JSON parts are decoded. */
  readonly slices: ThreadSlices;
  /** Called once before the first file is stored, with the fields before it. Refuses the upload by throwing. */
  readonly beforeFiles: (fields: Fields) => Promise<void>;
  /** Takes a file in, instead of copying it to `folder`. The fields are those before the file. */
  readonly takeIn?: ((file: FileOfBody, fields: Fields) => Promise<TakenFile>) | undefined;
}

/** A file part at the beginning of its bytes. */
export interface FileOfBody {
  readonly field: string;
  readonly filename: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Bytes that this file and the files after it have together at least; 0 if that is unknown. */
  readonly announcedBytes: number;
}

const BROKEN = "The multipart body is broken";

/** Reads a multipart body. Files are taken in, or written to `folder`, as they arrive, and are not kept in memory. */
export async function readMultipart(request: FastifyRequest, options: MultipartOptions): Promise<Body> {
  const { headers } = request;
  const heads = new PartHeads(headers["content-type"] ?? "");
  const reading = new MultipartReading(options, { heads, announcedBytes: announcedFileBytes(headers) });
  try {
    const mostBytes = options.stranger === undefined ? options.bound.max : HTTP_BODY_MAX_BYTES;
    const streaming = {
      limits: limitsOf(mostBytes),
      preservePath: true,
      isPartAFile: (...head: PartTypes) => reading.isStreamed(...head),
      defCharset: PART_BYTES,
    };
    // Prepended, so that a head is known before the parser asks how to read its part.
    request.raw.prependListener("data", (chunk: Buffer) => reading.arrived(chunk));
    const parts = request.parts(streaming);
    for (;;) {
      const next = await Promise.race([reading.refused, parts.next()]);
      if (next.done === true) return reading.body();
      await reading.take(next.value);
    }
  } catch (error) {
    // Reads and discards the rest of the upload, so that the client receives the answer.
    request.raw.unpipe();
    request.raw.resume();
    throw asAppError(error);
  }
}

function limitsOf(fieldsMaxBytes: number) {
  return {
    fieldNameSize: 1_000,
    // One more than the maximum of all fields, so that a field that the parser cuts off is refused.
    fieldSize: fieldsMaxBytes + 1,
    fields: HTTP_FORM_MAX_FIELDS,
    fileSize: HTTP_UPLOAD_MAX_BYTES,
    files: HTTP_PARTS_MAX,
    parts: HTTP_PARTS_MAX,
  };
}

const STRANGER: Bound = { name: "HTTP_STRANGER_FORM_MAX_BYTES", max: HTTP_STRANGER_FORM_MAX_BYTES };
const COPIED: Bound = { name: "HTTP_COPIED_UPLOAD_MAX_BYTES", max: HTTP_COPIED_UPLOAD_MAX_BYTES };
const TAKEN_IN: Bound = { name: "HTTP_UPLOAD_MAX_BYTES", max: HTTP_UPLOAD_MAX_BYTES };
const JSON_PART = /^application\/json/;

/** Name, content type and file name of a part. */
type PartTypes = readonly [field: string | undefined, type: string | undefined, filename: string | undefined];

function isFile(type: string, filename: string | undefined): boolean {
  return filename !== undefined || type === "application/octet-stream";
}

interface MultipartHead {
  readonly heads: PartHeads;
  /** See `announcedFileBytes`. */
  readonly announcedBytes: number;
}

class MultipartReading {
  /** Rejects when there is no memory left for the fields. */
  readonly refused: Promise<never>;
  readonly #options: MultipartOptions;
  #bound: Bound;
  /** Absent once the caller is known. */
  #stranger: Stranger | undefined;
  readonly #fields = new Map<string, unknown[]>();
  readonly #files: UploadedFile[] = [];
  #refuse: (reason: unknown) => void = ignore;
  #fieldBytes = 0;
  /** Bytes that arrived and for which memory is held, without those of files. */
  #heldBytes = 0;
  /** True while a part is read as a stream. Its bytes go to the disk, or memory is held for them separately. */
  #isStreaming = false;
  #fieldCount = 0;
  #fileBytes = 0;
  /** Number of file parts so far, including those that were left out. */
  #taken = 0;
  /** True once the caller may send files. */
  #open = false;
  /** Numbers of U+FFFD in the body, in its files, and in the texts that were read from it. */
  readonly #arrived = new ReplacementCount();
  readonly #inFiles = new ReplacementCount();
  #inTexts = 0;
  readonly #heads: PartHeads;
  readonly #announcedBytes: number;
  /** Charsets of the parts that the parser has found and that are not taken yet. */
  readonly #charsets: (string | undefined)[] = [];
  /** Charset from the field `_charset_`, for later parts without a charset of their own. */
  #charset: Encoding | undefined;
  /** Error text about the first text with U+FFFD. */
  #complaint = "";

  constructor(options: MultipartOptions, { heads, announcedBytes }: MultipartHead) {
    this.#heads = heads;
    this.#announcedBytes = announcedBytes;
    this.#options = options;
    this.#bound = options.bound;
    this.#stranger = options.stranger;
    this.refused = new Promise((_resolve, reject) => (this.#refuse = reject));
    this.refused.catch(ignore);
  }

  /**
   * Called once for each part, in their order. A JSON part is read as a stream, like a file: `@fastify/multipart` would
   * decode it before memory is held for it. A text in a charset of its own is read as a stream, too.
   */
  isStreamed(...[name, type = "", filename]: PartTypes): boolean {
    const charset = this.#heads.charsetOf(name);
    this.#charsets.push(charset);
    return isFile(type, filename) || JSON_PART.test(type) || isOtherCharset(charset);
  }

  /** Call it with each piece that arrives, before its parts are taken. */
  arrived(bytes: Buffer): void {
    this.#arrived.add(bytes);
    this.#heads.add(bytes);
    if (this.#isStreaming) return;
    try {
      this.#hold(this.#heldBytes + bytes.length);
      if (this.#stranger !== undefined && this.#heldBytes > STRANGER.max) throw bodyTooLarge(STRANGER);
    } catch (error) {
      this.#isStreaming = true;
      this.#refuse(error);
    }
  }

  async take(part: Multipart): Promise<void> {
    // The types promise these names, but a client may omit them.
    const { fieldname: name, filename } = part as { readonly fieldname?: string; readonly filename?: string };
    this.#note(`The name ${JSON.stringify(name)} of a part`, name);
    this.#note(`The file name ${JSON.stringify(filename)} of a part`, filename);
    const charset = { own: this.#charsets.shift(), common: this.#charset };
    if (part.type === "field") return await this.#takeField(name, part.value, charset);
    this.#isStreaming = true;
    this.#hold(this.#fieldBytes);
    if (isFile(part.mimetype, filename)) await this.#takeFile(name, filename, part.file);
    else await this.#takeStream(name, part, charset);
    this.#isStreaming = false;
  }

  async #takeField(name: string | undefined, sent: unknown, charset: PartCharset): Promise<void> {
    const { slices } = this.#options;
    const { text, replacements } = await partText(titleOf(name), String(sent ?? ""), { ...charset, slices });
    this.#note(titleOf(name), text, replacements);
    if (name === CHARSET_FIELD) this.#charset = charsetNamed(text);
    this.#addField(name, text, Buffer.byteLength(text));
    this.#hold(this.#fieldBytes);
    if (this.#mayBeKnown(name)) await this.#meet();
  }

  #mayBeKnown(name: string | undefined): boolean {
    return name === SESSION_FIELD || this.#fieldBytes > HTTP_SESSION_WITHIN_BYTES;
  }

  /** Counts the U+FFFD of a text. `known`: their number, if the caller has counted them in the bytes. */
  #note(what: string, text: string | undefined, known?: number): void {
    const { byte, count } = replacementsOf(text ?? "");
    if (count > 0) this.#complaint ||= `${what} is no utf-8 text at byte ${byte}.`;
    this.#inTexts += known ?? count;
  }

  /** Tries to identify the caller by the fields so far; throws if they do not suffice. */
  async #meet(): Promise<void> {
    const stranger = this.#stranger;
    if (stranger === undefined) return;
    this.#bound = await stranger.knownBy(this.#fields);
    this.#stranger = undefined;
  }

  async #takeStream(name: string | undefined, part: MultipartFile, { own, common }: PartCharset): Promise<void> {
    const { file, mimetype } = part;
    const { memory, slices } = this.#options;
    const encoding = own ? encodingNamed(own, "charset") : common;
    const replacements = new ReplacementCount();
    file.on("data", (chunk: Buffer) => replacements.add(chunk));
    const options = { encoding, what: titleOf(name), bound: this.#bound, memory, slices };
    const text = await readText(file, options).catch((error: unknown) => {
      throw isAppError(error, "cancelled") ? new AppError("invalid", `${BROKEN}: a part has no end.`) : error;
    });
    memory.hold(text.length);
    this.#inTexts += replacements.count;
    const isJson = JSON_PART.test(mimetype);
    const value = isJson ? await decodeJson(text, { slices, hold: (bytes) => memory.hold(bytes) }) : text;
    this.#addField(name, value, Buffer.byteLength(text));
    if (this.#mayBeKnown(name)) await this.#meet();
  }

  #addField(name: string | undefined, value: unknown, size: number): void {
    if (name === undefined) throw nameless();
    this.#fieldBytes += name.length + size;
    if (this.#fieldBytes > this.#bound.max) throw bodyTooLarge(this.#bound);
    if (++this.#fieldCount > HTTP_FORM_MAX_FIELDS) throw tooManyParts();
    addField(this.#fields, name, value);
  }

  /** Sets the bytes for which memory is held. Gives back those of heads of parts and beginnings of files. */
  #hold(bytes: number): void {
    this.#options.memory.hold((bytes - this.#heldBytes) * HTTP_BODY_READ_FACTOR);
    this.#heldBytes = bytes;
  }

  async #takeFile(
    field: string | undefined,
    filename: string | undefined,
    file: Readable & { truncated?: boolean },
  ): Promise<void> {
    // An `error` event without a listener would end the process.
    file.on("error", ignore);
    if (field === undefined) throw nameless();
    if (++this.#taken > HTTP_UPLOAD_MAX_FILES) throw tooManyParts();
    if (!this.#open) await this.#options.beforeFiles(this.#fields);
    this.#open = true;
    const before = this.#fileBytes;
    if (this.#announcedBytes > this.#filesMax.max) throw uploadTooLarge(this.#filesMax);
    const announcedBytes = Math.max(0, this.#announcedBytes - before);
    const part = { field: field.replace(/\[\]$/, ""), filename: filename ?? "", announcedBytes };
    const bytes = this.#arriving(file);
    const first = await bytes.next();
    // A browser sends an empty part for a file field in which no file was chosen.
    if (first.done === true && part.filename === "") return;
    const stored = await this.#store(part, startedBy(first, bytes));
    const { field: name, filename: title } = part;
    this.#files.push({ field: name, filename: title, ...stored, size: this.#fileBytes - before });
  }

  async #store(
    part: Omit<FileOfBody, "bytes">,
    bytes: AsyncIterable<Uint8Array>,
  ): Promise<Pick<UploadedFile, "path" | "taken">> {
    const { takeIn } = this.#options;
    if (takeIn !== undefined) return { path: "", taken: await takeIn({ ...part, bytes }, this.#fields) };
    const folder = this.#options.folder();
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, String(this.#taken));
    await pipeline(bytes, createWriteStream(path, { flags: "wx", mode: 0o600 }));
    return { path };
  }

  /** The bytes of a file, counted. */
  async *#arriving(file: Readable & { truncated?: boolean }): AsyncGenerator<Uint8Array> {
    for await (const chunk of file as AsyncIterable<Buffer>) {
      this.#fileBytes += chunk.length;
      this.#inFiles.add(chunk);
      if (this.#fileBytes > this.#filesMax.max) throw uploadTooLarge(this.#filesMax);
      yield chunk;
    }
    if (file.truncated === true) throw uploadTooLarge(this.#filesMax);
  }

  get #filesMax(): Bound {
    return this.#options.takeIn === undefined ? COPIED : TAKEN_IN;
  }

  /** `AppError("invalid")` if a text had bytes that are no UTF-8. */
  body(): Body {
    // `@fastify/multipart` decodes such bytes to U+FFFD. Then the texts have more of them than the body.
    if (this.#inTexts + this.#inFiles.count > this.#arrived.count) throw new AppError("invalid", this.#complaint);
    this.#hold(this.#fieldBytes);
    return { ...NO_BODY, fields: this.#fields, files: this.#files };
  }
}

/** All bytes of a stream whose first piece has been read. */
async function* startedBy(
  first: IteratorResult<Uint8Array>,
  rest: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  if (first.done === true) return;
  yield first.value;
  yield* rest;
}

function ignore(): void {}

function titleOf(name: string | undefined): string {
  return `The part ${JSON.stringify(name ?? "")}`;
}

function nameless(): AppError {
  return new AppError("invalid", "A part of the form has no name.");
}

function tooManyParts(cause?: unknown): AppError {
  return new AppError(
    "too_large",
    `More than ${String(HTTP_UPLOAD_MAX_FILES)} files or ${String(HTTP_FORM_MAX_FIELDS)} fields.`,
    { cause },
  );
}

function uploadTooLarge({ name, max } = TAKEN_IN): AppError {
  return new AppError("too_large", `The upload is larger than ${String(max)} bytes (${name}).`, {
    details: { limit: name, max },
  });
}

function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOSPC" || code === "EDQUOT")
    return new AppError("unavailable", "There is no room left for uploads.", { cause: error });
  if (code === "FST_REQ_FILE_TOO_LARGE") return uploadTooLarge();
  if (/^FST_(PARTS|FILES|FIELDS)_LIMIT$/.test(code)) return tooManyParts(error);
  if (/^E[A-Z]+$/.test(code) && code !== "ECONNRESET")
    return new AppError("internal", errorText(error), { cause: error });
  return new AppError("invalid", `${BROKEN}: ${errorText(error)}.`, { cause: error });
}
